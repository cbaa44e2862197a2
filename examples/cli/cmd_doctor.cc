// SPDX-License-Identifier: Apache-2.0
//
// `waste doctor`: what of this machine will limit this model, in plain words and with the figures
// that say so.

#include <fstream>
#include <nlohmann/json.hpp>

#include "command.h"
#include "diagnosis.h"
#include "limits.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr const char* kFooter = R"(
Measures the memory, the arithmetic and the drive, opens the model as the other commands would, and
tells which of them a token will wait for: cold, with no expert in memory; warm, with all of them;
and here, with as many as the budget holds if all were equally likely (text repeats some, and does
better). Each speed stands with the division that gives it. What is not as it could be (swap, no
direct reads, an unused instruction set, more threads than cores) is said in a sentence each.

Examples:
  waste doctor model.waste
  waste doctor model.waste --budget 16G
JSON: limited_by ("memory", "drive" or "arithmetic"), advice (sentences), decode_cold_tok_s,
      decode_resident_tok_s, decode_here_tok_s, prefill_limit_tok_s, token_trunk_bytes,
      token_expert_bytes, token_flops, memory_limit_bytes_s, disk_limit_bytes_s (four records at a
      time), disk_one_bytes_s (one), fma_limit_flops, word_limit_ops (products of words of 16 bits,
      for prompts; 0 without), direct_io, direct_io_reason, file_system, cpu, isa, features,
      features_missing, threads, cores_online, cores_granted, cores_physical, quota_cores (0: none),
      memory_nodes, memory_bytes, cgroup_memory_bytes (0: no limit), swap_bytes, swap_used_bytes,
      usable_bytes, budget_bytes, floor_bytes, recommended_bytes, resident_budget_bytes (keeps every
      expert), experts_cached_share, drives (folder, bytes_s and direct of each that has experts))";

// The library has found the manifest to be sound before this reads it.
ExpertBanks ReadBanks(const std::string& container) {
  ExpertBanks banks;
  std::ifstream file(container + "/manifest.json");
  const auto manifest = nlohmann::json::parse(file, nullptr, false);
  if (!manifest.is_object() || !manifest.contains("layers")) return banks;
  for (const auto& layer : manifest["layers"]) {
    ++banks.layers;
    banks.experts += layer.value("experts", int64_t{0});
    banks.bytes += layer.value("bytes", int64_t{0});
  }
  return banks;
}

Findings Examine(const ModelOptions& options) {
  Findings found;
  const waste_open_options open = OpenOptionsOf(options);
  Try([&](waste_error* error) {
    return waste_plan(options.path.data(), std::ssize(options.path), &open, &found.plan, error);
  });
  const Model model = OpenModel(options);
  found.info = InfoOf(model);
  if (found.info.token_flops <= 0)
    throw Failure("UNSUPPORTED", options.path +
                                     ": a scripted model has no weights that anything "
                                     "could wait for; name a container");
  found.banks = ReadBanks(options.path);
  found.machine = ExamineMachine();
  found.file_system = FileSystemOf(options.path);
  found.io_asked = options.io;
  ProgressBar bar("Measuring", Unit::kPieces);
  bar.Show(0, 4);
  found.memory_bytes_s = MemoryLimit(found.info.threads);
  bar.Show(1, 4);
  found.flops = FmaLimit(found.info.threads, found.info.isa);
  if (!options.exact) found.word_ops = WordLimit(found.info.threads, found.info.isa);
  bar.Show(2, 4);
  found.drive_one = MeasureDrives(options.path, found.info.expert_bytes, 1).all;
  bar.Show(3, 4);
  found.drives = MeasureDrives(options.path, found.info.expert_bytes, kDriveReaders);
  found.drive = found.drives.all;
  return found;
}

nlohmann::ordered_json ToJson(const std::vector<Drive>& drives) {
  auto list = nlohmann::ordered_json::array();
  for (const Drive& drive : drives)
    list.push_back({{"folder", drive.folder},
                    {"bytes_s", drive.limit.bytes_s},
                    {"direct", drive.limit.direct}});
  return list;
}

