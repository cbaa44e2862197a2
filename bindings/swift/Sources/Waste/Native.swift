// SPDX-License-Identifier: Apache-2.0
//
// How this module holds objects of the library and calls it: who owns a handle, how an error, an
// array and a text cross. A handle is freed by ARC when nobody owns it any more and no call is
// inside it, so it can be neither used nor cancelled after that.

import CWaste

/// One reference to an object of the library, given back when the last user lets go.
/// Unchecked: the library allows freeing and cancelling from any thread, and `Owner` and the
/// session's queue see to the rest.
final class NativeHandle: @unchecked Sendable {
  fileprivate let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { self.pointer = pointer }

  deinit { Raw.free(UnsafeMutableRawPointer(pointer)) }

  /// Sticky, at once, any thread.
  func cancel() { Raw.cancel(UnsafeMutableRawPointer(pointer)) }

  /// The object stays alive while `body` runs, whatever happens to other references.
  func use<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    withExtendedLifetime(self) { body(pointer) }
  }
}

/// Who may say that an object is closed. Calls that are inside keep the handle until they leave.
final class Owner: Sendable {
  private let name: String
  private let handle: Protected<NativeHandle?>

  init(_ pointer: OpaquePointer, name: String) {
    self.name = name
    handle = Protected(NativeHandle(pointer))
  }

  var isOpen: Bool { handle.withLock { $0 != nil } }

  /// Runs one call of the library and throws what it says.
  func call<Result: SignedInteger>(
    _ body: (OpaquePointer, UnsafeMutablePointer<waste_error>) -> Result
  ) throws(WasteError) -> Result {
    let held = try enter()
    return try callLibrary { error in held.use { body($0, error) } }
  }

  func enter() throws(WasteError) -> NativeHandle {
    guard let held = handle.withLock({ $0 }) else { throw .closed("the \(name) is closed") }
    return held
  }

  func cancel() { handle.withLock { $0?.cancel() } }

  func close() { _ = take() }

  /// Closes, and hands the reference over to be dropped where that may take time.
  func take() -> NativeHandle? {
    handle.withLock { held in
      defer { held = nil }
      return held
    }
  }
}

/// Calls the library with room for an error and throws that if the result is below 0.
func callLibrary<Result: SignedInteger>(
  _ body: (UnsafeMutablePointer<waste_error>) -> Result
) throws(WasteError) -> Result {
  var error = waste_error.sized()
  let result = body(&error)
  if result < 0 { throw WasteError(error, code: Int32(result)) }
  return result
}

/// An array of the library's, asked for once more if the first guess of its count was too small.
func fetchArray<Element>(
  guess: Int,
  _ body: (UnsafeMutableBufferPointer<Element>, UnsafeMutablePointer<waste_error>) -> Int64
) throws(WasteError) -> [Element] {
  var capacity = guess
  while true {
    var error = waste_error.sized()
    var count: Int64 = 0
    let array = [Element](unsafeUninitializedCapacity: capacity) { buffer, initialized in
      count = body(buffer, &error)
      initialized = max(0, min(Int(count), buffer.count))
    }
    if count < 0 { throw WasteError(error, code: Int32(count)) }
    if Int(count) <= array.count { return array }
    capacity = Int(count)
  }
}

/// The UTF-8 of `text`. Also an empty text has an address, because NULL means no text.
func withText<Result>(
  _ text: String, _ body: (UnsafeBufferPointer<CChar>) -> Result
) -> Result {
  var text = text
  return text.withUTF8 { withBytes($0, body) }
}

func withBytes<Result>(
  _ bytes: UnsafeBufferPointer<UInt8>, _ body: (UnsafeBufferPointer<CChar>) -> Result
) -> Result {
  if bytes.isEmpty {
    return withUnsafePointer(to: CChar(0)) { body(UnsafeBufferPointer(start: $0, count: 0)) }
  }
  return bytes.withMemoryRebound(to: CChar.self, body)
}

/// A number for a field of 32 bits.
func narrow(_ value: Int, _ name: String) throws(WasteError) -> Int32 {
  guard let result = Int32(exactly: value) else {
    throw .argument("\(name) is \(value), which does not fit 32 bits")
  }
  return result
}

/// A number for a field in which 0 would mean the default: nil does, so 0 is refused.
func explicit<Number: Numeric>(_ value: Number?, _ name: String) throws(WasteError) -> Number {
  guard let value else { return 0 }
  if value == 0 { throw .argument("\(name) is 0; leave it out for the default") }
  return value
}
