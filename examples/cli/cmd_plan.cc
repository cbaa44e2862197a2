// SPDX-License-Identifier: Apache-2.0
//
// `waste plan`: what opening a model would cost, before anything is loaded.

#include <nlohmann/json.hpp>

#include "command.h"
#include "options.h"
#include "output.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
floor       = trunk + state + scratch + staging: the least that works, slowly
recommended = floor and two working sets of experts
cache       = what the budget leaves for experts: the more, the fewer reads
usable      = RAM this process may use, without what is reserved for other open models

Examples:
  waste plan model.waste                 what this machine would give
  waste plan model.waste --budget 16G    does it fit, and what is left for the cache?
JSON: floor_bytes, recommended_bytes, trunk_bytes, state_bytes, scratch_bytes, staging_bytes,
      cache_bytes, usable_bytes, reserved_bytes, budget_bytes, fits)";

void WriteTable(const waste_memory_plan& plan) {
  const std::pair<const char*, int64_t> rows[] = {
      {"trunk", plan.trunk_bytes},       {"state", plan.state_bytes},
      {"scratch", plan.scratch_bytes},   {"staging", plan.staging_bytes},
      {"floor", plan.floor_bytes},       {"recommended", plan.recommended_bytes},
      {"reserved", plan.reserved_bytes}, {"usable", plan.usable_bytes},
      {"budget", plan.budget_bytes},     {"cache", plan.cache_bytes}};
  for (const auto& [name, size_bytes] : rows) {
    std::string line = name;
    line.resize(12, ' ');
    Write(line + SizeText(size_bytes) + "\n");
  }
  Write(plan.fits ? "It fits.\n" : "It does not fit: the budget is below the floor.\n");
}

int Plan(const ModelOptions& options, bool json) {
  const waste_open_options open = OpenOptionsOf(options);
  auto plan = Sized<waste_memory_plan>();
  Try([&](waste_error* error) {
    return waste_plan(options.path.data(), std::ssize(options.path), &open, &plan, error);
  });
  if (json) {
    WriteJson({{"floor_bytes", plan.floor_bytes},
               {"recommended_bytes", plan.recommended_bytes},
               {"trunk_bytes", plan.trunk_bytes},
               {"state_bytes", plan.state_bytes},
               {"scratch_bytes", plan.scratch_bytes},
               {"staging_bytes", plan.staging_bytes},
               {"cache_bytes", plan.cache_bytes},
               {"usable_bytes", plan.usable_bytes},
               {"reserved_bytes", plan.reserved_bytes},
               {"budget_bytes", plan.budget_bytes},
               {"fits", plan.fits != 0}});
  } else {
    WriteTable(plan);
  }
  return 0;
}

}  // namespace

void AddPlan(CLI::App& app, Program& program) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App& command =
      AddCommand(app, program, "plan", "Tell how much memory a model needs, without loading it",
                 kFooter, [options, &program] { return Plan(*options, program.json); });
  AddModelOptions(command, *options);
}

}  // namespace waste_cli
