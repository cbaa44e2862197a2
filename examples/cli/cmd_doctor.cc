// SPDX-License-Identifier: Apache-2.0
//
// `waste doctor`: what of this machine will limit this model, in plain words and with the figures
// that say so.

#include <cstdio>
#include <nlohmann/json.hpp>

#include "command.h"
#include "limits.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Measures the memory, the arithmetic and the drive, opens the model as the other commands would, and
tells which of them a token will wait for, with nothing cached and with all experts in memory.

Examples:
  waste doctor model.waste
  waste doctor model.waste --budget 16G
JSON: limited_by ("memory", "drive" or "arithmetic"), advice (sentences), decode_cold_tok_s,
      decode_resident_tok_s, prefill_limit_tok_s, memory_limit_bytes_s, disk_limit_bytes_s,
      fma_limit_flops, direct_io, isa, threads, usable_bytes, budget_bytes, floor_bytes,
      experts_cached_share)";

// What a token costs, and what the machine gives.
struct Findings {
  waste_memory_plan plan = Sized<waste_memory_plan>();
  waste_info info = Sized<waste_info>();
  double memory_bytes_s = 0;
  double flops = 0;
  DriveLimit drive;

  // The plan recommends the floor and twice what a token uses.
  double token_expert_bytes() const {
    return static_cast<double>(plan.recommended_bytes - plan.floor_bytes) / 2;
  }
  double experts_in_all() const {
    const double of_a_layer =
        static_cast<double>(info.experts_per_token) * static_cast<double>(info.expert_bytes);
    return of_a_layer > 0 ? token_expert_bytes() / of_a_layer * info.expert_count : 0;
  }
  double cached_share() const {
    const double all = experts_in_all();
    return all > 0 ? std::min(1.0, static_cast<double>(info.cache_slots) / all) : 1.0;
  }
  double resident_tok_s() const {
    return memory_bytes_s / (static_cast<double>(info.token_trunk_bytes) + token_expert_bytes());
  }
  double cold_tok_s() const {
    const double read = token_expert_bytes();
    return read > 0 && drive.bytes_s > 0 ? std::min(resident_tok_s(), drive.bytes_s / read)
                                         : resident_tok_s();
  }
  double prefill_tok_s() const { return flops / static_cast<double>(info.token_flops); }
  bool reads_in_steady_state() const { return cached_share() < 0.999; }

  std::string limited_by() const {
    if (flops / static_cast<double>(info.token_flops) < resident_tok_s()) return "arithmetic";
    return reads_in_steady_state() && cold_tok_s() < resident_tok_s() ? "drive" : "memory";
  }
};

Findings Examine(const ModelOptions& options) {
  Findings found;
  const waste_open_options open = OpenOptionsOf(options);
  Try([&](waste_error* error) {
    return waste_plan(options.path.data(), std::ssize(options.path), &open, &found.plan, error);
  });
  const Model model = OpenModel(options);
  found.info = InfoOf(model);
  ProgressBar bar("Measuring", Unit::kPieces);
  bar.Show(0, 3);
  found.memory_bytes_s = MemoryLimit(found.info.threads);
  bar.Show(1, 3);
  found.flops = FmaLimit(found.info.threads, found.info.isa);
  bar.Show(2, 3);
  found.drive = MeasureDrive(options.path, found.info.expert_bytes);
  return found;
}

std::string Format(const char* format, auto... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::vector<std::string> Advice(const Findings& found) {
  std::vector<std::string> advice;
  const std::string limit = found.limited_by();
  if (limit == "drive")
    advice.push_back(Format(
        "The drive will limit it: a token needs %s of experts, and %.0f %% of all experts fit the "
        "cache. A larger --budget or a faster drive helps; more threads do not.",
        SizeText(static_cast<int64_t>(found.token_expert_bytes())).c_str(),
        100 * found.cached_share()));
  else if (limit == "memory")
    advice.push_back(
        "Memory bandwidth will limit it: everything a token needs is in RAM, and has to be read "
        "from there once a token. Faster or more channels of RAM help; a faster drive does not.");
  else
    advice.push_back("Arithmetic will limit it: more cores or wider vectors help.");
  if (found.drive.bytes_s > 0 && found.info.direct_io == 0)
    advice.push_back(
        "This file system gives no direct reads: experts go through the page cache, which costs "
        "some speed. Put the container on a local file system.");
  if (found.info.expert_bytes > 0 && found.drive.bytes_s > 0 && found.drive.bytes_s < 3e8 &&
      found.reads_in_steady_state())
    advice.push_back("This is the speed of a hard disk or a network. An SSD is ten times faster.");
  if (found.plan.budget_bytes < found.plan.recommended_bytes)
    advice.push_back("The budget is below the recommended " +
                     SizeText(found.plan.recommended_bytes) +
                     ": the cache holds less than what two tokens use.");
  if (found.info.isa == WASTE_ISA_SCALAR)
    advice.push_back("No vector instructions are in use, which is several times slower.");
  return advice;
}

nlohmann::ordered_json ToJson(const Findings& found) {
  return {{"limited_by", found.limited_by()},
          {"advice", Advice(found)},
          {"decode_cold_tok_s", found.cold_tok_s()},
          {"decode_resident_tok_s", found.resident_tok_s()},
          {"prefill_limit_tok_s", found.prefill_tok_s()},
          {"memory_limit_bytes_s", found.memory_bytes_s},
          {"disk_limit_bytes_s", found.drive.bytes_s},
          {"fma_limit_flops", found.flops},
          {"direct_io", found.info.direct_io != 0},
          {"isa", IsaName(found.info.isa)},
          {"threads", found.info.threads},
          {"usable_bytes", found.plan.usable_bytes},
          {"budget_bytes", found.info.budget_bytes},
          {"floor_bytes", found.plan.floor_bytes},
          {"experts_cached_share", found.cached_share()}};
}

void WriteReport(const Findings& found) {
  const std::string drive =
      found.drive.bytes_s > 0
          ? Format("%.2f GB/s in expert records, %s", found.drive.bytes_s / 1e9,
                   found.info.direct_io != 0 ? "direct" : "through the page cache")
          : std::string("nothing to be read from it");
  Write("processor  " +
        Format("%d threads, %s, %.0f GFLOP/s", found.info.threads, IsaName(found.info.isa),
               found.flops / 1e9) +
        "\n");
  Write("memory     " + SizeText(found.plan.usable_bytes) + " usable, " +
        SizeText(found.info.budget_bytes) + " granted (floor " + SizeText(found.plan.floor_bytes) +
        "), " + Format("%.1f GB/s", found.memory_bytes_s / 1e9) + "\n");
  Write("drive      " + drive + "\n");
  Write("decode     " +
        Format("at most %.1f tok/s with all experts in memory, %.1f with none",
               found.resident_tok_s(), found.cold_tok_s()) +
        "\n");
  Write("prefill    " + Format("at most %.1f tok/s", found.prefill_tok_s()) + "\n\n");
  for (const std::string& sentence : Advice(found)) Write(sentence + "\n");
}

}  // namespace

void AddDoctor(CLI::App& app, Program& program) {
  auto options = std::make_shared<ModelOptions>();
  CLI::App& command = AddCommand(app, program, "doctor", "Tell what will limit a model here",
                                 kFooter, [options, &program] {
                                   const Findings found = Examine(*options);
                                   if (program.json)
                                     WriteJson(ToJson(found));
                                   else
                                     WriteReport(found);
                                   return kExitOk;
                                 });
  AddModelOptions(command, *options);
}

}  // namespace waste_cli
