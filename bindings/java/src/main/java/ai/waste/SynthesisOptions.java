// SPDX-License-Identifier: Apache-2.0
//
// How much of a shape is filled with random weights: waste_synthesis_options.

package ai.waste;

/** How much of a shape is filled with random weights. 0 is the default everywhere. Immutable. */
public final class SynthesisOptions {
  private final Builder set;

  private SynthesisOptions(Builder set) {
    this.set = set;
  }

  /** All defaults, to be changed. */
  public static Builder builder() {
    return new Builder();
  }

  /** All defaults: the whole shape. */
  public static SynthesisOptions defaults() {
    return builder().build();
  }

  /** These options, to be changed. */
  public Builder toBuilder() {
    return new Builder(set);
  }

  /** The struct that crosses; the caller deletes it. */
  waste_synthesis_options toNative() {
    final waste_synthesis_options made = new waste_synthesis_options();
    made.setLayers(set.layers);
    made.setExperts(set.experts);
    made.setSeed(set.seed);
    return made;
  }

  /** Sets options one by one. For one thread. */
  public static final class Builder {
    private int layers;
    private int experts;
    private long seed;

    private Builder() {}

    private Builder(Builder from) {
      layers = from.layers;
      experts = from.experts;
      seed = from.seed;
    }

    /** The first so many layers, at true width; 0 is all. */
    public Builder layers(int value) {
      Check.that(value >= 0, "layers", value);
      layers = value;
      return this;
    }

    /** So many experts of each layer; 0 is all. */
    public Builder experts(int value) {
      Check.that(value >= 0, "experts", value);
      experts = value;
      return this;
    }

    /** The same seed gives the same bytes; 0 is a seed like any other. */
    public Builder seed(long value) {
      seed = value;
      return this;
    }

    /** The options as they are now; the builder may be used on. */
    public SynthesisOptions build() {
      return new SynthesisOptions(new Builder(this));
    }
  }
}
