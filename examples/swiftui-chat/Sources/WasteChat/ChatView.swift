// SPDX-License-Identifier: Apache-2.0
//
// The conversation: messages, a field, and a button that asks or stops.

import SwiftUI

struct ChatView: View {
  let state: ChatState
  let title: String
  @State private var question = ""
  @FocusState private var isFocused: Bool

  var body: some View {
    ScrollViewReader { reader in
      ScrollView {
        LazyVStack(alignment: .leading, spacing: 12) {
          ForEach(state.messages) { MessageView(message: $0) }
        }
        .padding()
      }
      .onChange(of: state.messages.last?.text) {
        if let last = state.messages.last { reader.scrollTo(last.id, anchor: .bottom) }
      }
    }
    .safeAreaInset(edge: .bottom) { field }
    .navigationTitle(title)
    .toolbar {
      Button("New", systemImage: "square.and.pencil") { Task { await state.startAfresh() } }
        .disabled(state.isResponding)
      Button("Close", systemImage: "eject") { Task { await state.unload() } }
    }
    .onAppear { isFocused = true }
  }

  private var field: some View {
    HStack {
      TextField("Ask", text: $question, axis: .vertical)
        .textFieldStyle(.roundedBorder)
        .focused($isFocused)
        .onSubmit(ask)
      if state.isResponding {
        Button("Stop", systemImage: "stop.circle.fill") { state.stop() }
      } else {
        Button("Ask", systemImage: "arrow.up.circle.fill", action: ask)
          .disabled(question.isEmpty)
      }
    }
    .labelStyle(.iconOnly)
    .font(.title2)
    .padding()
    .background(.bar)
  }

  private func ask() {
    state.ask(question)
    question = ""
  }
}

private struct MessageView: View {
  let message: ChatState.Message

  var body: some View {
    VStack(alignment: .leading, spacing: 4) {
      if !message.thinking.isEmpty {
        Text(message.thinking).font(.caption).foregroundStyle(.secondary)
      }
      Text(message.text).textSelection(.enabled)
      if message.isStopped {
        Text("stopped").font(.caption).foregroundStyle(.secondary)
      }
    }
    .padding(10)
    .background(
      message.isQuestion ? AnyShapeStyle(.tint.opacity(0.15)) : AnyShapeStyle(.quaternary),
      in: .rect(cornerRadius: 12)
    )
    .frame(maxWidth: .infinity, alignment: message.isQuestion ? .trailing : .leading)
    .id(message.id)
  }
}
