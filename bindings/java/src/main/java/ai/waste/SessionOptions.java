// SPDX-License-Identifier: Apache-2.0
//
// How a session is made: waste_session_options, and the system message of a chat.

package ai.waste;

/** How a session is made. Immutable. */
public final class SessionOptions {
  private final Builder set;

  private SessionOptions(Builder set) {
    this.set = set;
  }

  /** All defaults, to be changed. */
  public static Builder builder() {
    return new Builder();
  }

  /** All defaults. */
  public static SessionOptions defaults() {
    return builder().build();
  }

  /** These options, to be changed. */
  public Builder toBuilder() {
    return new Builder(set);
  }

  /** The struct that crosses; the caller deletes it. */
  waste_session_options toNative() {
    final waste_session_options made = new waste_session_options();
    made.setThinking(set.thinking ? 1 : 0);
    made.setContext(set.contextTokens);
    return made;
  }

  String system() {
    return set.system;
  }

  /** Sets options one by one. For one thread. */
  public static final class Builder {
    private boolean thinking;
    private long contextTokens;
    private String system;

    private Builder() {}

    private Builder(Builder from) {
      thinking = from.thinking;
      contextTokens = from.contextTokens;
      system = from.system;
    }

    /** Whether the model may think before it answers, where it can. */
    public Builder thinking(boolean value) {
      thinking = value;
      return this;
    }

    /** Positions; 0 (the default) is the context that the model was opened with. */
    public Builder contextTokens(long value) {
      Check.that(value >= 0, "contextTokens", value);
      contextTokens = value;
      return this;
    }

    /** The system message of a {@link ChatSession}; null (the default) for none. */
    public Builder system(String value) {
      system = value;
      return this;
    }

    /** The options as they are now; the builder may be used on. */
    public SessionOptions build() {
      return new SessionOptions(new Builder(this));
    }
  }
}
