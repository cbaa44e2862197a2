// SPDX-License-Identifier: Apache-2.0
//
// A URL as the bytes that the library takes for a path.

import CWaste

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

struct FilePath: Sendable {
  private let bytes: [CChar]

  /// A file URL, or one of the scheme `test` whose path is a script (docs/capi.md).
  init(_ url: URL) throws(WasteError) {
    let script = url.scheme == "test"
    guard url.isFileURL || script else {
      throw .argument("\(url.absoluteString) is no file URL")
    }
    let file = script ? URL(fileURLWithPath: url.path) : url
    let path = file.withUnsafeFileSystemRepresentation { name in
      name.map { Array(UnsafeBufferPointer(start: $0, count: length(of: $0))) }
    }
    guard let path else { throw .argument("\(url.absoluteString) is no path of this system") }
    bytes = script ? "test:".utf8.map { CChar(bitPattern: $0) } + path : path
  }

  func use<Result>(_ body: (UnsafeBufferPointer<CChar>) -> Result) -> Result {
    bytes.withUnsafeBufferPointer(body)
  }
}

private func length(of text: UnsafePointer<CChar>) -> Int {
  var count = 0
  while text[count] != 0 { count += 1 }
  return count
}
