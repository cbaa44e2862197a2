// SPDX-License-Identifier: Apache-2.0

#include "translate.h"

#include <cstddef>

#include "boundary.h"

namespace waste {
namespace {

Status CheckRange(int32_t value, int32_t most, const char* name) {
  if (value >= 0 && value <= most) return Status();
  return Failure(Code::kArgument, name, " is ", value, "; it may be 0 to ", most);
}

Status CheckReserved(int32_t value, const char* name) {
  if (value == 0) return Status();
  return Failure(Code::kArgument, name, " is ", value, "; it must be 0");
}

// Zero means the default in the header; in the engine the default is a number.
double Or(double value, double fallback) { return value == 0 ? fallback : value; }

}  // namespace

Result<OpenOptions> ToOpenOptions(const waste_open_options* given) {
  WASTE_ASSIGN(const waste_open_options o, ReadStruct(given, "options"));
  WASTE_TRY(CheckRange(o.io, WASTE_IO_BUFFERED, "io"));
  WASTE_TRY(CheckRange(o.lookahead, 2, "lookahead"));
  WASTE_TRY(CheckRange(o.arithmetic, WASTE_ARITHMETIC_EXACT, "arithmetic"));
  WASTE_TRY(CheckRange(o.isa, WASTE_ISA_AVX512_VBMI, "isa"));
  OpenOptions options;
  options.budget_bytes = o.budget_bytes;
  options.context = o.context;
  options.threads = o.threads;
  options.io = static_cast<IoMode>(o.io);
  options.lanes = o.read_lanes;
  options.lookahead = o.lookahead != 2;
  options.exact = o.arithmetic == WASTE_ARITHMETIC_EXACT;
  WASTE_ASSIGN(options.verify, Switch(o.verify, "verify"));
  options.isa = static_cast<Isa>(o.isa);
  // A struct that ends inside the pointer has none.
  constexpr size_t kEnd = offsetof(waste_open_options, cpu_list) + sizeof o.cpu_list;
  if (given == nullptr || given->struct_size < kEnd) return options;
  WASTE_ASSIGN(options.cpu_list, Text(o.cpu_list, -1, "cpu_list"));
  return options;
}

Result<SessionOptions> ToSessionOptions(const waste_session_options* given) {
  WASTE_ASSIGN(const waste_session_options o, ReadStruct(given, "options"));
  SessionOptions options;
  options.context = o.context;
  WASTE_ASSIGN(options.thinking, Switch(o.thinking, "thinking"));
  return options;
}

Result<GenerationOptions> ToGenerationOptions(const waste_generation_options* given) {
  WASTE_ASSIGN(const waste_generation_options o, ReadStruct(given, "options"));
  WASTE_TRY(CheckReserved(o.reserved, "reserved"));
  GenerationOptions options;
  SamplerOptions& sampler = options.sampler;
  sampler.temperature = o.temperature;
  sampler.top_k = o.top_k;
  sampler.top_p = Or(o.top_p, 1);
  sampler.min_p = o.min_p;
  sampler.repeat_penalty = Or(o.repeat_penalty, 1);
  sampler.presence_penalty = o.presence_penalty;
  sampler.frequency_penalty = o.frequency_penalty;
  sampler.penalty_window = o.penalty_window == 0 ? 64 : o.penalty_window;
  sampler.seed = o.seed;
  WASTE_ASSIGN(sampler.logprobs, Switch(o.logprobs, "logprobs"));
  options.max_tokens = o.max_tokens;
  WASTE_ASSIGN(options.raw, Switch(o.raw, "raw"));
  WASTE_ASSIGN(options.markup_out, Switch(o.markup_out, "markup_out"));
  return options;
}

Result<ConvertOptions> ToConvertOptions(const waste_convert_options* given) {
  WASTE_ASSIGN(const waste_convert_options o, ReadStruct(given, "options"));
  ConvertOptions options;
  options.threads = o.threads == 0 ? GrantedCores() : o.threads;
  if (o.index_bits != 0) options.index_bits = o.index_bits;
  options.stages = o.stages != 0 ? o.stages : options.index_bits == 6 ? 4 : 3;
  if (o.trunk_bits != 0) options.trunk_bits = o.trunk_bits;
  if (o.expert_beam != 0) options.expert_beam = o.expert_beam;
  if (o.quantise_from != 0) options.quantise_from = o.quantise_from;
  return options;
}

Result<SyntheticModel> ToSyntheticModel(std::string_view shape,
                                        const waste_synthesis_options* given) {
  WASTE_ASSIGN(const waste_synthesis_options o, ReadStruct(given, "options"));
  if (o.seed < 0 || o.seed > UINT32_MAX)
    return Failure(Code::kArgument, "seed is ", o.seed, "; it may be 0 to ", UINT32_MAX);
  WASTE_ASSIGN(const SyntheticModel whole, SyntheticModelNamed(shape));
  WASTE_ASSIGN(SyntheticModel model, CutDown(whole, o.layers, o.experts));
  model.seed = static_cast<uint32_t>(o.seed);
  return model;
}

waste_memory_plan FromPlan(const MemoryPlan& plan) {
  waste_memory_plan out{};
  out.fits = plan.fits ? 1 : 0;
  out.floor_bytes = plan.floor_bytes;
  out.recommended_bytes = plan.recommended_bytes;
  out.trunk_bytes = plan.trunk_bytes;
  out.state_bytes = plan.state_bytes;
  out.scratch_bytes = plan.scratch_bytes;
  out.staging_bytes = plan.staging_bytes;
  out.cache_bytes = plan.cache_bytes;
  out.usable_bytes = plan.usable_bytes;
  out.budget_bytes = plan.budget_bytes;
  out.reserved_bytes = plan.reserved_bytes;
  return out;
}

waste_info InfoOf(const Model& model) {
  const BackendInfo& info = model.info();
  waste_info out{};
  out.vocab_size = static_cast<int32_t>(info.vocab);
  out.layer_count = static_cast<int32_t>(info.layers);
  out.hidden_size = static_cast<int32_t>(info.hidden);
  out.expert_count = static_cast<int32_t>(info.experts);
  out.experts_per_token = static_cast<int32_t>(info.top_k);
  out.context = info.context;
  out.expert_bytes = info.expert_bytes;
  out.container_bytes = info.container_bytes;
  out.budget_bytes = model.plan().budget_bytes;
  out.cache_slots = model.plan().slot_count;
  out.threads = info.threads;
  out.isa = static_cast<int32_t>(info.isa);
  out.direct_io = info.direct_io ? 1 : 0;
  out.thinking = model.chat() != nullptr && model.chat()->can_think() ? 1 : 0;
  out.eos_token = info.stop_tokens.empty() ? -1 : info.stop_tokens.front();
  out.has_chat = model.chat() != nullptr ? 1 : 0;
  out.token_trunk_bytes = info.token_trunk_bytes;
  out.token_flops = info.token_flops;
  out.read_lanes = info.lanes;
  return out;
}

waste_stats StatsOf(const WorkCounters& work) {
  waste_stats out{};
  out.prompt_tokens = work.prompt_tokens;
  out.generated_tokens = work.generated_tokens;
  out.prefill_us = work.prefill_us;
  out.decode_us = work.decode_us;
  out.experts_hit = work.hits;
  out.experts_missed = work.misses;
  out.bytes_read = work.bytes_read;
  out.read_us = work.read_us;
  out.experts_foreseen = work.foreseen;
  out.speculative_reads = work.speculative_reads;
  out.speculative_bytes = work.speculative_bytes;
  out.read_stalls = work.stalls;
  return out;
}

}  // namespace waste
