// SPDX-License-Identifier: Apache-2.0
//
// Structs of the header to structs of the engine and back. No rules of the engine live here: ranges
// that only the engine knows are checked there.

#ifndef WASTE_CAPI_TRANSLATE_H_
#define WASTE_CAPI_TRANSLATE_H_

#include <waste/waste.h>

#include "base/status.h"
#include "convert/convert.h"
#include "convert/synthesize.h"
#include "engine/generation.h"
#include "engine/open_options.h"
#include "engine/session.h"

namespace waste {

Result<OpenOptions> ToOpenOptions(const waste_open_options* given);
Result<SessionOptions> ToSessionOptions(const waste_session_options* given);
Result<GenerationOptions> ToGenerationOptions(const waste_generation_options* given);
Result<ConvertOptions> ToConvertOptions(const waste_convert_options* given);
Result<SyntheticModel> ToSyntheticModel(std::string_view shape,
                                        const waste_synthesis_options* given);

waste_memory_plan FromPlan(const MemoryPlan& plan);
waste_info InfoOf(const Model& model);
waste_stats StatsOf(const WorkCounters& work);

}  // namespace waste

#endif  // WASTE_CAPI_TRANSLATE_H_
