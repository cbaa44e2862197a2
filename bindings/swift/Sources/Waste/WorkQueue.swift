// SPDX-License-Identifier: Apache-2.0
//
// Where blocking calls run. Each session and job has a serial queue of its own, so a call of the
// library, which may take minutes, never sits on the threads that Swift's tasks share, and two
// calls on one session come one after the other.

import Dispatch

struct WorkQueue: Sendable {
  private let queue: DispatchQueue

  init(_ name: String) { queue = DispatchQueue(label: "waste.\(name)") }

  /// Runs `body` behind what is queued already. Not cancelled by the task: who can stop the work
  /// does so with a cancellation handler around this.
  func run<Success: Sendable, Failure: Error>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: @escaping @Sendable () throws(Failure) -> Success
  ) async throws(Failure) -> Success {
    let result: Result<Success, Failure> = await withCheckedContinuation { continuation in
      queue.async {
        do throws(Failure) {
          continuation.resume(returning: .success(try body()))
        } catch {
          continuation.resume(returning: .failure(error))
        }
      }
    }
    return try result.get()
  }

  /// Runs `body` behind what is queued already, without waiting for it.
  func post(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

  /// Runs `body` behind what is queued already and waits for it. Never from the queue itself, and
  /// only where nothing long can be in front.
  func sync(_ body: () -> Void) { queue.sync(execute: body) }

  /// Waits until everything queued so far on `queues` has run, for `seconds` at most.
  static func drain(_ queues: [WorkQueue], seconds: Double = 1) async {
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      let resumed = Protected(false)
      let resumeOnce: @Sendable () -> Void = {
        let isFirst = resumed.withLock { done in
          defer { done = true }
          return !done
        }
        if isFirst { continuation.resume() }
      }
      let group = DispatchGroup()
      for item in queues { item.queue.async(group: group) {} }
      group.notify(queue: .global(), execute: resumeOnce)
      DispatchQueue.global().asyncAfter(deadline: .now() + seconds, execute: resumeOnce)
    }
  }
}
