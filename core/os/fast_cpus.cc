// SPDX-License-Identifier: Apache-2.0

#include "os/fast_cpus.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <utility>
#include <vector>

namespace waste {
namespace {

constexpr double kFastShare = 0.7;  // of the best

using Speeds = std::vector<std::pair<int32_t, int64_t>>;  // CPU, in the file's unit

// What the file `name` of each CPU says; nothing unless all of them say something.
Speeds ReadSpeeds(const CpuSet& cpus, const std::string& root, const std::string& name) {
  Speeds speeds;
  for (int32_t cpu = 0; cpu < CpuSet::kMaxCpus; ++cpu) {
    if (!cpus.Has(cpu)) continue;
    std::ifstream file(root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + name);
    int64_t speed;
    if (!(file >> speed) || speed <= 0) return {};
    speeds.emplace_back(cpu, speed);
  }
  return speeds;
}

}  // namespace

CpuSet FastCpus(const CpuSet& cpus, const std::string& root) {
  Speeds speeds = ReadSpeeds(cpus, root, "cpu_capacity");
  if (speeds.empty()) speeds = ReadSpeeds(cpus, root, "cpufreq/cpuinfo_max_freq");
  if (speeds.empty()) return cpus;
  int64_t best = 0;
  for (const auto& [cpu, speed] : speeds) best = std::max(best, speed);
  CpuSet fast;
  for (const auto& [cpu, speed] : speeds)
    if (static_cast<double>(speed) >= kFastShare * static_cast<double>(best)) fast.Add(cpu);
  return fast;
}

}  // namespace waste
