// SPDX-License-Identifier: Apache-2.0
//
// What the tests share: where things lie, scripted models, folders that go away, and waiting for a
// condition. test.sh sets the variables WASTE_TEST_*.

import Foundation
import Testing
import Waste

/// All tests run one after the other: several measure time or memory.
@Suite(.serialized) struct AllTests {}

enum Place {
  static let root = URL(fileURLWithPath: variable("ROOT"), isDirectory: true)
  static let conformance = root.appendingPathComponent("bindings/conformance", isDirectory: true)
  static let mini = root.appendingPathComponent("examples/mini/mini.waste", isDirectory: true)
  /// The built helper program.
  static let probe = URL(fileURLWithPath: variable("PROBE"))
  /// Folders with a libwaste that is none, one for each way to be wrong.
  static let stubs = URL(fileURLWithPath: variable("STUBS"), isDirectory: true)
  /// suite, asan, tsan or stress.
  static let mode = variable("MODE")
  /// A sanitizer keeps memory for itself.
  static let measuresMemory = mode == "suite" || mode == "stress"

  private static func variable(_ name: String) -> String {
    guard let value = ProcessInfo.processInfo.environment["WASTE_TEST_\(name)"] else {
      fatalError("WASTE_TEST_\(name) is not set; run bindings/swift/test.sh")
    }
    return value
  }
}

/// A folder that is removed with its last reference.
final class TemporaryFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("waste-swift-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String) -> URL { url.appendingPathComponent(name) }

  /// A copy of the mini model under another name.
  func copyOfMini(_ name: String) throws -> URL {
    let copy = file(name)
    try FileManager.default.copyItem(at: Place.mini, to: copy)
    return copy
  }
}

/// The URL of a scripted model in a file.
func scriptURL(_ file: URL) -> URL {
  URL(string: "test:" + file.absoluteURL.path(percentEncoded: true))!
}

/// Opens a scripted model of these JSON fields, e.g. `"answers": [["a"]]`.
func openScript(_ fields: String, options: OpenOptions = OpenOptions()) async throws -> WasteModel {
  let folder = try TemporaryFolder()
  let file = folder.file("script.json")
  try Data("{\(fields)}".utf8).write(to: file)
  return try await WasteModel.open(scriptURL(file), options: options)
}

let endless = #""answers": [[{"repeat": "ha"}]]"#

/// The pieces' texts, and what ended the reading.
func readAll(_ stream: ResponseStream) async -> (texts: [String], error: (any Error)?) {
  var texts: [String] = []
  do {
    for try await piece in stream { texts.append(piece.text) }
    return (texts, nil)
  } catch {
    return (texts, error)
  }
}

/// Looks at a condition until it holds, ten seconds at most.
func eventually(_ condition: () throws -> Bool) async throws -> Bool {
  let deadline = ContinuousClock.now + .seconds(10)
  while ContinuousClock.now < deadline {
    if try condition() { return true }
    try await Task.sleep(for: .milliseconds(1))
  }
  return false
}

func elapsed(_ body: () async throws -> Void) async rethrows -> Duration {
  try await ContinuousClock().measure(body)
}

/// Memory of this process in RAM, in bytes.
func residentBytes() throws -> Int64 {
  let statm = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
  let pages = try #require(Int64(statm.split(separator: " ")[1]))
  return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
}

/// A process and what came of it. Runs on a thread of its own, not on those that tests share.
func runProcess(
  _ program: URL, _ arguments: [String], environment: [String: String] = [:]
) async throws -> (code: Int32, output: String, crashed: Bool) {
  let process = Process()
  let pipe = Pipe()
  process.executableURL = program
  process.arguments = arguments
  process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
  process.standardOutput = pipe
  process.standardError = pipe
  try process.run()
  let output = await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      let data = pipe.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      continuation.resume(returning: String(decoding: data, as: UTF8.self))
    }
  }
  return (process.terminationStatus, output, process.terminationReason == .uncaughtSignal)
}

/// Runs the helper program, by default with the library that these tests run with. What it leaves
/// behind when it exits in the middle of an answer is no leak.
func runProbe(
  _ arguments: [String], library: URL? = nil
) async throws -> (code: Int32, output: String, crashed: Bool) {
  var environment = ["ASAN_OPTIONS": "detect_leaks=0"]
  if let library { environment["LD_LIBRARY_PATH"] = library.path }
  return try await runProcess(Place.probe, arguments, environment: environment)
}

/// A number that several threads count up.
final class Counter: @unchecked Sendable {
  private let lock = NSLock()
  private var count = 0

  func add() { lock.withLock { count += 1 } }
  var value: Int { lock.withLock { count } }
}
