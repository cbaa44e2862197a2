// SPDX-License-Identifier: Apache-2.0
//
// How a model is opened: waste_open_options. The order of the enums is that of the C API's numbers,
// which a test compares.

package ai.waste;

import java.util.Objects;

/** How a model is opened. Immutable. */
public final class ModelOptions {
  /** How expert records are read. */
  public enum Io {
    /** Direct where the drive allows it. */
    AUTO,
    /** Past the system's page cache. */
    DIRECT,
    /** Through the system's page cache. */
    BUFFERED
  }

  /** How numbers are computed. */
  public enum Arithmetic {
    /** In this version the same as exact. */
    FAST,
    /** 32-bit floats over dequantised weights. */
    EXACT
  }

  /** Instruction sets. Asking for one that the machine lacks is {@link Status#UNSUPPORTED}. */
  public enum InstructionSet {
    /** The best that the machine has. */
    BEST,
    /** Plain code. */
    SCALAR,
    /** x86-64 with AVX2. */
    AVX2,
    /** x86-64 with AVX-512. */
    AVX512,
    /** Arm. */
    NEON,
    /** x86-64 with AVX-512, VBMI and VNNI. */
    AVX512_VBMI;

    static InstructionSet of(int code) {
      return code >= 0 && code < values().length ? values()[code] : BEST;
    }
  }

  private static final int LOOKAHEAD_DEFAULT = 0;
  private static final int LOOKAHEAD_OFF = 2;

  private final Builder set;

  private ModelOptions(Builder set) {
    this.set = set;
  }

  /** All defaults, to be changed. */
  public static Builder builder() {
    return new Builder();
  }

  /** All defaults. */
  public static ModelOptions defaults() {
    return builder().build();
  }

  /** These options, to be changed. */
  public Builder toBuilder() {
    return new Builder(set);
  }

  /** The struct that crosses; the caller deletes it. */
  waste_open_options toNative() {
    final byte[] cpus = Utf8.encode(set.cpuList, "cpuList");
    final waste_open_options made = new waste_open_options();
    made.setThreads(set.threads);
    made.setBudget_bytes(set.ramBudget);
    made.setContext(set.contextTokens);
    made.setIo(set.io.ordinal());
    made.setVerify(set.verify ? 1 : 0);
    made.setLookahead(set.lookahead ? LOOKAHEAD_DEFAULT : LOOKAHEAD_OFF);
    made.setArithmetic(set.arithmetic.ordinal());
    made.setIsa(set.instructionSet.ordinal());
    made.setRead_lanes(set.readLanes);
    if (cpus.length > 0 && made.set_cpu_list(cpus) != 0) {
      made.delete();
      throw new OutOfMemoryError("the list of CPUs");
    }
    return made;
  }

  /** Sets options one by one. For one thread. */
  public static final class Builder {
    private int threads;
    private long ramBudget;
    private long contextTokens;
    private Io io = Io.AUTO;
    private boolean verify;
    private boolean lookahead = true;
    private Arithmetic arithmetic = Arithmetic.FAST;
    private InstructionSet instructionSet = InstructionSet.BEST;
    private int readLanes;
    private String cpuList = "";

    private Builder() {}

    private Builder(Builder from) {
      threads = from.threads;
      ramBudget = from.ramBudget;
      contextTokens = from.contextTokens;
      io = from.io;
      verify = from.verify;
      lookahead = from.lookahead;
      arithmetic = from.arithmetic;
      instructionSet = from.instructionSet;
      readLanes = from.readLanes;
      cpuList = from.cpuList;
    }

    /**
     * Threads that work; 0 (the default) is one for each CPU of the {@link #cpuList list}, or
     * without one for each core granted to this process that is not slow.
     */
    public Builder threads(int value) {
      Check.that(value >= 0, "threads", value);
      threads = value;
      return this;
    }

    /** Bytes for everything of this model; 0 (the default) is automatic, see {@link MemoryPlan}. */
    public Builder ramBudget(long value) {
      Check.that(value >= 0, "ramBudget", value);
      ramBudget = value;
      return this;
    }

    /** Positions that a session may hold; 0 (the default) is the model's maximum, at most 8192. */
    public Builder contextTokens(long value) {
      Check.that(value >= 0, "contextTokens", value);
      contextTokens = value;
      return this;
    }

    /** How expert records are read. */
    public Builder io(Io value) {
      io = Objects.requireNonNull(value);
      return this;
    }

    /** Whether the checksum of every record that is read is checked; otherwise only headers are. */
    public Builder verify(boolean value) {
      verify = value;
      return this;
    }

    /** Whether experts that the next layer is likely to need are read ahead (the default). */
    public Builder lookahead(boolean value) {
      lookahead = value;
      return this;
    }

    /** How numbers are computed. */
    public Builder arithmetic(Arithmetic value) {
      arithmetic = Objects.requireNonNull(value);
      return this;
    }

    /** The instruction set to use. */
    public Builder instructionSet(InstructionSet value) {
      instructionSet = Objects.requireNonNull(value);
      return this;
    }

    /** Experts read at once, at most 32; 0 (the default) is 2, 4 or 8, as measured at open. */
    public Builder readLanes(int value) {
      Check.that(value >= 0, "readLanes", value);
      readLanes = value;
      return this;
    }

    /**
     * The CPUs to compute on, as in "0-3,8"; Linux only. A thread that waits for tokens is one of
     * those that compute, and is put back where it was after each step. Empty (the default): where
     * the system puts them, but on no slow CPU unless {@link #threads} are asked for.
     */
    public Builder cpuList(String value) {
      cpuList = Objects.requireNonNull(value);
      return this;
    }

    /** Memory for everything of this model. */
    public Builder ramBudget(DataSize value) {
      return ramBudget(value.toBytes());
    }

    /** The options as they are now; the builder may be used on. */
    public ModelOptions build() {
      return new ModelOptions(new Builder(this));
    }
  }
}
