// SPDX-License-Identifier: Apache-2.0
//
// What a model would cost in memory, before it is loaded.

import SwiftUI
import Waste

struct MemoryPlanView: View {
  let name: String
  let plan: MemoryPlan
  let load: () -> Void
  let other: () -> Void

  var body: some View {
    Form {
      Section("What it needs") {
        row("Shared weights", plan.trunkBytes)
        row("One conversation", plan.stateBytes)
        row("Work space", plan.scratchBytes + plan.stagingBytes)
        row("At least", plan.floorBytes).bold()
        row("Better", plan.recommendedBytes)
      }
      Section("What it gets") {
        row("This device allows", plan.usableBytes)
        row("Taken in all", plan.budgetBytes)
        row("Of that, experts kept in memory", plan.cacheBytes)
      }
      Section {
        Button("Load", action: load).disabled(!plan.fits)
        Button("Another model…", action: other)
      } footer: {
        if !plan.fits { Text("This device has too little memory for this model.") }
      }
    }
    .formStyle(.grouped)
    .navigationTitle(name)
  }

  private func row(_ title: LocalizedStringKey, _ bytes: Int64) -> some View {
    LabeledContent(title) { Text(bytes, format: .byteCount(style: .memory)) }
  }
}
