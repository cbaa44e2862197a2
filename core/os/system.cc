// SPDX-License-Identifier: Apache-2.0

#include "os/system.h"

#if !defined(_WIN32)  // system_windows.cc
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#if defined(__linux__)
#include "os/cgroup.h"
#include "os/cpu_affinity.h"
#elif defined(__APPLE__)
#include <mach/mach.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace waste {

#if !defined(_WIN32)

namespace {

#if defined(__linux__)

// "NAME:   1234 kB" of a file under /proc, in bytes.
std::optional<int64_t> ReadKilobytes(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    return std::strtoll(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return std::nullopt;
}

int64_t AvailableBytes() {
  return ReadKilobytes("/proc/meminfo", "MemAvailable")
      .value_or(int64_t{sysconf(_SC_AVPHYS_PAGES)} * sysconf(_SC_PAGESIZE));
}

#elif defined(__APPLE__)

int64_t AvailableBytes() {
  vm_statistics64_data_t statistics;
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  const mach_port_t host = mach_host_self();  // a reference more at each call
  const kern_return_t result =
      host_statistics64(host, HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&statistics), &count);
  mach_port_deallocate(mach_task_self(), host);
  if (result != KERN_SUCCESS) return 0;
  return (int64_t{statistics.free_count} + statistics.inactive_count) * sysconf(_SC_PAGESIZE);
}

#endif

}  // namespace

int32_t GrantedCores() {
  int32_t cores = static_cast<int32_t>(std::thread::hardware_concurrency());
#if defined(__linux__)
  if (const int32_t affinity = GrantedCpus().count(); affinity > 0) cores = affinity;
  // Rounded down: a thread more than the quota pays for stops all of them in every period.
  cores = static_cast<int32_t>(std::min<double>(cores, ReadCgroupLimits("").cores));
#endif
  return std::max(cores, 1);
}

int64_t UsableMemoryBytes() {
#if defined(__linux__)
  return std::min(AvailableBytes(), ReadCgroupLimits("").memory_bytes);
#else
  return AvailableBytes();
#endif
}

int64_t PeakResidentBytes() {
#if defined(__linux__)
  // getrusage would include what this process was before it called exec.
  if (const auto peak = ReadKilobytes("/proc/self/status", "VmHWM")) return *peak;
#endif
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
#if defined(__APPLE__)
  return usage.ru_maxrss;
#else
  return int64_t{usage.ru_maxrss} * 1024;
#endif
}

void DiscardPages(std::span<uint8_t> bytes) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));  // 16 KiB on some systems
  const uintptr_t start = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t end = (start + bytes.size()) / page * page;
  if (first >= end) return;
  uint8_t* const pages = bytes.data() + (first - start);
  madvise(pages, end - first, MADV_DONTNEED);
#if defined(MADV_FREE_REUSABLE)  // Apple's MADV_DONTNEED keeps the memory
  madvise(pages, end - first, MADV_FREE_REUSABLE);
#endif
}

#endif  // !_WIN32

int64_t MonotonicMicros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool CpuHas(Isa isa) {
  switch (isa) {
    case Isa::kBest:
    case Isa::kScalar:
      return true;
#if defined(__x86_64__)
    case Isa::kAvx2: {
      unsigned eax, ebx, ecx = 0, edx;  // Clang 14 does not know "f16c"
      const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
      return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    }
    case Isa::kAvx512:
      return CpuHas(Isa::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl");
    case Isa::kAvx512Vbmi:
      return CpuHas(Isa::kAvx512) && __builtin_cpu_supports("avx512vbmi") &&
             __builtin_cpu_supports("avx512vnni");
#endif
#if defined(__aarch64__)
    case Isa::kNeon:
      return true;
#endif
    default:
      return false;
  }
}

const char* IsaName(Isa isa) {
  switch (isa) {
    case Isa::kBest:
      return "best";
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kNeon:
      return "neon";
    case Isa::kAvx512Vbmi:
      return "avx512vbmi";
  }
  return "unknown";
}

}  // namespace waste
