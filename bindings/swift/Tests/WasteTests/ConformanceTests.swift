// SPDX-License-Identifier: Apache-2.0
//
// The suite that every language runs: tokens, texts and positions, byte for byte.

import Foundation
import Testing
import Waste

struct Suite: Decodable, Sendable {
  struct Options: Decodable, Sendable {
    var maxTokens: Int?
    var temperature: Double?
    var topK: Int?
    var topP: Double?
    var minP: Double?
    var repeatPenalty: Double?
    var presencePenalty: Double?
    var frequencyPenalty: Double?
    var penaltyWindow: Int?
    var seed: Int64?
    var logprobs: Bool?
    var raw: Bool?
    var markupOut: Bool?
  }
  struct Expectation: Decodable, Sendable {
    let tokens: [TokenID]
    let text: String
    let thinking: String
    let finish: String?
    let error: String?
    let logprobs: [Double]?
    let position: Int
  }
  struct Bias: Decodable, Sendable {
    let token: TokenID
    let value: Double
    init(from decoder: any Decoder) throws {
      var pair = try decoder.unkeyedContainer()
      token = try pair.decode(TokenID.self)
      value = try pair.decode(Double.self)
    }
  }
  struct Turn: Decodable, Sendable {
    let prompt: String
    let options: Options?
    let stop: [String]?
    let stopTokens: [TokenID]?
    let bias: [Bias]?
    let cancelAfter: Int?
    let expect: Expectation
  }
  struct Case: Decodable, Sendable, CustomTestStringConvertible {
    let name: String
    let script: String?
    let system: String?
    let thinking: Bool?
    let turns: [Turn]
    var testDescription: String { name }
  }
  struct Tokens: Decodable, Sendable, CustomTestStringConvertible {
    let text: String
    let markup: Bool?
    let tokens: [TokenID]
    var testDescription: String { "tokens of \(text.debugDescription)" }
  }
  let context: Int
  let cases: [Case]
  let tokenize: [Tokens]?

  static let mini = read("mini.json")
  static let scripted = read("scripted.json")

  /// A suite that cannot be read is one without cases, which a test finds.
  private static func read(_ name: String) -> Suite {
    let file = Place.conformance.appendingPathComponent(name)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let suite = try? decoder.decode(Suite.self, from: Data(contentsOf: file))
    return suite ?? Suite(context: 0, cases: [], tokenize: nil)
  }
}

/// The mini model, opened once with the context of its suite.
private actor SharedMini {
  static let shared = SharedMini()
  private var opening: Task<WasteModel, any Error>?

  func model() async throws -> WasteModel {
    let task =
      opening
      ?? Task {
        try await WasteModel.open(
          Place.mini, options: OpenOptions(contextTokens: Suite.mini.context))
      }
    opening = task
    return try await task.value
  }
}

extension AllTests {
  @Suite struct Conformance {
    @Test func suitesAreThere() {
      #expect(Suite.mini.cases.count >= 20)
      #expect(Suite.scripted.cases.count >= 10)
      #expect(Suite.mini.tokenize?.isEmpty == false)
    }

    @Test(arguments: Suite.mini.cases) func mini(_ item: Suite.Case) async throws {
      try await run(item, on: SharedMini.shared.model())
    }

    @Test(arguments: Suite.scripted.cases) func scripted(_ item: Suite.Case) async throws {
      let script = Place.conformance.appendingPathComponent("scripts/\(item.script!).json")
      let model = try await WasteModel.open(
        scriptURL(script), options: OpenOptions(contextTokens: Suite.scripted.context))
      try await run(item, on: model)
    }

    @Test(arguments: Suite.mini.tokenize ?? []) func tokenize(_ item: Suite.Tokens) async throws {
      let tokenizer = try await SharedMini.shared.model().tokenizer
      let tokens =
        item.markup == true
        ? try tokenizer.encodeMarkup(item.text) : try tokenizer.encode(item.text)
      #expect(tokens == item.tokens)
      #expect(try tokenizer.decode(tokens) == item.text)
    }

    private func run(_ item: Suite.Case, on model: WasteModel) async throws {
      let session = try model.makeSession(
        instructions: item.system, thinking: item.thinking ?? false)
      for turn in item.turns { try await run(turn, on: session) }
    }

    private func run(_ turn: Suite.Turn, on session: WasteSession) async throws {
      let stream = session.streamResponse(to: turn.prompt, options: options(turn))
      var (text, thinking, count) = ("", "", 0)
      var failure: (any Error)?
      do {
        for try await piece in stream {
          if piece.channel == .thinking { thinking += piece.text } else { text += piece.text }
          count += 1
          if count == turn.cancelAfter { session.cancel() }
        }
      } catch {
        failure = error
      }
      let (expected, response) = (turn.expect, stream.response)
      #expect(Array(text.utf8) == Array(expected.text.utf8))
      #expect(Array(thinking.utf8) == Array(expected.thinking.utf8))
      #expect((response?.tokens ?? []) == expected.tokens)
      #expect(try session.position == expected.position)
      #expect(try await session.tokens.count == expected.position)
      if let error = expected.error {
        #expect(name((failure as? WasteError)?.code) == error)
      } else {
        #expect(name(response?.finishReason) == expected.finish)
        #expect((failure is CancellationError) == (expected.finish == "cancelled"))
        #expect(response?.content == text && response?.thinking == thinking)
      }
      try compare(response?.logprobs ?? [], expected.logprobs ?? [])
    }

    private func compare(_ found: [Double], _ expected: [Double]) throws {
      try #require(found.count == expected.count)
      for (found, expected) in zip(found, expected) { #expect(abs(found - expected) < 1e-3) }
    }

    private func options(_ turn: Suite.Turn) -> GenerationOptions {
      let given = turn.options
      return GenerationOptions(
        temperature: given?.temperature, maximumResponseTokens: given?.maxTokens,
        seed: given?.seed ?? 0, topK: given?.topK, topP: given?.topP, minP: given?.minP,
        repeatPenalty: given?.repeatPenalty, presencePenalty: given?.presencePenalty,
        frequencyPenalty: given?.frequencyPenalty, penaltyWindow: given?.penaltyWindow,
        stop: turn.stop ?? [], stopTokens: turn.stopTokens ?? [],
        logitBias: Dictionary(uniqueKeysWithValues: (turn.bias ?? []).map { ($0.token, $0.value) }),
        includesLogprobs: given?.logprobs ?? false, isRaw: given?.raw ?? false,
        includesMarkup: given?.markupOut ?? false)
    }

    private func name(_ code: Int32?) -> String? {
      let names = [
        "OK", "IO", "FORMAT", "CORRUPT", "UNSUPPORTED", "ARGUMENT", "RAM_BUDGET", "NO_MEMORY",
        "CONTEXT_FULL", "BUSY", "CANCELLED", "VERSION", "INTERNAL",
      ]
      return code.map { names[Int(-$0)] }
    }

    private func name(_ reason: FinishReason?) -> String? { reason.map { "\($0)" } }
  }
}
