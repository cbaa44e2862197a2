// SPDX-License-Identifier: Apache-2.0
//
// One conversation, an actor over a serial queue of its own. Every call that may take long runs on
// that queue while the actor is suspended, so a second answer does not wait in line: it is told
// `busy` at once. What must work while a call blocks (cancel, statistics, isResponding) is not
// isolated and needs no turn; its state is behind locks.

import CWaste

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One conversation with a model, or one text that a model continues. One answer at a time: a
/// second one throws `busy` and leaves the first alone, and so does everything else here that would
/// change the session meanwhile. All members may be used from any task and thread. Keeps its model
/// alive; freed when the last reference goes, or by `close`.
public actor WasteSession {
  /// The model that answers.
  public nonisolated let model: WasteModel
  nonisolated let owner: Owner
  nonisolated let queue = WorkQueue("session")
  private nonisolated let current = Protected<Answer?>(nil)
  private nonisolated let evaluations = Protected<[Evaluation]>([])

  init(_ owner: Owner, model: WasteModel) {
    self.model = model
    self.owner = owner
  }

  deinit { model.forget(ObjectIdentifier(self)) }

  // MARK: - Answers

  /// Asks, and waits for the whole answer. Without a prompt the model gets the floor after messages
  /// that were added, or goes on with an answer that was cut short.
  ///
  /// Cancelling the task, or `cancel`, throws `CancellationError`; what was generated until then
  /// stays in the session, and `rewind(to:)` takes it back.
  /// Throws `contextFull`, `argument`, `unsupported`, `busy`, `closed`, and what a read of experts
  /// may throw: `io`, `corrupt`.
  public func respond(
    to prompt: String? = nil, options: GenerationOptions = GenerationOptions()
  ) async throws -> Response {
    try await streamResponse(to: prompt, options: options).collect()
  }

  /// Asks, and hands the answer over piece by piece, as fast as they are read: nothing is asked for
  /// before the first piece is wanted, and nothing runs ahead. Errors are those of `respond`,
  /// thrown where the stream is read.
  public nonisolated func streamResponse(
    to prompt: String? = nil, options: GenerationOptions = GenerationOptions()
  ) -> ResponseStream {
    ResponseStream(answer: Answer(self, prompt: prompt, options: options))
  }

  /// Whether an answer is in progress.
  public nonisolated var isResponding: Bool { current.withLock { $0 != nil } }

  /// Stops the answer in progress, if there is one: its reader gets the piece that is ready, then
  /// `CancellationError`. Stops each `eval` that runs or waits too; it throws the same. Returns at
  /// once; the stop comes within a layer or one read.
  public nonisolated func cancel() {
    current.withLock { $0 }?.cancel()
    for evaluation in evaluations.withLock({ $0 }) { evaluation.cancel() }
  }

  // MARK: - The conversation

  /// Adds a whole message. It costs nothing until an answer is wanted.
  /// Throws `contextFull`, `argument`, `unsupported` (no chat format), `busy`, `closed`.
  public func addMessage(_ text: String, role: Role) async throws {
    try await run { [self] () throws(WasteError) in try addAtOnce(text, role: role) }
  }

  /// The tokens that the session holds. Throws `closed`.
  public var tokens: [TokenID] {
    get async throws {
      let guess = try statistics.position
      return try await queue.run { [owner] () throws(WasteError) in
        let held = try owner.enter()
        return try fetchArray(guess: guess) { tokens, error in
          held.use { Raw.sessionTokens($0, tokens: tokens, error: error) }
        }
      }
    }
  }

  /// Work, memory and position of this session; also while it answers. Throws `closed`.
  public nonisolated var statistics: Statistics {
    get throws(WasteError) {
      var raw = waste_stats.sized()
      _ = try owner.call { Raw.sessionStats($0, out: &raw, error: $1) }
      return Statistics(raw)
    }
  }

  /// How many tokens the session holds. Throws `closed`.
  public nonisolated var position: Int { get throws(WasteError) { try statistics.position } }

  /// Forgets everything, the instructions too. Throws `busy`, `closed`.
  public func reset() async throws {
    try await run { [owner] () throws(WasteError) in
      _ = try owner.call { Raw.sessionReset($0, error: $1) }
    }
  }

  /// Goes back to the first `position` tokens. Some may have to run again with the next answer.
  /// Throws `argument`, `busy`, `closed`.
  public func rewind(to position: Int) async throws {
    try await run { [owner] () throws(WasteError) in
      _ = try owner.call { Raw.sessionRewind($0, position: Int64(position), error: $1) }
    }
  }

  /// A second session that holds the same. Throws `ramBudget`, `noMemory`, `busy`, `closed`.
  public func fork() async throws -> WasteSession {
    try await run { [self] () throws(WasteError) in
      let held = try owner.enter()
      let copy = try create { out, error in
        held.use { Raw.sessionFork($0, out: out, error: error) }
      }
      return try model.adopt(copy)
    }
  }

  /// Writes tokens and state to a file. Throws `io`, `busy`, `closed`.
  public func save(to file: URL) async throws {
    let path = try FilePath(file)
    try await run { [owner] () throws(WasteError) in
      _ = try owner.call { session, error in
        path.use { Raw.sessionSave(session, path: $0, error: error) }
      }
    }
  }

  /// Reads such a file back in place of what the session holds. One that is damaged, of another
  /// model or too long changes nothing. Throws `io`, `format`, `corrupt`, `version`, `contextFull`,
  /// `busy`, `closed`.
  public func load(from file: URL) async throws {
    let path = try FilePath(file)
    try await run { [owner] () throws(WasteError) in
      _ = try owner.call { session, error in
        path.use { Raw.sessionLoad(session, path: $0, error: error) }
      }
    }
  }

  /// Runs tokens through the model and returns the logits of the last `rows` of them. On failure
  /// the session forgets these tokens again. Cancelling the task, `cancel` and `close` stop it
  /// within a layer or one read: then it throws `CancellationError`, unless it was through already.
  /// Throws `contextFull`, `argument`, `io`, `corrupt`, `busy`, `closed`.
  @discardableResult
  public func eval(_ tokens: [TokenID], logitRows rows: Int = 0) async throws -> Logits {
    let vocabulary = try model.info.vocabularySize
    guard (0...tokens.count).contains(rows) else {
      throw WasteError.argument("logitRows is \(rows); it may be 0 to the \(tokens.count) tokens")
    }
    let evaluation = Evaluation()
    evaluations.withLock { $0.append(evaluation) }
    defer { evaluations.withLock { $0.removeAll { $0 === evaluation } } }
    do {
      return try await withTaskCancellationHandler {
        try await run { [owner] () throws(WasteError) in
          let values = try evaluation.run(owner.enter()) { session throws(WasteError) in
            try evaluate(session, tokens, count: rows * vocabulary)
          }
          return Logits(vocabularySize: vocabulary, values: values)
        }
      } onCancel: {
        evaluation.cancel()
      }
    } catch WasteError.cancelled {
      throw CancellationError()
    }
  }

  /// Whether `close` of this session or its model was called.
  public nonisolated var isClosed: Bool { !owner.isOpen }

  /// Cancels the answer or the `eval` in progress, waits for calls that are inside (a second at
  /// most) and frees the memory. Later uses throw `closed`. Does no harm twice, from any task.
  public func close() async {
    shut()
    await WorkQueue.drain([queue])
  }

  // MARK: - Inside

  /// Marks the session closed and stops its answer, whose end then happens on the queue, and its
  /// evaluations. One that comes later than this list finds the session closed.
  nonisolated func shut() {
    owner.close()
    for evaluation in evaluations.withLock({ $0 }) { evaluation.cancel() }
    guard let answer = current.withLock({ $0 }) else { return }
    answer.cancel()
    queue.post { answer.end(.cancelled, failure: CancellationError()) }
  }

  /// Makes `answer` the one in progress, before its first call.
  nonisolated func claim(_ answer: Answer) throws(WasteError) {
    guard owner.isOpen else { throw .closed("the session is closed") }
    let isCurrent = current.withLock { held in
      if held == nil { held = answer }
      return held === answer
    }
    guard isCurrent else { throw busy }
    // A close between the two lines above has not seen this answer.
    if !owner.isOpen { answer.cancel() }
  }

  nonisolated func release(_ answer: Answer) {
    _ = current.withLock { held -> Answer? in
      guard held === answer else { return nil }
      defer { held = nil }
      return held
    }
  }

  nonisolated func addAtOnce(_ text: String, role: Role) throws(WasteError) {
    _ = try owner.call { session, error in
      withText(text) {
        Raw.sessionAddMessage(session, role: role.raw.rawValue, text: $0, error: error)
      }
    }
  }

  private nonisolated var busy: WasteError {
    .busy("an answer of this session is in progress; finish, cancel or drop it first")
  }

  /// Runs what needs the session to itself. Says `busy` at once, not behind the call in progress.
  private func run<Success: Sendable>(
    _ body: @escaping @Sendable () throws(WasteError) -> Success
  ) async throws -> Success {
    try Task.checkCancellation()
    if isResponding { throw busy }
    return try await queue.run { () throws(WasteError) in try body() }
  }
}

private func evaluate(
  _ session: NativeHandle, _ tokens: [TokenID], count: Int
) throws(WasteError) -> [Float] {
  try fetchArray(guess: count) { logits, error in
    tokens.withUnsafeBufferPointer { tokens in
      session.use { Raw.eval($0, tokens: tokens, logits: logits, error: error) }
    }
  }
}
