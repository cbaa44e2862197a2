// SPDX-License-Identifier: Apache-2.0
//
// One answer from its request to its end. Waiting: nothing has happened. Live: the library's
// generation exists, pulled on the session's queue. Ended: the generation is freed and the response
// is known. Cancelling is for any thread in any of these: it takes only the lock of the state,
// which is never held across a call that blocks.

import CWaste

final class Answer: Sendable {
  private enum Phase: Sendable {
    case waiting
    case live(NativeHandle)
    case ended
  }

  private struct State: Sendable {
    var phase = Phase.waiting
    var isCancelled = false
    var text = Snapshot()
    var response: Response?
    var failure: (any Error)?  // that the reader has not seen yet
  }

  private let session: WasteSession
  private let prompt: String?
  private let options: GenerationOptions
  private let state = Protected(State())

  init(_ session: WasteSession, prompt: String?, options: GenerationOptions) {
    self.session = session
    self.prompt = prompt
    self.options = options
  }

  var response: Response? { state.withLock { $0.response } }

  var statistics: Statistics? {
    get throws(WasteError) {
      guard case .live(let handle) = state.withLock({ $0.phase }) else {
        return response?.statistics
      }
      return try readStatistics(handle)
    }
  }

  func cancel() {
    state.withLock { state in
      state.isCancelled = true
      if case .live(let handle) = state.phase { handle.cancel() }
    }
  }

  /// The next piece, nil at the end; called by one reader, one call at a time.
  func next() async throws -> Piece? {
    if case .waiting = state.withLock({ $0.phase }) { try session.claim(self) }
    // A piece that was pulled is handed over even if the task was cancelled meanwhile: the session
    // holds it.
    return try await withTaskCancellationHandler {
      try await session.queue.run { [self] () throws(any Error) in try pull() }
    } onCancel: {
      cancel()
    }
  }

  /// The reader has left, so no call of it is inside: what there is stops, and the session is free
  /// when this returns.
  func abandon() {
    cancel()
    if case .live = state.withLock({ $0.phase }) {
      session.queue.sync { end(.cancelled) }
    } else {
      end(.cancelled)
    }
  }

  /// Lets go of the generation, says what there was, and lets another answer begin. Only the first
  /// end counts. On the session's queue if there is a generation.
  func end(_ reason: FinishReason, failure: (any Error)? = nil) {
    let before = state.withLock { state -> Phase in
      defer { state.phase = .ended }
      if case .ended = state.phase { return .ended }
      state.failure = failure
      return state.phase
    }
    switch before {
    case .ended: return
    case .waiting: break
    case .live(let handle):
      finish(handle)
      collect(handle, reason)
    }
    session.release(self)
  }
}

// MARK: - On the session's queue

extension Answer {
  private func pull() throws -> Piece? {
    guard let handle = try begin() else { return nil }
    var token = waste_token.sized()
    let text: String
    do throws(WasteError) {
      text = try readText(handle, &token)
    } catch {
      try fail(error)
    }
    if text.isEmpty {
      end(token.finish_reason == RawFinish.length.rawValue ? .length : .stop)
      return nil
    }
    let piece = Piece(text, token)
    state.withLock { $0.text.add(piece) }
    return piece
  }

  /// The generation, made by the first call; nil once the answer has ended.
  private func begin() throws -> NativeHandle? {
    let (phase, isCancelled, failure) = state.withLock { state in
      defer { state.failure = nil }
      return (state.phase, state.isCancelled, state.failure)
    }
    switch phase {
    case .live(let handle): return handle
    case .ended:
      if let failure { throw failure }
      return nil
    case .waiting: break
    }
    if isCancelled {
      end(.cancelled)
      throw CancellationError()
    }
    do throws(WasteError) {
      let handle = try generate()
      state.withLock { state in
        state.phase = .live(handle)
        if state.isCancelled { handle.cancel() }
      }
      return handle
    } catch {
      try fail(error)
    }
  }

  private func fail(_ error: WasteError) throws -> Never {
    if case .cancelled = error {
      end(.cancelled)
      throw CancellationError()
    }
    end(.failed)
    throw error
  }

  private func generate() throws(WasteError) -> NativeHandle {
    let wanted = try options.raw()
    let owner = try session.owner.enter()
    let pointer = try create { out, error in
      withUnsafePointer(to: wanted) { wanted in
        owner.use { session in
          guard let prompt else {
            let nothing = UnsafeBufferPointer<CChar>(start: nil, count: 0)
            return Raw.generate(session, prompt: nothing, options: wanted, out: out, error: error)
          }
          return withText(prompt) {
            Raw.generate(session, prompt: $0, options: wanted, out: out, error: error)
          }
        }
      }
    }
    let handle = NativeHandle(pointer)
    try addStops(handle)
    return handle
  }

  private func addStops(_ handle: NativeHandle) throws(WasteError) {
    for stop in options.stop {
      _ = try callLibrary { error in
        withText(stop) { text in
          handle.use { Raw.generationAddStop($0, text: text, error: error) }
        }
      }
    }
    for token in options.stopTokens {
      _ = try callLibrary { error in
        handle.use { Raw.generationAddStopToken($0, token: token, error: error) }
      }
    }
    for (token, bias) in options.logitBias {
      _ = try callLibrary { error in
        handle.use { Raw.generationAddBias($0, token: token, bias: bias, error: error) }
      }
    }
  }

  /// Whole characters of one channel; empty when the answer is finished.
  private func readText(
    _ handle: NativeHandle, _ token: inout waste_token
  ) throws(WasteError) -> String {
    let bytes: [UInt8] = try fetchArray(guess: 1024) { bytes, error in
      bytes.withMemoryRebound(to: CChar.self) { buffer in
        handle.use { Raw.next($0, buffer: buffer, info: &token, error: error) }
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Gives the session back inside the library, whoever else may still hold the generation: a
  /// cancelled one does so when it is asked for more; one that has ended has done it.
  private func finish(_ handle: NativeHandle) {
    handle.cancel()
    var token = waste_token.sized()
    _ = try? readText(handle, &token)
  }

  private func collect(_ handle: NativeHandle, _ reason: FinishReason) {
    guard let statistics = try? readStatistics(handle),
      let tokens = try? readTokens(handle, guess: statistics.generatedTokens)
    else { return }
    state.withLock { state in
      state.response = Response(
        content: state.text.content, thinking: state.text.thinking, tokens: tokens.ids,
        logprobs: options.includesLogprobs ? tokens.logprobs : [], finishReason: reason,
        statistics: statistics)
    }
  }

  private func readStatistics(_ handle: NativeHandle) throws(WasteError) -> Statistics {
    var raw = waste_stats.sized()
    _ = try callLibrary { error in
      handle.use { Raw.generationStats($0, out: &raw, error: error) }
    }
    return Statistics(raw)
  }

  private func readTokens(
    _ handle: NativeHandle, guess: Int
  ) throws(WasteError) -> (ids: [TokenID], logprobs: [Double]) {
    let ids: [TokenID] = try fetchArray(guess: guess) { ids, error in
      let none = UnsafeMutableBufferPointer<Double>(start: nil, count: 0)
      return handle.use { Raw.generationTokens($0, tokens: ids, logprobs: none, error: error) }
    }
    let logprobs: [Double] = try fetchArray(guess: ids.count) { logprobs, error in
      let none = UnsafeMutableBufferPointer<Int32>(start: nil, count: 0)
      return handle.use { Raw.generationTokens($0, tokens: none, logprobs: logprobs, error: error) }
    }
    return (ids, logprobs)
  }
}
