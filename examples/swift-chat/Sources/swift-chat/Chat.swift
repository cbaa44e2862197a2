// SPDX-License-Identifier: Apache-2.0
//
// A chat in the terminal: one line a question, the answer as it is made. Ctrl-C stops the answer;
// a second one, or one at the prompt, ends the program, and so does the end of the input.

import Dispatch
import Foundation
import Waste

@main @MainActor struct Chat {
  static func main() async {
    guard let path = CommandLine.arguments.dropFirst().first, path != "--help" else {
      say("usage: swift-chat MODEL.waste [INSTRUCTIONS]\n")
      exit(2)
    }
    do {
      let model = try await open(path)
      let instructions = CommandLine.arguments.dropFirst(2).first
      let session = try model.makeSession(
        instructions: instructions, thinking: try model.info.canThink)
      let interrupts = stopOnInterrupt(session)
      try await talk(session)
      interrupts.cancel()
      await model.close()
    } catch let error as WasteError {
      say("\(error)\n")
      exit(1)
    } catch {
      say("\(error.localizedDescription)\n")
      exit(1)
    }
  }

  /// A container's folder, or "test:SCRIPT" for a model that says what a script tells it.
  private static func open(_ path: String) async throws -> WasteModel {
    let script = path.hasPrefix("test:") ? URL(string: path) : nil
    return try await WasteModel.open(script ?? URL(fileURLWithPath: path)) { progress in
      if progress.total > 0, isatty(2) != 0 {
        say("\rloading \(Int(progress.fraction * 100)) %\(progress.isFinished ? "\n" : "")")
      }
    }
  }

  private static func talk(_ session: WasteSession) async throws {
    while let question = ask() {
      if question.isEmpty { continue }
      do {
        try await answer(question, session)
      } catch is CancellationError {
        say("\n[stopped]\n")
      } catch WasteError.contextFull(let message) {
        say("\n\(message)\n[starting afresh]\n")
        try await session.reset()
      }
    }
  }

  private static func answer(_ question: String, _ session: WasteSession) async throws {
    let stream = session.streamResponse(to: question)
    var isThinking = false
    for try await piece in stream {
      if isThinking, piece.channel == .response { say("\n") }
      isThinking = piece.channel != .response
      if isThinking { say(piece.text) } else { write(piece.text) }
    }
    write("\n")
    if let answer = stream.response {
      say("[\(answer.usage.generatedTokens) tokens in \(answer.timings.decode)]\n")
    }
  }

  /// Blocks the main thread, which nothing else here needs; Swift's shared threads stay free.
  private static func ask() -> String? {
    say("> ")
    return readLine()
  }

  private static func stopOnInterrupt(_ session: WasteSession) -> any DispatchSourceSignal {
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    // @Sendable: it runs on a thread of Dispatch, not on the main actor.
    source.setEventHandler { @Sendable in
      if !session.isResponding { exit(130) }
      session.cancel()
    }
    source.resume()
    return source
  }

  private static func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }
  private static func say(_ text: String) { FileHandle.standardError.write(Data(text.utf8)) }
}
