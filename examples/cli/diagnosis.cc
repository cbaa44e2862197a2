// SPDX-License-Identifier: Apache-2.0

#include "diagnosis.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "options.h"
#include "sizes.h"

namespace waste_cli {
namespace {

constexpr double kSlowDrive = 3e8;  // bytes a second; every SSD is faster
using Sentences = std::vector<std::string>;

double PerSecond(double limit, double amount) { return amount > 0 ? limit / amount : 0; }

// The slower of memory, which every token needs, and a drive that has to give `read_bytes`.
double SlowerOf(const Findings& found, double read_bytes) {
  if (read_bytes <= 0 || found.drive.bytes_s <= 0) return found.warm_tok_s();
  return std::min(found.warm_tok_s(), found.drive.bytes_s / read_bytes);
}

// More memory, a faster drive, or neither: with the figures that would be needed.
void AdviseOnDrive(const Findings& found, Sentences& advice) {
  const int64_t wanted = found.resident_budget_bytes();
  advice.push_back(
      Format("The drive will limit it: a token uses %s of experts, and %.0f %% of all experts fit "
             "the cache.",
             AmountText(static_cast<double>(found.token_expert_bytes())).c_str(),
             100 * found.cached_share()));
  if (wanted <= found.plan.usable_bytes)
    advice.push_back("More memory for it: --budget " + std::to_string(wanted) + " (" +
                     SizeText(wanted) + ") keeps every expert, and this machine has that.");
  else
    advice.push_back("More memory: " + SizeText(wanted) + " would keep every expert, " +
                     SizeText(wanted - found.plan.usable_bytes) +
                     " more than is usable here. Each part of it saves reads.");
  advice.push_back(
      Format("A faster drive: at %.1f GB/s it would keep up with memory; this one gives %.2f.",
             found.token_missed_bytes() * found.warm_tok_s() / 1e9, found.drive.bytes_s / 1e9));
  if (found.info.threads > 1)
    advice.push_back("More threads will not help: those there are wait for the drive.");
}

void AdviseOnLimit(const Findings& found, Sentences& advice) {
  const std::string limit = found.limited_by();
  if (limit == "drive") {
    AdviseOnDrive(found, advice);
  } else if (limit == "memory") {
    advice.push_back(
        found.needs_drive()
            ? "Memory bandwidth will limit it: the drive keeps up with what the cache lacks. "
              "Faster or more channels of RAM help; a faster drive does not."
            : "Memory bandwidth will limit it: everything a token needs is in RAM, and has to be "
              "read from there once a token. Faster or more channels of RAM help; a faster drive "
              "does not.");
  } else {
    advice.push_back(
        "Arithmetic will limit it: more cores or wider vectors help; more memory or a faster drive "
        "do not.");
  }
}

void AdviseOnReads(const Findings& found, Sentences& advice) {
  if (found.drive.bytes_s <= 0) return;
  if (found.drives.share_a_device)
    advice.push_back(
        "Two folders with experts lie on one drive: copies there are no faster than one.");
  if (found.info.direct_io == 0 && found.io_asked != WASTE_IO_BUFFERED)
    advice.push_back("No direct reads (" + DirectText(found) +
                     "): experts go through the page cache, which costs some speed. Put the "
                     "container on a local file system such as ext4 or XFS.");
  if (found.info.direct_io == 0 && found.io_asked == WASTE_IO_BUFFERED)
    advice.push_back(
        "--io buffered asks for reads through the page cache; direct ones are faster "
        "where the drive allows them.");
  if (!found.needs_drive()) return;
  if (found.drive.bytes_s < kSlowDrive)
    advice.push_back("This is the speed of a hard disk or a network. An SSD is ten times faster.");
  if (found.drive.bytes_s < 0.9 * found.drive_one.bytes_s)
    advice.push_back("The drive is slower with several reads at once, as hard disks are.");
}

void AdviseOnMemory(const Findings& found, Sentences& advice) {
  if (found.plan.budget_bytes < found.plan.recommended_bytes)
    advice.push_back("The budget is below the recommended " +
                     SizeText(found.plan.recommended_bytes) +
                     ": the cache holds less than what two tokens use.");
  if (found.info.budget_bytes > found.plan.usable_bytes)
    advice.push_back("The budget is above what is usable (" + SizeText(found.plan.usable_bytes) +
                     "): the system will swap, or end the program. Lower --budget.");
  if (found.machine.cgroup_memory_bytes > 0 && found.needs_drive())
    advice.push_back("A cgroup limits memory to " + SizeText(found.machine.cgroup_memory_bytes) +
                     " of the machine's " + SizeText(found.machine.memory_bytes) +
                     "; raising it (docker run --memory, systemd MemoryMax) is cheaper than RAM.");
  if (found.machine.swap_bytes > 0)
    advice.push_back("Swap is on (" + SizeText(found.machine.swap_used_bytes) + " of " +
                     SizeText(found.machine.swap_bytes) +
                     " used): weights that are swapped out are read twice. Keep the budget below "
                     "what is usable, or turn swap off (swapoff -a).");
  if (found.machine.memory_nodes > 1)
    advice.push_back(
        Format("The memory has %d nodes: a model that fits one is faster there "
               "(numactl --cpunodebind=0 --membind=0).",
               found.machine.memory_nodes));
}

void AdviseOnProcessor(const Findings& found, Sentences& advice) {
  const auto has = VectorFeatures(true);
  const auto can = [&](const char* feature) {
    return std::find(has.begin(), has.end(), feature) != has.end();
  };
  const int32_t isa = found.info.isa;
  if (isa == WASTE_ISA_SCALAR)
    advice.push_back("No vector instructions are in use, which is several times slower" +
                     std::string(can("avx2") || can("neon") ? ": leave --isa out." : "."));
  else if (isa == WASTE_ISA_AVX2 && can("avx512f") && can("avx512bw") && can("avx512dq") &&
           can("avx512vl"))
    advice.push_back("AVX2 is in use although this processor has AVX-512: leave --isa out.");
}

void AdviseOnThreads(const Findings& found, Sentences& advice) {
  const Machine& machine = found.machine;
  const int32_t threads = found.info.threads;
  const double granted = machine.quota_cores > 0
                             ? std::min<double>(machine.quota_cores, machine.cores_granted)
                             : machine.cores_granted;
  if (threads > granted)
    advice.push_back(Format("%d threads share the time of %.3g cores: use --threads %d.", threads,
                            granted, std::max(1, static_cast<int>(granted))));
  else if (machine.cores_physical > 0 && threads > machine.cores_physical)
    advice.push_back(
        Format("%d threads run on %d cores, two on each: --threads %d may be as fast "
               "(compare with waste bench).",
               threads, machine.cores_physical, machine.cores_physical));
  if (granted < machine.cores_online)
    advice.push_back(Format(
        "This process may use %.3g of the machine's %d cores (%s).", granted, machine.cores_online,
        machine.cores_granted < machine.cores_online && granted == machine.cores_granted
            ? "affinity: taskset, a cpuset"
            : "CPU quota of a cgroup"));
}

}  // namespace

double Findings::cached_share() const {
  if (banks.experts <= 0) return 1;
  return std::min(1.0, static_cast<double>(info.cache_slots) / static_cast<double>(banks.experts));
}

double Findings::token_missed_bytes() const {
  return (1 - cached_share()) * static_cast<double>(token_expert_bytes());
}

double Findings::warm_tok_s() const {
  return PerSecond(memory_bytes_s, static_cast<double>(token_bytes()));
}

double Findings::cold_tok_s() const {
  return SlowerOf(*this, static_cast<double>(token_expert_bytes()));
}

double Findings::here_tok_s() const { return SlowerOf(*this, token_missed_bytes()); }

double Findings::prefill_tok_s() const {
  return PerSecond(prompt_flops(), static_cast<double>(info.token_flops));
}

std::string Findings::limited_by() const {
  if (prefill_tok_s() < here_tok_s()) return "arithmetic";
  return here_tok_s() < warm_tok_s() ? "drive" : "memory";
}

std::string DirectText(const Findings& found) {
  if (found.info.direct_io != 0) return "direct";
  std::string reason = found.drive.refusal;
  if (found.io_asked == WASTE_IO_BUFFERED) reason = "--io buffered";
  return "through the page cache" + (reason.empty() ? reason : ": " + reason);
}

std::vector<std::string> Advice(const Findings& found) {
  Sentences advice;
  AdviseOnLimit(found, advice);
  AdviseOnReads(found, advice);
  AdviseOnMemory(found, advice);
  AdviseOnProcessor(found, advice);
  AdviseOnThreads(found, advice);
  return advice;
}

std::string AmountText(double bytes) {
  if (bytes >= 1e9) return Format("%.2f GB", bytes / 1e9);
  return bytes >= 1e6 ? Format("%.1f MB", bytes / 1e6) : Format("%.0f kB", bytes / 1e3);
}

std::string Format(const char* format, ...) {
  char text[400];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

}  // namespace waste_cli
