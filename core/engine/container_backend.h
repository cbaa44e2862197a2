// SPDX-License-Identifier: Apache-2.0
//
// A model from a container: opens, plans, loads, and runs steps. Everything is allocated here,
// once, by the plan.

#ifndef WASTE_CORE_ENGINE_CONTAINER_BACKEND_H_
#define WASTE_CORE_ENGINE_CONTAINER_BACKEND_H_

#include <memory>
#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "budget/memory_plan.h"
#include "container/container.h"
#include "engine/backend.h"
#include "engine/open_options.h"
#include "engine/team.h"
#include "kernels/kernels.h"
#include "model/config.h"

namespace waste {

// A container whose config was understood, and what it would take, before anything is loaded.
struct PreparedContainer {
  std::unique_ptr<Container> container;
  ModelConfig config;
  int64_t context = 0;
  Team team;
  const Kernels* kernels = nullptr;
  ModelSizes sizes;
};

// Errors: those of Container::Open and ParseModelConfig; kArgument for options out of range;
// kUnsupported (the ISA).
Result<PreparedContainer> PrepareContainer(const std::string& path, const OpenOptions& options);

// Errors also: kRamBudget (with the floor), kNoMemory, kCancelled.
Result<OpenedBackend> OpenContainerBackend(const std::string& path, const OpenOptions& options,
                                           Progress& progress);

// Reads every byte of a container and checks all that opening would. Errors: the first damage,
// named; kCancelled.
Status VerifyModel(const std::string& path, Progress& progress);

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_CONTAINER_BACKEND_H_
