// SPDX-License-Identifier: Apache-2.0
//
// An answer as a sequence of pieces, or of snapshots. One reader; the answer begins with the first
// piece that is wanted and ends, at the latest, when the reader leaves.

/// An answer, piece by piece: `for try await piece in session.streamResponse(to: "…")`.
///
/// Read it once. Each step waits for one piece; nothing runs ahead. Leaving the loop ends the
/// answer and frees the session at once. Cancelling the task, or `cancel`, hands over the piece
/// that is ready and then throws `CancellationError`; the session holds exactly what was handed
/// over.
public struct ResponseStream: AsyncSequence, Sendable {
  /// Whole characters of one channel.
  public typealias Element = Piece
  let answer: Answer
  private let reader = Protected(false)

  init(answer: Answer) { self.answer = answer }

  /// Stops the answer, also before it has begun. Returns at once; any thread.
  public func cancel() { answer.cancel() }

  /// What the answer came to: nil until it has ended, and if it failed before it began. After a
  /// cancel, an error or an early end of the loop it is what there was.
  public var response: Response? { answer.response }

  /// Counters of this answer, now or at its end; nil before it begins.
  public var statistics: Statistics? { get throws(WasteError) { try answer.statistics } }

  /// Reads to the end and returns the whole. Errors are those of `WasteSession.respond`.
  public func collect() async throws -> Response {
    for try await _ in self {}
    guard let response else { throw WasteError.internal("the answer ended without a response") }
    return response
  }

  /// The same answer as all of its text so far, again with each piece, for views that show it
  /// whole. It counts as the one reading.
  public var snapshots: Snapshots { Snapshots(base: self) }

  /// The one reader; a second one throws `argument` when it reads.
  public func makeAsyncIterator() -> AsyncIterator {
    let isFirst = reader.withLock { taken in
      defer { taken = true }
      return !taken
    }
    return AsyncIterator(lease: isFirst ? Lease(answer) : nil)
  }

  /// Reads the answer, and ends it when it goes.
  public struct AsyncIterator: AsyncIteratorProtocol {
    let lease: Lease?

    /// Waits for the next piece; nil at the end. Errors are those of `WasteSession.respond`.
    public mutating func next() async throws -> Piece? {
      guard let lease else { throw WasteError.argument("this answer has a reader; ask again") }
      return try await lease.answer.next()
    }
  }

  /// Ends the answer when the iterator, and every copy of it, is gone.
  final class Lease: Sendable {
    let answer: Answer

    init(_ answer: Answer) { self.answer = answer }

    deinit { answer.abandon() }
  }
}

/// An answer as all of its text so far, again with each piece.
public struct Snapshots: AsyncSequence, Sendable {
  /// All so far.
  public typealias Element = Snapshot
  let base: ResponseStream

  /// The one reader of the answer.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(base: base.makeAsyncIterator())
  }

  /// Reads the answer, and ends it when it goes.
  public struct AsyncIterator: AsyncIteratorProtocol {
    var base: ResponseStream.AsyncIterator
    var snapshot = Snapshot()

    /// Waits for the next piece and adds it; nil at the end.
    public mutating func next() async throws -> Snapshot? {
      guard let piece = try await base.next() else { return nil }
      snapshot.add(piece)
      return snapshot
    }
  }
}
