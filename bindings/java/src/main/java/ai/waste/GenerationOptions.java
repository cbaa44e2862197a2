// SPDX-License-Identifier: Apache-2.0
//
// How an answer is made: waste_generation_options, and the stops and biases that are set one by
// one.

package ai.waste;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.function.LongSupplier;

/** How an answer is made. By default greedy, and as long as the model likes. Immutable. */
public final class GenerationOptions {
  private final Builder set;

  private GenerationOptions(Builder set) {
    this.set = set;
  }

  /** All defaults, to be changed. */
  public static Builder builder() {
    return new Builder();
  }

  /** All defaults. */
  public static GenerationOptions defaults() {
    return builder().build();
  }

  /** These options, to be changed. */
  public Builder toBuilder() {
    return new Builder(set);
  }

  /** The struct that crosses; the caller deletes it. */
  waste_generation_options toNative(boolean raw) {
    final waste_generation_options made = new waste_generation_options();
    made.setMax_tokens(set.maxTokens);
    made.setTemperature(set.temperature);
    made.setTop_k(set.topK);
    made.setTop_p(set.topP);
    made.setMin_p(set.minP);
    made.setRepeat_penalty(set.repeatPenalty);
    made.setPresence_penalty(set.presencePenalty);
    made.setFrequency_penalty(set.frequencyPenalty);
    made.setPenalty_window(set.penaltyWindow);
    made.setSeed(set.seed);
    made.setLogprobs(set.logprobs ? 1 : 0);
    made.setMarkup_out(set.markupOut ? 1 : 0);
    made.setRaw(raw ? 1 : 0);
    return made;
  }

  boolean raw() {
    return set.raw;
  }

  /** What has no field of the struct, told to a generation that has not begun: a status. */
  long addTo(long generation, byte[] error) {
    final List<LongSupplier> calls = new ArrayList<>();
    for (String stop : set.stops) {
      final byte[] text = Utf8.encode(stop, "stop string");
      calls.add(() -> WasteNative.waste_generation_add_stop(generation, text, error));
    }
    for (int token : set.stopTokens)
      calls.add(() -> WasteNative.waste_generation_add_stop_token(generation, token, error));
    set.biases.forEach(
        (token, bias) ->
            calls.add(
                () -> WasteNative.waste_generation_add_bias(generation, token, bias, error)));
    long status = WasteNativeConstants.WASTE_OK;
    for (LongSupplier call : calls)
      if (status == WasteNativeConstants.WASTE_OK) status = Answer.patiently(call);
    return status;
  }

  /** Sets options one by one. For one thread. */
  public static final class Builder {
    private int maxTokens;
    private double temperature;
    private int topK;
    private double topP = 1;
    private double minP;
    private double repeatPenalty = 1;
    private double presencePenalty;
    private double frequencyPenalty;
    private int penaltyWindow;
    private long seed;
    private boolean logprobs;
    private boolean raw;
    private boolean markupOut;
    private final List<String> stops = new ArrayList<>();
    private final List<Integer> stopTokens = new ArrayList<>();
    private final TreeMap<Integer, Double> biases = new TreeMap<>();

    private Builder() {}

    private Builder(Builder from) {
      maxTokens = from.maxTokens;
      temperature = from.temperature;
      topK = from.topK;
      topP = from.topP;
      minP = from.minP;
      repeatPenalty = from.repeatPenalty;
      presencePenalty = from.presencePenalty;
      frequencyPenalty = from.frequencyPenalty;
      penaltyWindow = from.penaltyWindow;
      seed = from.seed;
      logprobs = from.logprobs;
      raw = from.raw;
      markupOut = from.markupOut;
      stops.addAll(from.stops);
      stopTokens.addAll(from.stopTokens);
      biases.putAll(from.biases);
    }

    /** Most tokens of the answer; 0 (the default) is until the turn ends or the context is full. */
    public Builder maxTokens(int value) {
      Check.that(value >= 0, "maxTokens", value);
      maxTokens = value;
      return this;
    }

    /** Spread of the choice; 0 (the default) takes the likeliest token each time. */
    public Builder temperature(double value) {
      Check.that(value >= 0, "temperature", value);
      temperature = value;
      return this;
    }

    /** Keeps the k likeliest tokens; 0 (the default) keeps all. */
    public Builder topK(int value) {
      Check.that(value >= 0, "topK", value);
      topK = value;
      return this;
    }

    /** Keeps the smallest set of tokens of this probability, above 0 to 1 (the default). */
    public Builder topP(double value) {
      Check.that(value > 0 && value <= 1, "topP", value);
      topP = value;
      return this;
    }

    /** Drops tokens below this share of the likeliest, 0 (the default) to 1. */
    public Builder minP(double value) {
      Check.that(value >= 0 && value <= 1, "minP", value);
      minP = value;
      return this;
    }

    /** Divides (or multiplies) the logits of recent tokens; 1 (the default) does nothing. */
    public Builder repeatPenalty(double value) {
      Check.that(value > 0, "repeatPenalty", value);
      repeatPenalty = value;
      return this;
    }

    /** Subtracted once from the logit of a token that occurred recently; 0 by default. */
    public Builder presencePenalty(double value) {
      Check.that(!Double.isNaN(value), "presencePenalty", value);
      presencePenalty = value;
      return this;
    }

    /** Subtracted for each recent occurrence; 0 by default. */
    public Builder frequencyPenalty(double value) {
      Check.that(!Double.isNaN(value), "frequencyPenalty", value);
      frequencyPenalty = value;
      return this;
    }

    /** Tokens that count as recent; 0 (the default) is 64. */
    public Builder penaltyWindow(int value) {
      Check.that(value >= 0, "penaltyWindow", value);
      penaltyWindow = value;
      return this;
    }

    /** Same seed, same text, on every machine; 0 (the default) is a seed like any other. */
    public Builder seed(long value) {
      seed = value;
      return this;
    }

    /** Whether log-probabilities of the tokens are kept. */
    public Builder logprobs(boolean value) {
      logprobs = value;
      return this;
    }

    /** Whether the prompt of a {@link ChatSession} is plain text to continue and no message. */
    public Builder raw(boolean value) {
      raw = value;
      return this;
    }

    /** Whether special tokens come out as their text too. */
    public Builder markupOut(boolean value) {
      markupOut = value;
      return this;
    }

    /** Adds text that ends the answer and is not part of it. */
    public Builder stop(String text) {
      Check.that(!text.isEmpty(), "a stop string", "empty");
      stops.add(text);
      return this;
    }

    /** Adds a token that ends the answer. */
    public Builder stopToken(int token) {
      stopTokens.add(token);
      return this;
    }

    /** A number that is added to the logit of {@code token}; negative infinity forbids it. */
    public Builder bias(int token, double value) {
      Check.that(!Double.isNaN(value), "the bias of token " + token, value);
      biases.put(token, value);
      return this;
    }

    /** The options as they are now; the builder may be used on. */
    public GenerationOptions build() {
      return new GenerationOptions(new Builder(this));
    }
  }
}
