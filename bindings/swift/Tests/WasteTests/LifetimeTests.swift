// SPDX-License-Identifier: Apache-2.0
//
// Behaviour matrix, rows 10, 11, 14 and 17: closing, freeing, exiting, many at once.

import Foundation
import Testing
import Waste

extension AllTests {
  @Suite(.timeLimit(.minutes(3))) struct Lifetime {
    static let stalling = #""answers": [["a", {"stall_ms": 60000}, "b"]]"#

    @Test(arguments: ["session", "model"]) func row10CloseDuringGenerate(what: String) async throws
    {
      let model = try await openScript(Self.stalling)
      let session = try model.makeSession()
      let stream = session.streamResponse(to: "x")
      let reader = Task { await readAll(stream) }
      #expect(try await eventually { try session.position == 69 })
      let time = await elapsed {
        if what == "model" { await model.close() } else { await session.close() }
      }
      #expect(time < .seconds(1))
      let (texts, error) = await reader.value
      #expect(texts == ["a"] && error is CancellationError)
      #expect(session.isClosed && model.isClosed == (what == "model"))
      let closed = await #expect(throws: WasteError.self) { try await session.respond(to: "y") }
      guard case .closed = closed else {
        Issue.record("\(String(describing: closed))")
        return
      }
    }

    @Test func row10CloseBetweenTwoPieces() async throws {
      let model = try await openScript(endless)
      let session = try model.makeSession()
      var iterator = session.streamResponse(to: "x").makeAsyncIterator()
      #expect(try await iterator.next()?.text == "ha")
      await model.close()
      await #expect(throws: CancellationError.self) { try await iterator.next() }
      #expect(try await iterator.next() == nil)
    }

    @Test func row10CloseWhileManyAnswer() async throws {
      for _ in 0..<20 {
        let model = try await openScript(#""context": 100000, "# + endless)
        let readers = try (0..<4).map { _ in
          let session = try model.makeSession()
          return Task { await readAll(session.streamResponse(to: "x")) }
        }
        await Task.yield()
        #expect(await elapsed { await model.close() } < .seconds(1))
        for reader in readers {
          let error = await reader.value.error
          if case .closed? = error as? WasteError { continue }
          #expect(error is CancellationError, "\(String(describing: error))")
        }
      }
    }

    @Test func useAfterCloseSaysSo() async throws {
      let model = try await openScript(endless)
      let session = try model.makeSession()
      let tokenizer = model.tokenizer
      await session.close()
      await model.close()
      let calls: [@Sendable () async throws -> Void] = [
        { _ = try model.info }, { _ = try model.statistics }, { _ = try model.makeSession() },
        { _ = try tokenizer.encode("a") }, { _ = try tokenizer.encode(utf8: [1]) },
        { _ = try tokenizer.encodeMarkup("a") }, { _ = try tokenizer.decode([1]) },
        { _ = try model.takeLogLines() }, { _ = try session.statistics },
        { _ = try await session.tokens }, { _ = try await session.respond(to: "x") },
        { try await session.reset() }, { _ = try await session.fork() },
        { try await session.eval([1]) }, { try await session.addMessage("m", role: .user) },
      ]
      for call in calls {
        let error = await #expect(throws: WasteError.self) { try await call() }
        guard case .closed(let message) = error else {
          Issue.record("\(String(describing: error))")
          continue
        }
        #expect(message.hasSuffix(" is closed") && error?.code == 0)
      }
    }

    @Test func closeTwiceAndTogether() async throws {
      for _ in 0..<20 {
        let model = try await openScript(endless)
        let session = try model.makeSession()
        await withTaskGroup(of: Void.self) { group in
          for _ in 0..<4 {
            group.addTask { await session.close() }
            group.addTask { await model.close() }
          }
        }
        await session.close()
        await model.close()
        #expect(model.isClosed && session.isClosed)
      }
    }

    @Test func row11FreeInAnyOrder() async throws {
      for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        var model: WasteModel? = try await openScript(endless)
        var session: WasteSession? = try model?.makeSession()
        var iterator = session?.streamResponse(to: "x").makeAsyncIterator()
        #expect(try await iterator?.next()?.text == "ha")
        for step in order {
          switch step {
          case 0: model = nil
          case 1: session = nil
          default: iterator = nil
          }
          if let text = try await iterator?.next()?.text { #expect(text == "ha") }
        }
        #expect(model == nil && session == nil && iterator == nil)
      }
    }

    @Test func row11DroppedModelIsFreed() async throws {
      weak var seen: WasteSession?
      weak var owner: WasteModel?
      do {
        let model = try await openScript(endless)
        let session = try model.makeSession()
        (seen, owner) = (session, model)
        for try await _ in session.streamResponse(to: "x") { break }
        #expect(seen != nil && owner != nil)
      }
      #expect(try await eventually { seen == nil && owner == nil })
    }

    @Test func row11FreeUnderPressure() async throws {
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<4 {
          group.addTask {
            var count = 0
            for round in 0..<25 {
              let model = try await openScript(endless)
              let session = try model.makeSession()
              let fork = try await session.fork()
              for try await _ in session.streamResponse(to: "x") { break }
              if round % 2 == 0 { session.cancel() }
              if round % 3 == 0 { await model.close() }
              for try await _ in fork.streamResponse(to: "y").snapshots where round % 3 != 0 {
                count += 1
                if count % 3 == 0 { break }
              }
            }
            return count
          }
        }
        while true {
          do {
            guard let count = try await group.next() else { break }
            #expect(count > 0)
          } catch WasteError.closed {
          }
        }
      }
    }

    @Test func row14ExitDuringGenerate() async throws {
      let folder = try TemporaryFolder()
      let file = folder.file("script.json")
      try Data("{\(endless)}".utf8).write(to: file)
      let url = scriptURL(file).absoluteString
      let ways = [["exit", url, "7"], ["exit", url, "0"], ["return", url]]
      for (arguments, code) in zip(ways, [Int32(7), 0, 0]) {
        let run = try await runProbe(arguments)
        #expect(run.code == code && !run.crashed, "\(arguments): \(run)")
        #expect(run.output == (arguments[0] == "exit" ? "exiting\n" : "returning\n"))
      }
    }

    @Test func row17TwoModelsFourSessionsFourThreads() async throws {
      let questions = [
        ("What is the capital of Italy?", "The capital of Italy is Rome."),
        ("What is the capital of Japan?", "The capital of Japan is Tokyo."),
        ("What is the capital of France?", "The capital of France is Paris."),
        ("Count from 3 to 12.", "3, 4, 5, 6, 7, 8, 9, 10, 11, 12."),
      ]
      let options = OpenOptions(contextTokens: 256)
      let models = [
        try await WasteModel.open(Place.mini, options: options),
        try await WasteModel.open(Place.mini, options: options),
      ]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, question) in questions.enumerated() {
          let session = try models[index % 2].makeSession()
          group.addTask {
            for _ in 0..<3 {
              let answer = try await session.respond(to: question.0)
              #expect(answer.content == question.1)
              try await session.reset()
            }
          }
        }
        try await group.waitForAll()
      }
    }

    @Test func openAndClose200Times() async throws {
      let options = OpenOptions(contextTokens: 128)
      func cycle(_ times: Int) async throws {
        for index in 0..<times {
          let model = try await WasteModel.open(Place.mini, options: options)
          let session = try model.makeSession()
          if index % 10 == 0 {
            _ = try await session.respond(to: "Hi", options: .init(maximumResponseTokens: 1))
          }
          await model.close()
        }
      }
      try await cycle(30)
      let before = try residentBytes()
      try await cycle(Place.measuresMemory ? 170 : 30)
      let grown = try residentBytes() - before
      if Place.measuresMemory { #expect(grown < 8 << 20, "grown by \(grown) bytes") }
    }

    @Test func shortGenerationsLeaveMemoryFlat() async throws {
      let count = Place.mode == "stress" ? 10_000 : Place.measuresMemory ? 500 : 100
      let model = try await WasteModel.open(Place.mini, options: .init(contextTokens: 128))
      let session = try model.makeSession()
      func generate(_ times: Int) async throws {
        for _ in 0..<times {
          let options = GenerationOptions(maximumResponseTokens: 2, isRaw: true)
          #expect(try await session.respond(to: "The capital", options: options).tokens.count == 2)
          try await session.reset()
        }
      }
      try await generate(count / 5)
      let before = try residentBytes()
      let time = try await elapsed { try await generate(count) }
      let after = try residentBytes()
      print("stress: swift: \(count) generations in \(time), RSS \(before) before, \(after) after")
      if Place.measuresMemory { #expect(after - before < 4 << 20) }
    }
  }
}
