// SPDX-License-Identifier: Apache-2.0
//
// An open model. Sessions keep their model alive; the model knows its sessions weakly, so that
// closing it can close them.

import CWaste

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A mixture-of-experts model, ready to run: weights, cache and threads, shared by any number of
/// sessions and tasks. Freed when the last reference goes; `close` does it at a moment of choice.
public final class WasteModel: Sendable {
  let owner: Owner
  private let sessions = Protected<[ObjectIdentifier: WeakSession]>([:])

  private struct WeakSession: Sendable {
    weak var session: WasteSession?
  }

  private init(_ pointer: OpaquePointer) { owner = Owner(pointer, name: "model") }

  /// What opening would cost, without loading anything. A budget below the floor is no error here:
  /// `fits` says so. Throws `io`, `format`, `corrupt`, `unsupported`, `version`, `argument`.
  public static func plan(
    _ container: URL, options: OpenOptions = OpenOptions()
  ) throws(WasteError) -> MemoryPlan {
    try WasteLibrary.check()
    let path = try FilePath(container)
    let wanted = try options.raw()
    var plan = waste_memory_plan.sized()
    _ = try callLibrary { error in
      options.use(wanted) { wanted in
        path.use { Raw.plan(path: $0, options: wanted, out: &plan, error: error) }
      }
    }
    return MemoryPlan(plan)
  }

  /// Opens a container: a folder such as examples/mini/mini.waste. (A URL of the scheme `test`
  /// names a script of docs/capi.md instead, for tests of an application without weights.)
  ///
  /// `progress` is called some 30 times a second while the trunk loads, in the caller's isolation.
  /// Cancelling the task ends the load with `CancellationError`. Throws what `plan` throws, and
  /// `ramBudget`, `noMemory`, `abiMismatch`.
  public static func open(
    _ container: URL, options: OpenOptions = OpenOptions(),
    isolation: isolated (any Actor)? = #isolation,
    progress: (WorkProgress) -> Void = { _ in }
  ) async throws -> WasteModel {
    let job = try WasteJob.open(container, options: options)
    try await job.wait(progress: progress)
    return WasteModel(try job.takeModel())
  }

  /// What the model is, and how it runs here. Throws `closed`.
  public var info: ModelInfo {
    get throws(WasteError) {
      var raw = waste_info.sized()
      let held = try owner.enter()
      _ = try callLibrary { error in held.use { Raw.modelInfo($0, out: &raw, error: error) } }
      let name: [UInt8] = try fetchArray(guess: 64) { bytes, error in
        bytes.withMemoryRebound(to: CChar.self) { buffer in
          held.use { Raw.modelName($0, buffer: buffer, error: error) }
        }
      }
      return ModelInfo(raw, name: String(decoding: name, as: UTF8.self))
    }
  }

  /// Counters of all sessions since the open, and the memory charged now. Throws `closed`.
  public var statistics: Statistics {
    get throws(WasteError) {
      var raw = waste_stats.sized()
      _ = try owner.call { Raw.modelStats($0, out: &raw, error: $1) }
      return Statistics(raw)
    }
  }

  /// Text to tokens and back.
  public var tokenizer: Tokenizer { Tokenizer(model: self) }

  /// The lines that the model has to say and that were not taken yet. Throws `closed`.
  public func takeLogLines() throws(WasteError) -> [String] { try logLines(of: owner) }

  /// A new conversation. Reserves its whole context within the model's budget.
  ///
  /// - Parameters:
  ///   - instructions: a system message to begin with.
  ///   - thinking: the model may think before it answers, where it can.
  ///   - contextTokens: positions; nil for those of the open.
  /// - Throws: `ramBudget`, `noMemory`, `argument`, `unsupported` (instructions for a model without
  ///   a chat format), `contextFull`, `closed`.
  public func makeSession(
    instructions: String? = nil, thinking: Bool = false, contextTokens: Int? = nil
  ) throws(WasteError) -> WasteSession {
    var options = waste_session_options.sized()
    options.thinking = thinking ? 1 : 0
    options.context = Int64(try explicit(contextTokens, "contextTokens"))
    let held = try owner.enter()
    let pointer = try create { out, error in
      held.use { Raw.sessionCreate($0, options: &options, out: out, error: error) }
    }
    let session = try adopt(pointer)
    if let instructions { try session.addAtOnce(instructions, role: .system) }
    return session
  }

  /// Whether `close` was called.
  public var isClosed: Bool { !owner.isOpen }

  /// Closes the sessions, cancels what runs in them, waits for calls that are inside (a second at
  /// most) and frees the memory. Later uses throw `closed`. Does no harm twice, from any task.
  public func close() async {
    owner.close()
    let live = sessions.withLock { $0.values.compactMap(\.session) }
    for session in live { session.shut() }
    await WorkQueue.drain(live.map(\.queue))
  }

  /// Makes a session of the library's one of this model's, which may be closing just now.
  func adopt(_ pointer: OpaquePointer) throws(WasteError) -> WasteSession {
    let session = WasteSession(Owner(pointer, name: "session"), model: self)
    let key = ObjectIdentifier(session)
    sessions.withLock { $0[key] = WeakSession(session: session) }
    if isClosed { session.shut() }
    _ = try owner.enter()
    return session
  }

  func forget(_ session: ObjectIdentifier) {
    sessions.withLock { _ = $0.removeValue(forKey: session) }
  }
}
