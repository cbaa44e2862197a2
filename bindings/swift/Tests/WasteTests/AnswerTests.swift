// SPDX-License-Identifier: Apache-2.0
//
// Behaviour matrix, rows 5 to 9: text, stops, cancelling, leaving, a second answer.

import Foundation
import Testing
import Waste

extension AllTests {
  @Suite(.timeLimit(.minutes(2))) struct Answering {
    @Test func row05EmojiOverTokensComesWhole() async throws {
      let session = try await openScript(
        #""answers": [["Hi ", {"bytes": "f09f"}, {"bytes": "909d"}, "!"]]"#
      ).makeSession()
      var pieces: [Piece] = []
      for try await piece in session.streamResponse(to: "x") { pieces.append(piece) }
      #expect(pieces.map(\.text) == ["Hi ", "🐝", "!"])
      #expect(pieces.map(\.tokenCount) == [1, 2, 1])
      #expect(pieces.map(\.firstIndex) == [0, 1, 3])
    }

    @Test func row05NulInsideTextIsKept() async throws {
      let model = try await openScript(#""answers": [["a", {"bytes": "00"}, "b"]]"#)
      let session = try model.makeSession(instructions: "sys\0tem")
      let answer = try await session.respond(to: "pro\0mpt", options: .init(stop: ["\0\0"]))
      #expect(answer.content == "a\0b")
      let held = try model.tokenizer.decode(await session.tokens)
      #expect(held.contains("sys\0tem") && held.contains("pro\0mpt"))
    }

    @Test func row05InvalidUTF8IsAnArgumentError() async throws {
      let tokenizer = try await openScript(endless).tokenizer
      for bytes: [UInt8] in [[0x61, 0xFF], [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xE2, 0x82]] {
        let error = #expect(throws: WasteError.self) { try tokenizer.encode(utf8: bytes) }
        #expect(error?.code == -5)
        #expect(error?.message.contains("not UTF-8 at byte \(bytes[0] == 0x61 ? 1 : 0)") == true)
      }
      #expect(try tokenizer.encode(utf8: Array("é\0".utf8)) == [0xC3, 0xA9, 0])
      #expect(try tokenizer.encode(utf8: []) == [])
    }

    @Test func row06StopStringAcrossPieces() async throws {
      let script = #""answers": [["one E", "N", "D two"], ["one E", "N", "X two"]]"#
      let session = try await openScript(script).makeSession()
      let (texts, error) = await readAll(
        session.streamResponse(to: "x", options: .init(stop: ["END"])))
      #expect(texts.joined() == "one " && error == nil)
      let second = try await session.respond(to: "y", options: .init(stop: ["END"]))
      #expect(second.content == "one ENX two" && second.finishReason == .stop)
    }

    @Test func row07CancelBeforeTheFirstPiece() async throws {
      let session = try await openScript(endless).makeSession()
      let stream = session.streamResponse(to: "x")
      stream.cancel()
      let (texts, error) = await readAll(stream)
      #expect(texts == [] && error is CancellationError)
      #expect(try session.position == 0)
      let task = Task {
        while !Task.isCancelled { await Task.yield() }
        return await readAll(session.streamResponse(to: "x"))
      }
      task.cancel()
      let cancelled = await task.value
      #expect(cancelled.texts == [] && cancelled.error is CancellationError)
      #expect(try session.position == 0 && !session.isResponding)
      #expect(try await twoTokens(session) == "haha")
    }

    @Test(arguments: [false, true]) func row07CancelMidPrefill(byTask: Bool) async throws {
      let model = try await openScript(#""prefill_stall_ms": 60000, "# + endless)
      let session = try model.makeSession()
      let task = Task { await readAll(session.streamResponse(to: "x")) }
      #expect(try await eventually { try session.position > 0 && session.isResponding })
      let time = await elapsed {
        if byTask { task.cancel() } else { session.cancel() }
        let (texts, error) = await task.value
        #expect(texts == [] && error is CancellationError)
      }
      #expect(time < .seconds(1))
      #expect(try session.position == 68 && !session.isResponding)
    }

    @Test(arguments: [false, true]) func row07CancelMidToken(byTask: Bool) async throws {
      let script = #""answers": [["a", {"stall_ms": 60000}, "b"], ["fine"]]"#
      let session = try await openScript(script).makeSession()
      let first = AsyncStream.makeStream(of: String.self)
      let task = Task {
        var texts: [String] = []
        do {
          for try await piece in session.streamResponse(to: "x") {
            texts.append(piece.text)
            first.continuation.yield(piece.text)
          }
          return (texts, nil as (any Error)?)
        } catch {
          return (texts, error)
        }
      }
      for await text in first.stream {
        #expect(text == "a")
        break
      }
      let time = await elapsed {
        if byTask { task.cancel() } else { session.cancel() }
        let (texts, error) = await task.value
        #expect(texts == ["a"] && error is CancellationError)
      }
      #expect(time < .seconds(1))
      #expect(try session.position == 69)
      #expect(try await session.respond(to: "y").content == "fine")
    }

    @Test func row07CancelAfterTheEndAndTwice() async throws {
      let session = try await openScript(#""answers": [["a", "b"]]"#).makeSession()
      let stream = session.streamResponse(to: "x")
      var iterator = stream.makeAsyncIterator()
      #expect(try await iterator.next()?.text == "a")
      #expect(try await iterator.next()?.text == "b")
      #expect(try await iterator.next() == nil)
      for _ in 0..<2 {
        stream.cancel()
        session.cancel()
      }
      #expect(try await iterator.next() == nil)
      #expect(stream.response?.finishReason == .stop)
      let second = session.streamResponse(to: "y")
      var reader = second.makeAsyncIterator()
      #expect(try await reader.next() != nil)
      for _ in 0..<2 { session.cancel() }
      await #expect(throws: CancellationError.self) { try await reader.next() }
      #expect(try await reader.next() == nil)
      #expect(second.response?.finishReason == .cancelled)
      #expect(second.response?.content == "a" && second.response?.tokens.count == 1)
    }

    @Test func row07CancelFromAnotherThreadIsQuick() async throws {
      let session = try await openScript(#""context": 100000, "# + endless).makeSession()
      for _ in 0..<5 {
        let count = Counter()
        let task = Task {
          for try await _ in session.streamResponse(to: "x") { count.add() }
        }
        #expect(try await eventually { count.value > 10 })
        let time = await elapsed {
          Thread.detachNewThread { session.cancel() }
          await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(time < .seconds(1))
      }
    }

    /// Wherever a cancel strikes, the session holds the prompt and what the reader was given.
    @Test(arguments: [false, true])
    func row07SessionHoldsWhatTheReaderSaw(byTask: Bool) async throws {
      let session = try await openScript(#""context": 100000, "# + endless).makeSession()
      for round in 0..<40 {
        try await session.reset()
        let count = Counter()
        let stream = session.streamResponse(to: "x", options: .init(isRaw: true))
        let task = Task { for try await _ in stream { count.add() } }
        #expect(try await eventually { count.value >= round })
        if byTask { task.cancel() } else { stream.cancel() }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(stream.response != nil || round == 0)
        // An answer that ends before its first step leaves the session without the prompt.
        let position = try session.position
        #expect(position == 1 + count.value || (position == 0 && count.value == 0))
        #expect((stream.response?.content ?? "") == String(repeating: "ha", count: count.value))
      }
    }

    @Test func row07CancelledRespondThrows() async throws {
      let session = try await openScript(#""context": 100000, "# + endless).makeSession()
      let task = Task { try await session.respond(to: "x") }
      #expect(try await eventually { try session.position > 100 })
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      try await session.rewind(to: 0)
      #expect(try await twoTokens(session) == "haha")
    }

    @Test func row08BreakOutOfTheLoop() async throws {
      let session = try await openScript(endless).makeSession()
      let stream = session.streamResponse(to: "x")
      for try await _ in stream { break }
      #expect(!session.isResponding && stream.response?.finishReason == .cancelled)
      #expect(try session.position == 69)
      #expect(try await twoTokens(session) == "haha")
      for try await snapshot in session.streamResponse(to: "y").snapshots {
        if snapshot.content.count >= 6 { break }
      }
      #expect(try await twoTokens(session) == "haha")
    }

    @Test func row08DropIteratorOrStream() async throws {
      let session = try await openScript(endless).makeSession()
      _ = session.streamResponse(to: "never read")
      #expect(try session.position == 0 && !session.isResponding)
      do {
        var iterator = session.streamResponse(to: "x").makeAsyncIterator()
        #expect(try await iterator.next()?.text == "ha")
        #expect(session.isResponding)
      }
      #expect(!session.isResponding)
      _ = session.streamResponse(to: "y").makeAsyncIterator()
      #expect(try await twoTokens(session) == "haha")
    }

    @Test func row08StreamHasOneReader() async throws {
      let session = try await openScript(endless).makeSession()
      let stream = session.streamResponse(to: "x", options: .init(maximumResponseTokens: 2))
      #expect(await readAll(stream).texts == ["ha", "ha"])
      let (texts, error) = await readAll(stream)
      #expect(texts == [] && (error as? WasteError)?.code == -5)
    }

    @Test func row09SecondGenerateIsBusyAtOnce() async throws {
      let script = #""answers": [["a", {"stall_ms": 1000}, "b"]]"#
      let session = try await openScript(script).makeSession()
      let first = Task { try await session.respond(to: "x") }
      #expect(try await eventually { try session.position == 69 })
      let file = try TemporaryFolder().file("state")
      let calls: [@Sendable () async throws -> Void] = [
        { _ = try await session.respond(to: "y") },
        { _ = try await session.addMessage("m", role: .user) },
        { try await session.reset() }, { try await session.rewind(to: 0) },
        { _ = try await session.fork() }, { try await session.save(to: file) },
        { try await session.load(from: file) }, { _ = try await session.eval([1]) },
      ]
      let time = await elapsed {
        for call in calls {
          let error = await #expect(throws: WasteError.self) { try await call() }
          #expect(error?.code == -9)
        }
      }
      #expect(time < .milliseconds(500))
      #expect(session.isResponding)
      let answer = try await first.value
      #expect(answer.content == "ab" && answer.finishReason == .stop)
      #expect(try await session.respond(to: "z").content == "ab")
    }

    @Test func manyAnswersAtOnceDoNotStarveTasks() async throws {
      let count = 32
      let folder = try TemporaryFolder()
      let file = folder.file("script.json")
      try Data(#"{"answers": [[{"stall_ms": 400}, "slow"]]}"#.utf8).write(to: file)
      let url = scriptURL(file)
      let time = try await elapsed {
        try await withThrowingTaskGroup(of: String.self) { group in
          for _ in 0..<count {
            group.addTask {
              try await WasteModel.open(url).makeSession().respond(to: "x").content
            }
          }
          // While all of them block, plain tasks still run.
          group.addTask {
            let time = await elapsed { for _ in 0..<200 { await Task.yield() } }
            #expect(time < .milliseconds(400))
            return "slow"
          }
          for try await text in group { #expect(text == "slow") }
        }
      }
      #expect(time < .milliseconds(400 * count / 4))
    }

    private func twoTokens(_ session: WasteSession) async throws -> String {
      try await session.respond(to: "z", options: .init(maximumResponseTokens: 2)).content
    }
  }
}
