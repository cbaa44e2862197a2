// SPDX-License-Identifier: Apache-2.0
//
// What can go wrong: one case for each status of the C API, and two of this module's own. The
// message is the library's, word for word; it names the file, the record and the numbers.

import CWaste

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A failure of the engine. Functions that can be cancelled throw `CancellationError` for that, not
/// a case of this type.
public enum WasteError: Error, Equatable, Sendable {
  /// The system refused an open, a read or a write.
  case io(String)
  /// This is not a file that the library understands.
  case format(String)
  /// It is one, and it is damaged: copy or convert it again.
  case corrupt(String)
  /// It is sound, and this build cannot run it.
  case unsupported(String)
  /// The caller asked for something that cannot be.
  case argument(String)
  /// The RAM budget is below what is needed: at least `neededBytes`.
  case ramBudget(String, neededBytes: Int64)
  /// The system gave no memory.
  case noMemory(String)
  /// The text does not fit the session's context.
  case contextFull(String)
  /// An answer of this session is in progress.
  case busy(String)
  /// Somebody cancelled. Asynchronous functions throw `CancellationError` instead.
  case cancelled(String)
  /// The file was written by a newer version.
  case version(String)
  /// A bug of the library: please report the message.
  case `internal`(String)
  /// The model, session or job was closed.
  case closed(String)
  /// The libwaste that was loaded is not the one this package was made for.
  case abiMismatch(String)

  /// The number of the C API (`WASTE_ERR_...`, below 0), or 0 for `closed` and `abiMismatch`.
  public var code: Int32 { parts.code }

  /// The library's words.
  public var message: String { parts.message }

  /// With `ramBudget` the smallest budget in bytes that would do, otherwise nil.
  public var neededBytes: Int64? {
    if case .ramBudget(_, let bytes) = self { return bytes }
    return nil
  }

  private var parts: (code: Int32, message: String) {
    switch self {
    case .io(let message): (RawStatus.io.rawValue, message)
    case .format(let message): (RawStatus.format.rawValue, message)
    case .corrupt(let message): (RawStatus.corrupt.rawValue, message)
    case .unsupported(let message): (RawStatus.unsupported.rawValue, message)
    case .argument(let message): (RawStatus.argument.rawValue, message)
    case .ramBudget(let message, _): (RawStatus.ramBudget.rawValue, message)
    case .noMemory(let message): (RawStatus.noMemory.rawValue, message)
    case .contextFull(let message): (RawStatus.contextFull.rawValue, message)
    case .busy(let message): (RawStatus.busy.rawValue, message)
    case .cancelled(let message): (RawStatus.cancelled.rawValue, message)
    case .version(let message): (RawStatus.version.rawValue, message)
    case .internal(let message): (RawStatus.internal.rawValue, message)
    case .closed(let message), .abiMismatch(let message): (0, message)
    }
  }

  init(_ error: waste_error, code: Int32) {
    let message = withUnsafeBytes(of: error.message) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    self =
      switch RawStatus(rawValue: code) {
      case .io: .io(message)
      case .format: .format(message)
      case .corrupt: .corrupt(message)
      case .unsupported: .unsupported(message)
      case .argument: .argument(message)
      case .ramBudget: .ramBudget(message, neededBytes: error.needed_bytes)
      case .noMemory: .noMemory(message)
      case .contextFull: .contextFull(message)
      case .busy: .busy(message)
      case .cancelled: .cancelled(message)
      case .version: .version(message)
      case .internal, .ok, nil: .internal("status \(code): \(message)")
      }
  }
}

extension WasteError: LocalizedError, CustomStringConvertible {
  /// The library's words.
  public var errorDescription: String? { message }
  /// The library's words.
  public var description: String { message }
}

/// Runs what may be cancelled: its `cancelled` becomes Swift's own error for that.
func cancellable<Result>(_ body: () throws(WasteError) -> Result) throws -> Result {
  do throws(WasteError) {
    return try body()
  } catch .cancelled(_) {
    throw CancellationError()
  } catch {
    throw error
  }
}
