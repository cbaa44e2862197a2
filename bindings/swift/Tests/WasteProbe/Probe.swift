// SPDX-License-Identifier: Apache-2.0
//
// A process for tests that need one of their own: it opens a model and answers, exits in the middle
// of an answer, or goes on with a saved session. Not part of the package's products.

import Foundation
import Waste

@main struct Probe {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    do {
      switch arguments.first {
      case "answer": try await answer(URL(string: arguments[1])!, prompt: arguments[2])
      case "exit": try await exitInTheMiddle(URL(string: arguments[1])!, code: Int32(arguments[2])!)
      case "return": try await returnInTheMiddle(URL(string: arguments[1])!)
      case "resume": try await resume(URL(string: arguments[1])!, from: URL(string: arguments[2])!)
      default: print("arguments: answer | exit | return | resume")
      }
    } catch let error as WasteError {
      print("WasteError \(error.code): \(error.message)")
      exit(3)
    } catch {
      print("\(type(of: error)): \(error)")
      exit(4)
    }
  }

  private static func answer(_ url: URL, prompt: String) async throws {
    let model = try await WasteModel.open(url)
    print(try await model.makeSession().respond(to: prompt).content)
  }

  /// Starts answers that never end and returns once each has given its first piece.
  private static func startEndlessAnswers(_ url: URL) async throws {
    for _ in 0..<3 {
      let session = try await WasteModel.open(url).makeSession()
      let started = AsyncStream.makeStream(of: Void.self)
      Task {
        for try await _ in session.streamResponse(to: "x") { started.continuation.yield() }
      }
      for await _ in started.stream { break }
    }
  }

  private static func exitInTheMiddle(_ url: URL, code: Int32) async throws {
    try await startEndlessAnswers(url)
    print("exiting")
    exit(code)
  }

  private static func returnInTheMiddle(_ url: URL) async throws {
    try await startEndlessAnswers(url)
    print("returning")
  }

  private static func resume(_ url: URL, from file: URL) async throws {
    let model = try await WasteModel.open(url)
    let session = try model.makeSession()
    try await session.load(from: file)
    let rest = try await session.respond(to: "What is the capital of Japan?")
    print(rest.tokens.map(String.init).joined(separator: " "))
  }
}
