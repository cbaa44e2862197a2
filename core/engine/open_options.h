// SPDX-License-Identifier: Apache-2.0
//
// What a caller may choose when a model is opened. Zero is "the default" in every field. Plain
// data, but for what tests put in the system's place.

#ifndef WASTE_CORE_ENGINE_OPEN_OPTIONS_H_
#define WASTE_CORE_ENGINE_OPEN_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "budget/elastic_policy.h"
#include "os/file.h"
#include "os/memory_pressure.h"
#include "os/system.h"

namespace waste {

struct OpenOptions {
  // A session's context unless the model's own maximum is smaller.
  static constexpr int64_t kDefaultContext = 8192;

  int64_t budget_bytes = 0;
  int64_t context = 0;
  int32_t threads = 0;
  std::string cpu_list = {};  // where they run, as in "0-3,8"; empty: see ChooseTeam
  IoMode io = IoMode::kAuto;
  int32_t lanes = 0;      // reads at once; 0: what a short measurement finds best
  bool lookahead = true;  // guess what the next layer needs, and read it when nothing else is read
  bool verify = false;
  bool exact = false;  // f32 over dequantised weights only; else faster arithmetic is allowed
  Isa isa = Isa::kBest;
  std::function<std::unique_ptr<MemoryPressure>()> pressure = SystemMemoryPressure;
  ElasticPace pace = {};
  FileOpener open_file = OpenFile;  // of trunk, codebooks and banks: tests put faults there
};

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_OPEN_OPTIONS_H_
