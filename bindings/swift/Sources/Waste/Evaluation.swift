// SPDX-License-Identifier: Apache-2.0
//
// One eval from its request to its end, so that any thread can stop it and nothing else. It waits
// in the session's queue, is inside the library, or has ended. The library stops what runs at that
// moment and forgets a stop that comes while nothing does, so one that finds the call between this
// module and the library's loop is repeated until the call has left.

import CWaste
import Dispatch

final class Evaluation: Sendable {
  private struct State: Sendable {
    var inside: NativeHandle?
    var isCancelled = false
  }

  private let state = Protected(State())

  /// Runs the one call that `cancel` stops; throws `cancelled` if that came first.
  func run<Result>(
    _ session: NativeHandle, _ body: (NativeHandle) throws(WasteError) -> Result
  ) throws(WasteError) -> Result {
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.inside = session }
      return state.isCancelled
    }
    if isCancelled { throw .cancelled("cancelled before it began") }
    defer { _ = leave() }
    return try body(session)
  }

  private func leave() -> NativeHandle? {
    state.withLock { state in
      defer { state.inside = nil }
      return state.inside
    }
  }

  /// Returns at once, does no harm twice or after the end.
  func cancel() {
    let isFirst = state.withLock { state in
      defer { state.isCancelled = true }
      return !state.isCancelled
    }
    if isFirst { insist() }
  }

  /// Under the lock the call cannot leave, so this stops no later call of the session.
  private func insist() {
    let isInside = state.withLock { state in
      state.inside?.cancel()
      return state.inside != nil
    }
    guard isInside else { return }
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(2)) { self.insist() }
  }
}
