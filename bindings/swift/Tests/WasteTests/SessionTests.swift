// SPDX-License-Identifier: Apache-2.0
//
// Behaviour matrix, rows 12 and 13, and the rest of what a session can do.

import Foundation
import Testing
import Waste

extension AllTests {
  @Suite(.timeLimit(.minutes(2))) struct Sessions {
    @Test func row12PromptLongerThanTheContext() async throws {
      let model = try await openScript(#""context": 128, "# + endless)
      let session = try model.makeSession()
      _ = try await session.respond(to: "x", options: .init(maximumResponseTokens: 2))
      let before = try await session.tokens
      let long = String(repeating: "a", count: 200)
      for isRaw in [false, true] {
        let error = await #expect(throws: WasteError.self) {
          try await session.respond(to: long, options: .init(isRaw: isRaw))
        }
        #expect(error?.code == -8)
      }
      await #expect(throws: WasteError.self) { try await session.addMessage(long, role: .user) }
      #expect(try await session.tokens == before && !session.isResponding)
      let rest = try await session.respond()
      #expect(rest.finishReason == .length)
      #expect(try session.position == 128)
    }

    @Test func row13SaveNewProcessLoadContinue() async throws {
      let folder = try TemporaryFolder()
      let file = folder.file("state 🐝")
      let model = try await WasteModel.open(Place.mini)
      let session = try model.makeSession()
      _ = try await session.respond(to: "What is the capital of Italy?")
      try await session.save(to: file)
      let expected = try await session.respond(to: "What is the capital of Japan?").tokens
      let run = try await runProbe(["resume", Place.mini.absoluteString, file.absoluteString])
      #expect(run.code == 0)
      #expect(run.output == expected.map(String.init).joined(separator: " ") + "\n")
    }

    @Test func damagedOrForeignStateChangesNothing() async throws {
      let folder = try TemporaryFolder()
      let file = folder.file("state")
      let session = try await openScript(endless).makeSession()
      _ = try await session.respond(to: "x", options: .init(maximumResponseTokens: 2))
      let before = try await session.tokens
      try await session.save(to: file)
      var bytes = try Data(contentsOf: file)
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: folder.file("damaged"))
      for name in ["damaged", "missing"] {
        let error = await #expect(throws: WasteError.self) {
          try await session.load(from: folder.file(name))
        }
        #expect(error?.code == (name == "missing" ? -1 : -3))
      }
      let foreign = try await WasteModel.open(Place.mini).makeSession()
      await #expect(throws: WasteError.self) { try await foreign.load(from: file) }
      #expect(try await session.tokens == before && foreign.position == 0)
    }

    @Test func rewindForkAndReset() async throws {
      let model = try await WasteModel.open(Place.mini)
      let session = try model.makeSession(instructions: "You are terse.")
      let start = try session.position
      #expect(start > 0)
      let first = try await session.respond(to: "What is the capital of France?")
      let fork = try await session.fork()
      #expect(try await fork.tokens == session.tokens)
      try await session.rewind(to: start)
      #expect(try session.position == start)
      let again = try await session.respond(to: "What is the capital of France?")
      #expect(again.tokens == first.tokens)
      await #expect(throws: WasteError.self) { try await session.rewind(to: 10_000) }
      await #expect(throws: WasteError.self) { try await session.rewind(to: -1) }
      try await session.reset()
      #expect(try await session.tokens == [])
      #expect(try await fork.respond(to: "What is the capital of Italy?").content.contains("Rome"))
    }

    @Test func messagesOfAnyRoleComeBeforeAnAnswer() async throws {
      let model = try await WasteModel.open(Place.mini)
      let session = try model.makeSession()
      try await session.addMessage("You are terse.", role: .system)
      try await session.addMessage("What is the capital of Italy?", role: .user)
      try await session.addMessage("The capital of Italy is Rome.", role: .assistant)
      try await session.addMessage("What is the capital of Japan?", role: .user)
      let answer = try await session.respond()
      #expect(answer.content == "The capital of Japan is Tokyo.")
      let text = try model.tokenizer.decode(await session.tokens)
      #expect(text.contains("You are terse.") && text.contains("is Rome."))
      await #expect(throws: WasteError.self) { try await model.makeSession().respond() }
    }

    @Test func thinkingHasItsChannel() async throws {
      let model = try await WasteModel.open(Place.mini)
      #expect(try model.info.canThink)
      let session = try model.makeSession(thinking: true, contextTokens: 128)
      let stream = session.streamResponse(to: "What is the capital of Italy?")
      var last = Snapshot()
      var channels: [Waste.Channel] = []
      let snapshots = stream.snapshots
      for try await snapshot in snapshots {
        #expect(snapshot.thinking.hasPrefix(last.thinking))
        channels.append(snapshot.thinking == last.thinking ? .response : .thinking)
        last = snapshot
      }
      #expect(last.thinking == "Italy: capital Rome.")
      #expect(last.content == "The capital of Italy is Rome.")
      #expect(channels.first == .thinking && channels.last == .response)
      #expect(stream.response?.content == last.content)
      #expect(try session.statistics.contextTokens == 128)
    }

    @Test func evalGivesLogits() async throws {
      let model = try await WasteModel.open(Place.mini)
      let session = try model.makeSession()
      let tokens = try model.tokenizer.encode("The capital of Italy")
      let logits = try await session.eval(tokens, logitRows: 2)
      let vocabulary = try model.info.vocabularySize
      #expect(logits.rowCount == 2 && logits.values.count == 2 * vocabulary)
      #expect(try session.position == tokens.count)
      let last = logits[row: 1]
      let best = try #require(last.indices.max { last[$0] < last[$1] }) - last.startIndex
      let other = try model.makeSession()
      let raw = GenerationOptions(maximumResponseTokens: 1, isRaw: true)
      #expect(
        try await other.respond(to: "The capital of Italy", options: raw).tokens == [Int32(best)])
      #expect(try await session.eval([1]).values.isEmpty)
      for (tokens, rows) in [([TokenID(-1)], 0), ([99_999], 0), ([1], 2), ([1], -1)] {
        let error = await #expect(throws: WasteError.self) {
          try await session.eval(tokens, logitRows: rows)
        }
        #expect(error?.code == -5)
      }
      let error = await #expect(throws: WasteError.self) {
        try await session.eval([TokenID](repeating: 1, count: 100_000))
      }
      #expect(error?.code == -8)
    }

    @Test func failedReadIsReportedAndTheSessionGoesOn() async throws {
      let script =
        #""answers": [["be", {"error": "IO", "message": "bank 3", "times": 1}, "never"], ["fine"]]"#
      let session = try await openScript(script).makeSession()
      let stream = session.streamResponse(to: "x")
      let (texts, error) = await readAll(stream)
      #expect(texts == ["be"])
      guard case .io(let message) = error as? WasteError else {
        Issue.record("\(error as Any)")
        return
      }
      #expect(message.contains("bank 3"))
      #expect(stream.response?.finishReason == .failed && stream.response?.content == "be")
      #expect(!session.isResponding)
      #expect(try await session.respond(to: "y").content == "fine")
    }
  }
}
