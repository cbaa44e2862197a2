// SPDX-License-Identifier: Apache-2.0
//
// Long work on a thread of the library's: opening, verifying, converting, synthesizing. The work
// begins when the job is made; waiting for it happens on a queue of the job's own, a few
// milliseconds at a time.

import CWaste

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Verification, conversion or synthesis in progress. Dropping the last reference stops the work
/// and waits for that, which takes as long as one read or one tensor. All members may be used from
/// any thread.
public final class WasteJob: Sendable {
  private let owner: Owner
  private let queue = WorkQueue("job")

  private init(_ pointer: OpaquePointer) { owner = Owner(pointer, name: "job") }

  /// Starts to read every byte of a container and to check all that can be checked.
  /// Throws `argument`, `noMemory`; what is found wrong comes from `wait`.
  public static func verify(_ container: URL) throws(WasteError) -> WasteJob {
    let path = try FilePath(container)
    return try start { out, error in
      path.use { Raw.verify(path: $0, out: out, error: error) }
    }
  }

  /// Starts to convert a Hugging Face folder to a container. `target` must not exist, and appears
  /// only when it is complete. Throws `argument`, `noMemory`; the rest comes from `wait`.
  public static func convert(
    _ source: URL, to target: URL, options: ConvertOptions = ConvertOptions()
  ) throws(WasteError) -> WasteJob {
    let (from, to) = (try FilePath(source), try FilePath(target))
    let wanted = try options.raw()
    return try start { out, error in
      withUnsafePointer(to: wanted) { wanted in
        from.use { from in
          to.use { Raw.convert(source: from, target: $0, options: wanted, out: out, error: error) }
        }
      }
    }
  }

  /// Starts to write a container of random weights in the true shape of "kimi-linear-48b", "k3" or
  /// "mini": for measuring a machine without a checkpoint. `target` must not exist, and appears
  /// only when it is complete. Throws `argument` (an unknown shape, a seed beyond 32 bits),
  /// `noMemory`; the rest comes from `wait`.
  public static func synthesize(
    _ shape: String, to target: URL, options: SynthesisOptions = SynthesisOptions()
  ) throws(WasteError) -> WasteJob {
    let to = try FilePath(target)
    let wanted = try options.raw()
    return try start { out, error in
      withUnsafePointer(to: wanted) { wanted in
        withText(shape) { shape in
          to.use { to in
            Raw.synthesize(shape: shape, target: to, options: wanted, out: out, error: error)
          }
        }
      }
    }
  }

  static func open(_ container: URL, options: OpenOptions) throws(WasteError) -> WasteJob {
    let path = try FilePath(container)
    let wanted = try options.raw()
    return try start { out, error in
      options.use(wanted) { wanted in
        path.use { Raw.openJob(path: $0, options: wanted, out: out, error: error) }
      }
    }
  }

  private static func start(
    _ body: (UnsafeMutablePointer<OpaquePointer?>, UnsafeMutablePointer<waste_error>)
      -> waste_status
  ) throws(WasteError) -> WasteJob {
    try WasteLibrary.check()
    return WasteJob(try create(body))
  }

  /// How far the work has come. Throws `closed`.
  public var progress: WorkProgress {
    get throws(WasteError) {
      var raw = waste_progress.sized()
      _ = try owner.call { Raw.jobProgress($0, out: &raw, error: $1) }
      return WorkProgress(raw)
    }
  }

  /// Waits for the end and throws what went wrong. `progress` is called some 30 times a second, in
  /// the caller's isolation. Cancelling the task, like `cancel`, stops the work: then this throws
  /// `CancellationError`. May be called again; it then says the same.
  public func wait(
    isolation: isolated (any Actor)? = #isolation,
    progress report: (WorkProgress) -> Void = { _ in }
  ) async throws {
    try await withTaskCancellationHandler {
      _ = isolation  // captured, or the closure would not be isolated to it
      var running = true
      while running {
        running = try await queue.run { [owner] in
          try cancellable { () throws(WasteError) in
            try owner.call { Raw.jobWait($0, timeout_ms: 30, error: $1) }
          } == RawConstant.running
        }
        report(try progress)
      }
    } onCancel: {
      owner.cancel()
    }
  }

  /// Asks the work to stop. Returns at once, does no harm twice or after the end.
  public func cancel() { owner.cancel() }

  /// The lines that the job has to say and that were not taken yet: what was left out, what was
  /// fallen back to. Throws `closed`.
  public func takeLogLines() throws(WasteError) -> [String] { try logLines(of: owner) }

  /// Stops the work and lets go of it. Calls that are inside end with `CancellationError`, later
  /// ones throw `closed`. Does no harm twice.
  public func close() async {
    owner.cancel()
    queue.post { [held = owner.take()] in withExtendedLifetime(held) {} }
    await WorkQueue.drain([queue])
  }

  /// The model of an open job that has ended well, once.
  func takeModel() throws(WasteError) -> OpaquePointer {
    let job = try owner.enter()
    return try create { out, error in job.use { Raw.jobModel($0, out: out, error: error) } }
  }
}

/// An object that the library makes and the caller then owns.
func create(
  _ body: (UnsafeMutablePointer<OpaquePointer?>, UnsafeMutablePointer<waste_error>) -> waste_status
) throws(WasteError) -> OpaquePointer {
  var made: OpaquePointer?
  _ = try callLibrary { body(&made, $0) }
  guard let made else { throw .internal("the library said well done and gave no object") }
  return made
}

func logLines(of owner: Owner) throws(WasteError) -> [String] {
  var lines: [String] = []
  while true {
    let line: [UInt8] = try fetchLine(owner)
    if line.isEmpty { return lines }
    lines.append(String(decoding: line, as: UTF8.self))
  }
}

private func fetchLine(_ owner: Owner) throws(WasteError) -> [UInt8] {
  let held = try owner.enter()
  return try fetchArray(guess: 4096) { bytes, error in
    bytes.withMemoryRebound(to: CChar.self) { buffer in
      held.use { Raw.logNext(UnsafeMutableRawPointer($0), buffer: buffer, error: error) }
    }
  }
}
