// SPDX-License-Identifier: Apache-2.0

#include "options.h"

#include <map>
#include <random>

#include "progress.h"
#include "sizes.h"

namespace waste_cli {
namespace {

const std::map<std::string, int32_t> kIoNames = {
    {"auto", WASTE_IO_AUTO}, {"direct", WASTE_IO_DIRECT}, {"buffered", WASTE_IO_BUFFERED}};
const std::map<std::string, int32_t> kIsaNames = {
    {"best", WASTE_ISA_BEST}, {"scalar", WASTE_ISA_SCALAR},
    {"avx2", WASTE_ISA_AVX2}, {"avx512", WASTE_ISA_AVX512},
    {"neon", WASTE_ISA_NEON}, {"avx512vbmi", WASTE_ISA_AVX512_VBMI}};

std::string CheckBudget(const std::string& text) {
  if (text == "auto" || ParseSize(text)) return {};
  return "'" + text + "' is no size: 4G, 512M, a number of bytes, or auto";
}

}  // namespace

void AddModelOptions(CLI::App& command, ModelOptions& options) {
  AddRequired(command, "MODEL", options.path, "Folder of the converted model");
  AddText(command, "--budget", options.budget,
          "RAM for everything: 4G, 512M, bytes, or auto (default: auto)", CheckBudget);
  AddInteger(command, "--threads", options.threads,
             "Threads (default: the CPUs of --cpus; without, the cores granted that are not slow)",
             1, 4096);
  AddText(command, "--cpus", options.cpus,
          "Compute on these CPUs only, as in 0-3,8 (default: all but slow ones; Linux)");
  AddInteger(command, "--context", options.context,
             "Tokens a conversation may hold (default: the model's, at most 8192)", 1);
  AddChoice(command, "--io", options.io, kIoNames,
            "How experts are read: auto, direct (past the page cache) or buffered");
  AddInteger(command, "--lanes", options.lanes,
             "Experts read at once (default: 2, 4 or 8, as measured at open)", 1, 32);
  AddFlag(command, "--no-lookahead", options.no_lookahead,
          "Do not read experts that the next layer is likely to need");
  AddChoice(
      command, "--isa", options.isa, kIsaNames,
      "Instruction set: best, scalar, avx2, avx512, avx512vbmi or neon; `waste version` tells "
      "which of them this machine has (default: best)");
  AddFlag(command, "--exact", options.exact,
          "Compute in f32 over dequantised weights only, without the faster arithmetic that may be "
          "off by 0.1 %");
}

void AddSamplingOptions(CLI::App& command, SamplingOptions& options) {
  AddInteger(command, "--max-tokens", options.max_tokens,
             "Stop after N tokens (default: the end of the turn or of the context)", 1);
  AddNumber(command, "--temperature", options.temperature,
            "0 takes the likeliest token each time, 1 draws as the model says (default: 0)", 0,
            1000);
  AddNumber(command, "--top-p", options.top_p,
            "Draw from the smallest set of tokens with this probability (default: 1)", 1e-9, 1);
  AddInteger(command, "--top-k", options.top_k,
             "Draw from the N likeliest tokens, 0 from all (default: 0)", 0);
  AddNumber(command, "--min-p", options.min_p,
            "Leave out tokens below this share of the likeliest (default: 0)", 0, 1);
  AddInteger(command, "--seed", options.seed,
             "Same seed, same text (default: another one each time)");
  AddTexts(command, "--stop", options.stops, "End the answer before this text; may be repeated");
  AddNumber(command, "--repeat-penalty", options.repeat_penalty,
            "Above 1 makes recent tokens less likely (default: 1)", 1e-3, 1000);
  AddNumber(command, "--presence-penalty", options.presence_penalty,
            "Taken once from the logit of a recent token (default: 0)", -1000, 1000);
  AddNumber(command, "--frequency-penalty", options.frequency_penalty,
            "Taken for each recent occurrence (default: 0)", -1000, 1000);
  AddFlag(command, "--logprobs", options.logprobs, "Also tell how likely each token was");
}

waste_open_options OpenOptionsOf(const ModelOptions& options) {
  auto open = Sized<waste_open_options>();
  open.budget_bytes = ParseSize(options.budget).value_or(0);
  open.threads = options.threads;
  open.cpu_list = options.cpus.c_str();
  open.context = options.context;
  open.io = options.io;
  open.read_lanes = options.lanes;
  open.lookahead = options.no_lookahead ? 2 : 0;
  open.isa = options.isa;
  open.arithmetic = options.exact ? WASTE_ARITHMETIC_EXACT : WASTE_ARITHMETIC_FAST;
  return open;
}

waste_generation_options GenerationOptionsOf(const SamplingOptions& options) {
  auto generation = Sized<waste_generation_options>();
  generation.max_tokens = options.max_tokens;
  generation.temperature = options.temperature;
  generation.top_p = options.top_p;
  generation.min_p = options.min_p;
  generation.top_k = options.top_k;
  generation.repeat_penalty = options.repeat_penalty;
  generation.presence_penalty = options.presence_penalty;
  generation.frequency_penalty = options.frequency_penalty;
  generation.seed = options.seed.value_or(0);
  generation.logprobs = options.logprobs ? 1 : 0;
  return generation;
}

int64_t ChooseSeed(const SamplingOptions& options) {
  if (options.seed || options.temperature == 0) return options.seed.value_or(0);
  std::random_device device;
  const uint64_t bits = uint64_t{device()} << 32 | device();
  return static_cast<int64_t>(bits >> 11);  // 53 bits: JSON readers keep these exactly
}

Model OpenModel(const ModelOptions& options) {
  const waste_open_options open = OpenOptionsOf(options);
  const auto job = Make<waste_job>([&](waste_job** out, waste_error* error) {
    return waste_open_job(options.path.data(), std::ssize(options.path), &open, out, error);
  });
  WaitForJob(job.get(), "Loading", Unit::kBytes);
  auto model = Make<waste_model>([&](waste_model** out, waste_error* error) {
    return waste_job_model(job.get(), out, error);
  });
  PassNotesOn(model.get());
  return model;
}

waste_info InfoOf(const Model& model) {
  auto info = Sized<waste_info>();
  Try([&](waste_error* error) { return waste_model_info(model.get(), &info, error); });
  return info;
}

waste_stats StatsOf(const Model& model) {
  auto stats = Sized<waste_stats>();
  Try([&](waste_error* error) { return waste_model_stats(model.get(), &stats, error); });
  return stats;
}

const char* IsaName(int32_t isa) {
  for (const auto& [name, number] : kIsaNames)
    if (number == isa) return name.c_str();
  return "unknown";
}

}  // namespace waste_cli
