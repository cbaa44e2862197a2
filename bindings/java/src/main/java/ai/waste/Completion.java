// SPDX-License-Identifier: Apache-2.0
//
// What an answer came to, read from the generation before it was freed.

package ai.waste;

import java.time.Duration;
import java.util.Map;

/** A whole answer, or as much of it as was handed out before it was cancelled. Immutable. */
public final class Completion {
  private final String text;
  private final String thinking;
  private final String toolText;
  private final int[] tokens;
  private final double[] logprobs;
  private final FinishReason finishReason;
  private final Stats stats;

  Completion(
      Map<Channel, StringBuilder> said,
      int[] tokens,
      double[] logprobs,
      FinishReason finishReason,
      Stats stats) {
    text = said.get(Channel.RESPONSE).toString();
    thinking = said.get(Channel.THINKING).toString();
    toolText = said.get(Channel.TOOL).toString();
    this.tokens = tokens;
    this.logprobs = logprobs;
    this.finishReason = finishReason;
    this.stats = stats;
  }

  /** The answer, without what was thought and without calls of tools. */
  public String text() {
    return text;
  }

  /** What the model thought before it answered; empty without {@link SessionOptions} for it. */
  public String thinking() {
    return thinking;
  }

  /** Calls of tools, as the model wrote them. */
  public String toolText() {
    return toolText;
  }

  /** Every token of the answer, those of markup and of held-back text included. A copy. */
  public int[] tokens() {
    return tokens.clone();
  }

  /** The tokens' log-probabilities; zeros unless they were asked for. A copy. */
  public double[] logprobs() {
    return logprobs.clone();
  }

  /** Why the answer ended. */
  public FinishReason finishReason() {
    return finishReason;
  }

  /** How many tokens it took. */
  public Usage usage() {
    return new Usage(stats);
  }

  /** How long it took. */
  public Timings timings() {
    return new Timings(stats);
  }

  /** All counters of the answer. */
  public Stats stats() {
    return stats;
  }

  /** The text. */
  @Override
  public String toString() {
    return text;
  }

  /** How many tokens an answer took. Immutable. */
  public static final class Usage {
    private final Stats stats;

    private Usage(Stats stats) {
      this.stats = stats;
    }

    /** Tokens that were prefilled: of the prompt, and of messages before it that were pending. */
    public long promptTokens() {
      return stats.promptTokens();
    }

    /** Tokens that the model generated, markup included. */
    public long generatedTokens() {
      return stats.generatedTokens();
    }
  }

  /** How long an answer took. Immutable. */
  public static final class Timings {
    private final Stats stats;

    private Timings(Stats stats) {
      this.stats = stats;
    }

    /** The time until the first token. */
    public Duration prefill() {
      return stats.prefillTime();
    }

    /** The time of the other tokens. */
    public Duration decode() {
      return stats.decodeTime();
    }

    /** Generated tokens a second of decoding; 0 if none were decoded. */
    public double tokensPerSecond() {
      final double seconds = stats.decodeTime().toNanos() / 1e9;
      return seconds > 0 ? Math.max(0, stats.generatedTokens() - 1) / seconds : 0;
    }
  }
}
