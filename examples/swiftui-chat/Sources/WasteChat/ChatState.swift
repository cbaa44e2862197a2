// SPDX-License-Identifier: Apache-2.0
//
// What the screens show and the buttons do, without a line of SwiftUI: it compiles wherever Swift
// does. Everything here runs on the main actor; the model's work does not.

import Foundation
import Observation
import Waste

@MainActor @Observable final class ChatState {
  struct Message: Identifiable {
    let id = UUID()
    let isQuestion: Bool
    var text: String
    var thinking = ""
    var isStopped = false
  }

  enum Stage {
    case noModel
    case planned(URL, MemoryPlan)
    case loading(Double)
    case ready(ModelInfo)
  }

  private(set) var stage = Stage.noModel
  private(set) var messages: [Message] = []
  private(set) var isResponding = false
  var problem: String?

  private var model: WasteModel?
  private var session: WasteSession?
  private var work: Task<Void, Never>?

  /// What the model would cost, before anything is loaded.
  func plan(_ container: URL) {
    do {
      stage = .planned(container, try WasteModel.plan(container))
    } catch {
      problem = error.message
    }
  }

  func load(_ container: URL) {
    guard work == nil else { return }
    stage = .loading(0)
    work = Task {
      defer { work = nil }
      do {
        let model = try await WasteModel.open(container) { [weak self] progress in
          self?.stage = .loading(progress.fraction)
        }
        session = try model.makeSession(thinking: try model.info.canThink)
        stage = .ready(try model.info)
        self.model = model
      } catch {
        stage = .noModel
        report(error)
      }
    }
  }

  func ask(_ question: String) {
    guard let session, work == nil, !question.isEmpty else { return }
    messages.append(Message(isQuestion: true, text: question))
    messages.append(Message(isQuestion: false, text: ""))
    let answer = messages.count - 1
    isResponding = true
    work = Task {
      defer {
        isResponding = false
        work = nil
      }
      do {
        for try await snapshot in session.streamResponse(to: question).snapshots {
          messages[answer].text = snapshot.content
          messages[answer].thinking = snapshot.thinking
        }
      } catch {
        messages[answer].isStopped = error is CancellationError
        report(error)
      }
    }
  }

  /// The stop button: ends the load or the answer. What was said so far stays in the conversation.
  func stop() { work?.cancel() }

  /// A new conversation with the same model.
  func startAfresh() async {
    guard let session, work == nil else { return }
    do {
      try await session.reset()
      messages = []
    } catch {
      report(error)
    }
  }

  /// Gives the memory back: when the user leaves the model, or the system asks for it.
  func unload() async {
    work?.cancel()
    await work?.value
    await model?.close()
    (model, session, messages, stage) = (nil, nil, [], .noModel)
  }

  private func report(_ error: any Error) {
    if error is CancellationError { return }
    problem = (error as? WasteError)?.message ?? error.localizedDescription
  }
}
