// SPDX-License-Identifier: Apache-2.0
//
// Stopping an eval: by its task, its session, a close; before, while and after it runs.

import Foundation
import Testing
import Waste

extension AllTests {
  @Suite(.timeLimit(.minutes(2))) struct Evaluating {
    static let stalling = #""prefill_stall_ms": 20000, "# + endless

    enum Stop: Sendable, CaseIterable { case task, session, thread, close, closeModel }

    @Test(arguments: Stop.allCases) func stoppedEvalThrowsWithinASecond(_ stop: Stop) async throws {
      let model = try await openScript(Self.stalling)
      let session = try model.makeSession()
      let task = Task { try await session.eval([1, 2, 3]) }
      #expect(try await eventually { try session.position == 3 })
      let time = await elapsed {
        switch stop {
        case .task: task.cancel()
        case .session: session.cancel()
        case .thread: Thread.detachNewThread { session.cancel() }
        case .close: await session.close()
        case .closeModel: await model.close()
        }
        await #expect(throws: CancellationError.self) { try await task.value }
      }
      #expect(time < .milliseconds(900))
      let isClosed = stop == .close || stop == .closeModel
      #expect(session.isClosed == isClosed)
      if isClosed {
        let error = await #expect(throws: WasteError.self) { try await session.eval([1]) }
        #expect(error?.code == 0)
      } else {
        #expect(try session.position == 0)
      }
    }

    /// Wherever the cancel strikes, none is lost and the session holds what it held. So many tokens
    /// take the library a while before it begins to listen.
    @Test(arguments: [false, true]) func noCancelIsLost(byTask: Bool) async throws {
      let script = #""context": 1000000, "# + Self.stalling
      let session = try await openScript(script).makeSession()
      let tokens = [TokenID](repeating: 1, count: 1_000_000)
      let time = try await elapsed {
        for round in 0..<50 {
          let isCalled = Counter()
          let task = Task {
            isCalled.add()
            try await session.eval(tokens)
          }
          while isCalled.value == 0 { await Task.yield() }
          try await Task.sleep(for: .microseconds(100 * round))
          // A cancel of the session stops what it has by then, so it may come too early.
          while !byTask, try session.position == 0 { await Task.yield() }
          if byTask { task.cancel() } else { session.cancel() }
          await #expect(throws: CancellationError.self) { try await task.value }
          #expect(try session.position == 0)
        }
      }
      #expect(time < .seconds(15))
    }

    @Test func evalBehindACancelDoesNotStart() async throws {
      let session = try await openScript(Self.stalling).makeSession()
      let task = Task {
        while !Task.isCancelled { await Task.yield() }
        return try await session.eval([1])
      }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try session.position == 0)
    }

    @Test func onlyTheCancelledEvalStops() async throws {
      let session = try await openScript(#""prefill_stall_ms": 300, "# + endless).makeSession()
      let first = Task { try await session.eval([1, 2]) }
      #expect(try await eventually { try session.position == 2 })
      let second = Task { try await session.eval([3]) }
      let third = Task { try await session.eval([4]) }
      second.cancel()
      await #expect(throws: CancellationError.self) { try await second.value }
      _ = try await first.value
      _ = try await third.value
      #expect(try await session.tokens == [1, 2, 4])
      session.cancel()
      _ = try await session.eval([5])
      #expect(try await session.tokens == [1, 2, 4, 5])
    }

    @Test func sessionGoesOnAfterAStoppedEval() async throws {
      let model = try await WasteModel.open(Place.mini)
      let session = try model.makeSession()
      let question = "What is the capital of Italy?"
      let tokens = try model.tokenizer.encode(String(repeating: question, count: 200))
      _ = try await session.eval(Array(tokens.prefix(20)))
      let task = Task { try await session.eval(tokens) }
      #expect(try await eventually { try session.position > 20 })
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try await session.tokens == Array(tokens.prefix(20)))
      let fresh = try model.makeSession()
      _ = try await fresh.eval(Array(tokens.prefix(20)))
      let rest = Array(tokens[20..<30])
      let (here, there) = (
        try await session.eval(rest, logitRows: 1), try await fresh.eval(rest, logitRows: 1)
      )
      // Not to the last bit: the session ran its first tokens again, in other steps.
      #expect(zip(here.values, there.values).allSatisfy { abs($0 - $1) < 1e-3 })
      try await session.reset()
      #expect(try await session.respond(to: question).content.contains("Rome"))
    }
  }
}
