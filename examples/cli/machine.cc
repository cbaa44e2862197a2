// SPDX-License-Identifier: Apache-2.0

#include "machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#if defined(__linux__)
#include <sched.h>
#include <sys/sysmacros.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace waste_cli {
namespace {

#if defined(__linux__)

// "NAME : value" of a file under /proc.
std::string ValueOf(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == line.npos || !line.starts_with(name)) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return {};
}

int64_t KilobytesOf(const std::string& name) {
  int64_t kilobytes = 0;
  std::istringstream(ValueOf("/proc/meminfo", name)) >> kilobytes;
  return kilobytes * 1024;
}

// The folders of this process's groups and of all above them: of version 2, or of a controller of
// version 1. A group that is not to be seen from here is left out, those above it are not.
std::vector<std::string> GroupFolders(const std::string& controller) {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool belongs = ("," + controllers + ",").find("," + controller + ",") != line.npos;
    if (!controllers.empty() && !belongs) continue;
    const std::string mount = "/sys/fs/cgroup" + (belongs ? "/" + controllers : std::string());
    for (std::string group = line.substr(second + 1); group.size() > 1;
         group.resize(group.rfind('/')))
      folders.push_back(mount + group);
    folders.push_back(mount);
  }
  return folders;
}

int64_t GroupMemoryBytes(int64_t memory_bytes) {
  int64_t tightest = memory_bytes;
  for (const std::string& folder : GroupFolders("memory"))
    for (const char* name : {"/memory.max", "/memory.high", "/memory.limit_in_bytes"}) {
      std::ifstream file(folder + name);
      if (int64_t limit = 0; file >> limit) tightest = std::min(tightest, limit);
    }
  return tightest < memory_bytes ? tightest : 0;
}

double GroupCores() {
  double tightest = 0;
  for (const std::string& folder : GroupFolders("cpu")) {
    std::ifstream both(folder + "/cpu.max"), old_quota(folder + "/cpu.cfs_quota_us"),
        old_period(folder + "/cpu.cfs_period_us");
    double quota = 0, period = 0;
    if (!(both >> quota >> period) && !(old_quota >> quota && old_period >> period)) continue;
    if (quota <= 0 || period <= 0) continue;
    tightest = tightest > 0 ? std::min(tightest, quota / period) : quota / period;
  }
  return tightest;
}

// Cores granted, and how many of them are cores of their own.
void CountCores(Machine& machine) {
  std::vector<cpu_set_t> mask(64);  // of more cores than any kernel is built for
  const size_t bytes = mask.size() * sizeof(cpu_set_t);
  if (sched_getaffinity(0, bytes, mask.data()) != 0) return;
  machine.cores_granted = CPU_COUNT_S(bytes, mask.data());
  std::set<std::string> cores;
  for (size_t core = 0; core < bytes * 8; ++core) {
    if (!CPU_ISSET_S(core, bytes, mask.data())) continue;
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(core) +
                       "/topology/thread_siblings_list");
    if (std::string siblings; file >> siblings) cores.insert(siblings);
  }
  machine.cores_physical = static_cast<int32_t>(cores.size());
}

int32_t CountMemoryNodes() {
  int32_t count = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/node", none)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > 4 && name.starts_with("node") && std::isdigit(name[4]) != 0) ++count;
  }
  return count;
}

#endif

bool Has(const char* feature) {
#if defined(__x86_64__)
  const std::string_view name = feature;
  if (name == "f16c") {  // Clang 14 does not know it
    unsigned eax, ebx, ecx = 0, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  }
  if (name == "avx2") return __builtin_cpu_supports("avx2") != 0;
  if (name == "fma") return __builtin_cpu_supports("fma") != 0;
  if (name == "avx512f") return __builtin_cpu_supports("avx512f") != 0;
  if (name == "avx512bw") return __builtin_cpu_supports("avx512bw") != 0;
  if (name == "avx512dq") return __builtin_cpu_supports("avx512dq") != 0;
  if (name == "avx512vl") return __builtin_cpu_supports("avx512vl") != 0;
  if (name == "avx512vbmi") return __builtin_cpu_supports("avx512vbmi") != 0;
  if (name == "avx512vnni") return __builtin_cpu_supports("avx512vnni") != 0;
  return false;
#else
  return feature != nullptr;  // NEON is part of every 64-bit ARM
#endif
}

}  // namespace

