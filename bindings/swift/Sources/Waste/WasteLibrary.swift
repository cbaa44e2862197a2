// SPDX-License-Identifier: Apache-2.0
//
// Which libwaste was loaded, and whether it is the one that this module was compiled for. Asked
// once, before anything else is.

import CWaste

/// The native library that this process has loaded.
public enum WasteLibrary {
  /// "major.minor.patch".
  public static var version: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      let count = min(Int(Raw.version(buffer: buffer)), buffer.count)
      return String(decoding: UnsafeRawBufferPointer(buffer)[..<max(0, count)], as: UTF8.self)
    }
  }

  /// The number of the binary interface that the library has.
  public static var abiVersion: Int { Int(Raw.abiVersion()) }

  /// Throws `abiMismatch` if the library is not the one this package was made for. `WasteModel` and
  /// `WasteJob` do this by themselves.
  public static func check() throws(WasteError) {
    if let mismatch { throw mismatch }
  }

  private static let mismatch: WasteError? = {
    guard Raw.abiVersion() == RawConstant.abiVersion else {
      return .abiMismatch(
        "libwaste has ABI \(Raw.abiVersion()), and this package was made for ABI"
          + " \(RawConstant.abiVersion): install the two of one release")
    }
    var sizes = [Int32](repeating: 0, count: rawStructSizes.count)
    let count = sizes.withUnsafeMutableBufferPointer { Raw.abiSizes(sizes: $0) }
    guard Int(count) == rawStructSizes.count, sizes == rawStructSizes else {
      return .abiMismatch(
        "the structs of libwaste \(version) have \(sizes) bytes, and this package was made for"
          + " \(rawStructSizes): install the two of one release")
    }
    return nil
  }()
}
