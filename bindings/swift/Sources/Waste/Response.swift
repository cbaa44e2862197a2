// SPDX-License-Identifier: Apache-2.0
//
// What an answer is made of: pieces as they come, snapshots of all so far, and the whole.

import CWaste

/// Who speaks in a message.
public enum Role: Sendable, Hashable {
  /// Instructions, before everything else.
  case system
  /// Who asks.
  case user
  /// The model.
  case assistant

  var raw: RawRole {
    switch self {
    case .system: .system
    case .user: .user
    case .assistant: .assistant
    }
  }
}

/// What a piece of text is part of.
public enum Channel: Sendable, Hashable {
  /// The answer proper.
  case response
  /// What the model thinks before it answers.
  case thinking
  /// A call of a tool.
  case tool

  init(_ raw: Int32) {
    switch RawChannel(rawValue: raw) {
    case .thinking: self = .thinking
    case .tool: self = .tool
    case .response, nil: self = .response
    }
  }
}

/// Why an answer ended.
public enum FinishReason: Sendable, Hashable {
  /// The model ended its turn, or a stop string or token came.
  case stop
  /// `maximumResponseTokens` or the context is reached.
  case length
  /// Cancelled, closed, or its reader left.
  case cancelled
  /// An error ended it, which was thrown.
  case failed
}

/// The next text of an answer: whole characters of one channel.
public struct Piece: Sendable, Hashable {
  /// Never empty.
  public let text: String
  /// What the text is part of.
  public let channel: Channel
  /// The last token that this piece consumed.
  public let token: TokenID
  /// The place in the answer of the first token that this piece consumed.
  public let firstIndex: Int
  /// Tokens consumed: several for an emoji, none for the rest of a long text.
  public let tokenCount: Int
  /// Of `token`, natural logarithm, before penalties. 0 unless the options ask for it.
  public let logprob: Double
  /// Of the session after this piece.
  public let position: Int

  init(_ text: String, _ raw: waste_token) {
    self.text = text
    channel = Channel(raw.channel)
    token = raw.id
    firstIndex = Int(raw.first_index)
    tokenCount = Int(raw.count)
    logprob = raw.logprob
    position = Int(raw.position)
  }
}

/// All of an answer so far, for views that show it whole.
public struct Snapshot: Sendable, Hashable {
  /// The response.
  public internal(set) var content = ""
  /// What the model thought before it.
  public internal(set) var thinking = ""

  /// Nothing yet.
  public init() {}

  /// Adds the piece that comes next.
  public mutating func add(_ piece: Piece) {
    switch piece.channel {
    case .response: content += piece.text
    case .thinking: thinking += piece.text
    case .tool: break
    }
  }
}

/// A whole answer, or as much as there was when it ended.
public struct Response: Sendable, Hashable {
  /// Counts of tokens.
  public struct Usage: Sendable, Hashable {
    /// Tokens that were prefilled for this answer.
    public let promptTokens: Int
    /// Tokens of the answer, those that end it included.
    public let generatedTokens: Int
  }

  /// Time spent in the engine.
  public struct Timings: Sendable, Hashable {
    /// Reading the prompt.
    public let prefill: Duration
    /// Making the answer.
    public let decode: Duration
  }

  /// The text of the response.
  public let content: String
  /// What the model thought before it, if it did.
  public let thinking: String
  /// Every token of the answer, those that end it included.
  public let tokens: [TokenID]
  /// One for each token, natural logarithms before penalties; empty unless the options ask for it.
  public let logprobs: [Double]
  /// Why it ended.
  public let finishReason: FinishReason
  /// All counters of this answer.
  public let statistics: Statistics

  /// Counts of tokens, from `statistics`.
  public var usage: Usage {
    Usage(promptTokens: statistics.promptTokens, generatedTokens: statistics.generatedTokens)
  }
  /// Times, from `statistics`.
  public var timings: Timings {
    Timings(prefill: statistics.prefill, decode: statistics.decode)
  }
}

/// Logits, row by row.
public struct Logits: Sendable, Hashable {
  /// The length of a row.
  public let vocabularySize: Int
  /// [rowCount, vocabularySize]
  public let values: [Float]

  /// How many tokens there are logits of.
  public var rowCount: Int { vocabularySize > 0 ? values.count / vocabularySize : 0 }

  /// Row `index` of [0, rowCount).
  public subscript(row index: Int) -> ArraySlice<Float> {
    values[index * vocabularySize..<(index + 1) * vocabularySize]
  }
}
