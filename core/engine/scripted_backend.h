// SPDX-License-Identifier: Apache-2.0
//
// A fake model for tests of everything above it: it says what a JSON file tells it, token by token,
// with stalls and failures where the file wants them (docs/capi.md, "Scripted models"). Tokenizer,
// chat format, sampler, stop strings and sessions are the real ones.

#ifndef WASTE_CORE_ENGINE_SCRIPTED_BACKEND_H_
#define WASTE_CORE_ENGINE_SCRIPTED_BACKEND_H_

#include <memory>
#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "engine/backend.h"
#include "engine/open_options.h"

namespace waste {

// Errors: kIo, kFormat (not a script; the message says where), kRamBudget, whatever the script
// says.
Result<OpenedBackend> OpenScriptedBackend(const std::string& path, const OpenOptions& options,
                                          Progress& progress);
Result<MemoryPlan> PlanScript(const std::string& path, const OpenOptions& options);

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_SCRIPTED_BACKEND_H_