nlohmann::ordered_json ToJson(const Findings& found) {
  const Machine& machine = found.machine;
  return {{"limited_by", found.limited_by()},
          {"advice", Advice(found)},
          {"decode_cold_tok_s", found.cold_tok_s()},
          {"decode_resident_tok_s", found.warm_tok_s()},
          {"decode_here_tok_s", found.here_tok_s()},
          {"prefill_limit_tok_s", found.prefill_tok_s()},
          {"token_trunk_bytes", found.info.token_trunk_bytes},
          {"token_expert_bytes", found.token_expert_bytes()},
          {"token_flops", found.info.token_flops},
          {"memory_limit_bytes_s", found.memory_bytes_s},
          {"disk_limit_bytes_s", found.drive.bytes_s},
          {"disk_one_bytes_s", found.drive_one.bytes_s},
          {"fma_limit_flops", found.flops},
          {"word_limit_ops", found.word_ops},
          {"direct_io", found.info.direct_io != 0},
          {"direct_io_reason", found.info.direct_io != 0 ? "" : found.drive.refusal},
          {"file_system", found.file_system},
          {"cpu", ProcessorName()},
          {"isa", IsaName(found.info.isa)},
          {"features", VectorFeatures(true)},
          {"features_missing", VectorFeatures(false)},
          {"threads", found.info.threads},
          {"cores_online", machine.cores_online},
          {"cores_granted", machine.cores_granted},
          {"cores_physical", machine.cores_physical},
          {"quota_cores", machine.quota_cores},
          {"memory_nodes", machine.memory_nodes},
          {"memory_bytes", machine.memory_bytes},
          {"cgroup_memory_bytes", machine.cgroup_memory_bytes},
          {"swap_bytes", machine.swap_bytes},
          {"swap_used_bytes", machine.swap_used_bytes},
          {"usable_bytes", found.plan.usable_bytes},
          {"budget_bytes", found.info.budget_bytes},
          {"floor_bytes", found.plan.floor_bytes},
          {"recommended_bytes", found.plan.recommended_bytes},
          {"resident_budget_bytes", found.resident_budget_bytes()},
          {"experts_cached_share", found.cached_share()},
          {"drives", ToJson(found.drives.drives)}};
}

std::string Words(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Two columns; a line without a name goes on with what is above it.
void WriteLine(const char* name, const std::string& text) {
  Write(Format("%-11s", name) + text + "\n");
}

void WriteMachine(const Findings& found) {
  const Machine& machine = found.machine;
  const auto missing = VectorFeatures(false);
  WriteLine("processor", ProcessorName() + Format(", %s in use, %.0f GFLOP/s",
                                                  IsaName(found.info.isa), found.flops / 1e9));
  WriteLine("", "has " + Words(VectorFeatures(true)) +
                    (missing.empty() ? "; lacks nothing that kernels are written for"
                                     : "; lacks " + Words(missing)));
  WriteLine("threads",
            Format("%d in use; %d of %d cores granted", found.info.threads, machine.cores_granted,
                   machine.cores_online) +
                (machine.cores_physical > 0 ? Format(", %d physical", machine.cores_physical)
                                            : std::string()) +
                (machine.quota_cores > 0 ? Format(", CPU quota %.3g cores", machine.quota_cores)
                                         : std::string(", no CPU quota")));
  WriteLine("memory", SizeText(found.plan.usable_bytes) + " usable of " +
                          SizeText(machine.memory_bytes) +
                          (machine.cgroup_memory_bytes > 0
                               ? ", cgroup limit " + SizeText(machine.cgroup_memory_bytes)
                               : std::string(", no cgroup limit")) +
                          (machine.swap_bytes > 0 ? ", swap " + SizeText(machine.swap_bytes)
                                                  : std::string(", no swap")) +
                          Format("; read at %.1f GB/s", found.memory_bytes_s / 1e9));
  WriteLine("budget", SizeText(found.info.budget_bytes) + " granted (floor " +
                          SizeText(found.plan.floor_bytes) + ", recommended " +
                          SizeText(found.plan.recommended_bytes) + ", all experts " +
                          SizeText(found.resident_budget_bytes()) +
                          Format("); holds %.0f %% of the experts", 100 * found.cached_share()));
  WriteLine("drive", found.drive.bytes_s > 0
                         ? found.file_system +
                               Format("; records of %s: %.2f GB/s one at a time, %.2f four, ",
                                      SizeText(found.info.expert_bytes).c_str(),
                                      found.drive_one.bytes_s / 1e9, found.drive.bytes_s / 1e9) +
                               DirectText(found)
                         : std::string("nothing to be read from it"));
  for (const Drive& drive : found.drives.drives)
    if (found.drives.drives.size() > 1)
      WriteLine("", Format("%.2f GB/s of ", drive.limit.bytes_s / 1e9) + drive.folder);
}

// A speed, and the division that gives it.
void WriteSpeed(const char* name, const Findings& found, double tok_s, double read_bytes) {
  const bool by_drive = tok_s < found.warm_tok_s();
  WriteLine(name,
            Format("%8.2f tok/s = ", tok_s) +
                (by_drive ? AmountText(found.drive.bytes_s) + "/s of the drive / " +
                                AmountText(read_bytes) + " of experts to be read"
                          : AmountText(found.memory_bytes_s) + "/s of memory / (" +
                                AmountText(static_cast<double>(found.info.token_trunk_bytes)) +
                                " of trunk + " +
                                AmountText(static_cast<double>(found.token_expert_bytes())) +
                                " of experts)"));
}

void WriteReport(const Findings& found) {
  WriteMachine(found);
  Write("\nA token at best:\n");
  WriteSpeed("  cold", found, found.cold_tok_s(), static_cast<double>(found.token_expert_bytes()));
  WriteSpeed("  warm", found, found.warm_tok_s(), 0);
  WriteSpeed("  here", found, found.here_tok_s(), found.token_missed_bytes());
  WriteLine("  prefill",
            Format("%8.2f tok/s = %.1f GFLOP/s / %.3g GFLOP a token", found.prefill_tok_s(),
                   found.prompt_flops() / 1e9, static_cast<double>(found.info.token_flops) / 1e9));
  Write("\n");
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
