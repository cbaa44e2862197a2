// SPDX-License-Identifier: Apache-2.0
//
// How one answer is sampled and where it ends, as a value. nil leaves a field to the library.

import CWaste

/// The number of a token in a model's vocabulary.
public typealias TokenID = Int32

/// How one answer is sampled and where it ends.
public struct GenerationOptions: Sendable, Hashable {
  /// nil: 0, greedy, the likeliest token each time.
  public var temperature: Double?
  /// nil: until the turn ends or the context is full.
  public var maximumResponseTokens: Int?
  /// The same seed gives the same text. 0 is a seed like any other.
  public var seed: Int64
  /// Keeps the k likeliest tokens. nil: all.
  public var topK: Int?
  /// Keeps the smallest set of tokens of this probability. nil: 1.
  public var topP: Double?
  /// Drops tokens below this share of the likeliest. nil: 0.
  public var minP: Double?
  /// Divides (or multiplies) the logits of recent tokens. nil: 1.
  public var repeatPenalty: Double?
  /// Subtracted once from the logit of a token that occurred recently. nil: 0.
  public var presencePenalty: Double?
  /// Subtracted for each recent occurrence. nil: 0.
  public var frequencyPenalty: Double?
  /// Tokens that count as recent. nil: 64.
  public var penaltyWindow: Int?
  /// Texts that end the answer and are no part of it. Looked for in the response, not in thinking.
  public var stop: [String]
  /// Tokens that end the answer and are no part of it.
  public var stopTokens: [TokenID]
  /// Numbers added to logits; -infinity forbids a token.
  public var logitBias: [TokenID: Double]
  /// Keeps log-probabilities: `Piece.logprob`, `Response.logprobs`.
  public var includesLogprobs: Bool
  /// The prompt is plain text to continue, not a user's message.
  public var isRaw: Bool
  /// Special tokens come out as their text too.
  public var includesMarkup: Bool

  /// All fields have the defaults of a greedy answer that runs until its turn ends.
  public init(
    temperature: Double? = nil, maximumResponseTokens: Int? = nil, seed: Int64 = 0,
    topK: Int? = nil, topP: Double? = nil, minP: Double? = nil, repeatPenalty: Double? = nil,
    presencePenalty: Double? = nil, frequencyPenalty: Double? = nil, penaltyWindow: Int? = nil,
    stop: [String] = [], stopTokens: [TokenID] = [], logitBias: [TokenID: Double] = [:],
    includesLogprobs: Bool = false, isRaw: Bool = false, includesMarkup: Bool = false
  ) {
    self.temperature = temperature
    self.maximumResponseTokens = maximumResponseTokens
    self.seed = seed
    self.topK = topK
    self.topP = topP
    self.minP = minP
    self.repeatPenalty = repeatPenalty
    self.presencePenalty = presencePenalty
    self.frequencyPenalty = frequencyPenalty
    self.penaltyWindow = penaltyWindow
    self.stop = stop
    self.stopTokens = stopTokens
    self.logitBias = logitBias
    self.includesLogprobs = includesLogprobs
    self.isRaw = isRaw
    self.includesMarkup = includesMarkup
  }

  /// All but stops and biases, which are told to the generation one by one.
  func raw() throws(WasteError) -> waste_generation_options {
    var raw = waste_generation_options.sized()
    raw.max_tokens = try narrow(
      explicit(maximumResponseTokens, "maximumResponseTokens"), "maximumResponseTokens")
    raw.temperature = temperature ?? 0
    raw.top_p = try explicit(topP, "topP")
    raw.min_p = minP ?? 0
    raw.repeat_penalty = try explicit(repeatPenalty, "repeatPenalty")
    raw.presence_penalty = presencePenalty ?? 0
    raw.frequency_penalty = frequencyPenalty ?? 0
    raw.seed = seed
    raw.top_k = try narrow(explicit(topK, "topK"), "topK")
    raw.penalty_window = try narrow(explicit(penaltyWindow, "penaltyWindow"), "penaltyWindow")
    raw.logprobs = includesLogprobs ? 1 : 0
    raw.raw = isRaw ? 1 : 0
    raw.markup_out = includesMarkup ? 1 : 0
    return raw
  }
}
