// SPDX-License-Identifier: Apache-2.0
//
// The program: one window, one conversation.

import SwiftUI

@main struct WasteChatApp: App {
  @State private var state = ChatState()

  var body: some Scene {
    WindowGroup {
      RootView(state: state)
        .alert("It did not work", isPresented: hasProblem) {
          Button("OK") { state.problem = nil }
        } message: {
          Text(state.problem ?? "")
        }
        #if os(iOS)
          .onReceive(NotificationCenter.default.publisher(for: memoryWarning)) { _ in
            state.stop()
          }
        #endif
    }
  }

  #if os(iOS)
    private var memoryWarning: Notification.Name {
      UIApplication.didReceiveMemoryWarningNotification
    }
  #endif

  private var hasProblem: Binding<Bool> {
    Binding(get: { state.problem != nil }, set: { if !$0 { state.problem = nil } })
  }
}

/// Picking a model, looking at what it costs, talking to it.
struct RootView: View {
  let state: ChatState
  @State private var isPicking = false

  var body: some View {
    NavigationStack {
      switch state.stage {
      case .noModel:
        ContentUnavailableView {
          Label("No model", systemImage: "shippingbox")
        } description: {
          Text("A model is a folder whose name ends in .waste.")
        } actions: {
          Button("Choose a model…") { isPicking = true }
        }
      case .planned(let container, let plan):
        MemoryPlanView(name: container.lastPathComponent, plan: plan) {
          state.load(container)
        } other: {
          isPicking = true
        }
      case .loading(let fraction):
        VStack(spacing: 16) {
          ProgressView("Loading", value: fraction).frame(maxWidth: 320)
          Button("Stop", role: .cancel) { state.stop() }
        }
        .padding()
      case .ready(let info):
        ChatView(state: state, title: info.name)
      }
    }
    .fileImporter(isPresented: $isPicking, allowedContentTypes: [.folder]) { result in
      guard case .success(let container) = result else { return }
      // Kept for as long as the program runs: the model reads its experts from there.
      _ = container.startAccessingSecurityScopedResource()
      state.plan(container)
    }
  }
}
