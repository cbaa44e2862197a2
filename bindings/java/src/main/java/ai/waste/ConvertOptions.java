// SPDX-License-Identifier: Apache-2.0
//
// How a checkpoint is converted: waste_convert_options.

package ai.waste;

/** How a checkpoint is converted. 0 is the default everywhere. Immutable. */
public final class ConvertOptions {
  private final Builder set;

  private ConvertOptions(Builder set) {
    this.set = set;
  }

  /** All defaults, to be changed. */
  public static Builder builder() {
    return new Builder();
  }

  /** All defaults. */
  public static ConvertOptions defaults() {
    return builder().build();
  }

  /** These options, to be changed. */
  public Builder toBuilder() {
    return new Builder(set);
  }

  /** The struct that crosses; the caller deletes it. */
  waste_convert_options toNative() {
    final waste_convert_options made = new waste_convert_options();
    made.setThreads(set.threads);
    made.setStages(set.stages);
    made.setIndex_bits(set.indexBits);
    made.setTrunk_bits(set.trunkBits);
    made.setExpert_beam(set.expertBeam);
    made.setQuantise_from(set.quantiseFrom);
    return made;
  }

  /** Sets options one by one. For one thread. */
  public static final class Builder {
    private int threads;
    private int stages;
    private int indexBits;
    private int trunkBits;
    private int expertBeam;
    private long quantiseFrom;

    private Builder() {}

    private Builder(Builder from) {
      threads = from.threads;
      stages = from.stages;
      indexBits = from.indexBits;
      trunkBits = from.trunkBits;
      expertBeam = from.expertBeam;
      quantiseFrom = from.quantiseFrom;
    }

    /** Threads that work; 0 is one for each core granted. */
    public Builder threads(int value) {
      Check.that(value >= 0, "threads", value);
      threads = value;
      return this;
    }

    /** Codebooks in a row for experts: 2, 3, 4 or 6; 0 is 3. */
    public Builder stages(int value) {
      Check.that(value >= 0, "stages", value);
      stages = value;
      return this;
    }

    /** 8, or 6 for four stages of 64 entries; 0 is 8. */
    public Builder indexBits(int value) {
      Check.that(value >= 0, "indexBits", value);
      indexBits = value;
      return this;
    }

    /** 3, 4 or 8 for trunk matrices; 0 is 4. */
    public Builder trunkBits(int value) {
      Check.that(value >= 0, "trunkBits", value);
      trunkBits = value;
      return this;
    }

    /** Search width of the expert encoder; 1 is greedy, 0 is 16. */
    public Builder expertBeam(int value) {
      Check.that(value >= 0, "expertBeam", value);
      expertBeam = value;
      return this;
    }

    /** Trunk tensors with fewer elements stay 32-bit floats; 0 is 65536. */
    public Builder quantiseFrom(long value) {
      Check.that(value >= 0, "quantiseFrom", value);
      quantiseFrom = value;
      return this;
    }

    /** The options as they are now; the builder may be used on. */
    public ConvertOptions build() {
      return new ConvertOptions(new Builder(this));
    }
  }
}