Machine ExamineMachine() {
  Machine machine;
  machine.cores_online = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  machine.cores_granted = machine.cores_online;
#if defined(__linux__)
  machine.memory_bytes = KilobytesOf("MemTotal");
  machine.swap_bytes = KilobytesOf("SwapTotal");
  machine.swap_used_bytes = machine.swap_bytes - KilobytesOf("SwapFree");
  machine.cgroup_memory_bytes = GroupMemoryBytes(machine.memory_bytes);
  machine.quota_cores = GroupCores();
  machine.memory_nodes = CountMemoryNodes();
  CountCores(machine);
#elif defined(__APPLE__)
  size_t size = sizeof machine.memory_bytes;
  sysctlbyname("hw.memsize", &machine.memory_bytes, &size, nullptr, 0);
  size = sizeof machine.cores_physical;
  sysctlbyname("hw.physicalcpu", &machine.cores_physical, &size, nullptr, 0);
#endif
  return machine;
}

std::string ProcessorName() {
  std::string name;
#if defined(__linux__)
  name = ValueOf("/proc/cpuinfo", "model name");
#elif defined(__APPLE__)
  char text[256] = {};
  size_t size = sizeof text - 1;
  if (sysctlbyname("machdep.cpu.brand_string", text, &size, nullptr, 0) == 0) name = text;
#endif
#if defined(__x86_64__)
  return name.empty() ? "x86-64" : name;
#else
  return name.empty() ? "ARM64" : name;
#endif
}

std::vector<std::string> VectorFeatures(bool present) {
  std::vector<std::string> features;
#if defined(__x86_64__)
  const char* const known[] = {"f16c",     "fma",      "avx2",       "avx512f",   "avx512bw",
                               "avx512dq", "avx512vl", "avx512vbmi", "avx512vnni"};
#else
  const char* const known[] = {"neon"};
#endif
  for (const char* feature : known)
    if (Has(feature) == present) features.emplace_back(feature);
  return features;
}

std::vector<std::string> InstructionSets() {
  std::vector<std::string> sets;
#if defined(__x86_64__)
  const auto has = [](std::initializer_list<const char*> features) {
    return std::all_of(features.begin(), features.end(), Has);
  };
  const bool avx2 = has({"avx2", "fma", "f16c"});
  const bool avx512 = avx2 && has({"avx512f", "avx512bw", "avx512dq", "avx512vl"});
  if (avx512 && has({"avx512vbmi", "avx512vnni"})) sets.emplace_back("avx512vbmi");
  if (avx512) sets.emplace_back("avx512");
  if (avx2) sets.emplace_back("avx2");
#else
  sets.emplace_back("neon");
#endif
  sets.emplace_back("scalar");
  return sets;
}

std::string FileSystemOf([[maybe_unused]] const std::string& path) {
#if defined(__linux__)
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return {};
  const std::string device =
      std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  // "id parent DEVICE root point options [optional...] - TYPE SOURCE options"
  for (std::string line; std::getline(mounts, line);) {
    const size_t dash = line.find(" - ");
    std::istringstream front(line);
    std::string id, parent, its_device, type, source;
    front >> id >> parent >> its_device;
    if (its_device != device || dash == line.npos) continue;
    std::istringstream(line.substr(dash + 3)) >> type >> source;
    return source.empty() || source == type ? type
                                            : type + " on " + source.substr(source.rfind('/') + 1);
  }
#endif
  return {};
}

}  // namespace waste_cli
