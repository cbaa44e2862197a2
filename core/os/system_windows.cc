// SPDX-License-Identifier: Apache-2.0
//
// What Windows grants this process: its affinity mask and its job object, which containers use.

#include <windows.h>

#include <psapi.h>

#include <algorithm>
#include <bit>
#include <thread>

#include "os/system.h"

namespace waste {
namespace {

// What the job object still leaves; all there is if this process is in none, or in one without a
// limit.
int64_t JobBytes() {
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {};
  if (!QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &limits, sizeof limits,
                                 nullptr))
    return INT64_MAX;
  PROCESS_MEMORY_COUNTERS used = {};
  if (!GetProcessMemoryInfo(GetCurrentProcess(), &used, sizeof used)) return INT64_MAX;
  const DWORD flags = limits.BasicLimitInformation.LimitFlags;
  int64_t limit = INT64_MAX;
  if (flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY)
    limit = std::min(limit, static_cast<int64_t>(limits.ProcessMemoryLimit));
  if (flags & JOB_OBJECT_LIMIT_JOB_MEMORY)
    limit = std::min(limit, static_cast<int64_t>(limits.JobMemoryLimit));
  if (limit == INT64_MAX) return limit;
  return std::max(limit - static_cast<int64_t>(used.PagefileUsage), int64_t{0});
}

}  // namespace

int32_t GrantedCores() {
  int32_t cores = static_cast<int32_t>(std::thread::hardware_concurrency());
  DWORD_PTR process = 0, system = 0;
  // A process in several groups of processors (more than 64 cores) is told a mask of 0.
  if (GetProcessAffinityMask(GetCurrentProcess(), &process, &system) && process != 0)
    cores = std::popcount(static_cast<uint64_t>(process));
  return std::max(cores, 1);
}

int64_t UsableMemoryBytes() {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  if (!GlobalMemoryStatusEx(&status)) return 0;
  return std::min(static_cast<int64_t>(status.ullAvailPhys), JobBytes());
}

int64_t PeakResidentBytes() {
  PROCESS_MEMORY_COUNTERS used = {};
  if (!GetProcessMemoryInfo(GetCurrentProcess(), &used, sizeof used)) return 0;
  return static_cast<int64_t>(used.PeakWorkingSetSize);
}

void DiscardPages(std::span<uint8_t> bytes) {
  SYSTEM_INFO info;
  GetSystemInfo(&info);
  const uintptr_t page = info.dwPageSize;
  const uintptr_t start = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t end = (start + bytes.size()) / page * page;
  if (first >= end) return;
  void* const pages = bytes.data() + (first - start);
  // Not worth writing to the page file; then, as nothing locks them, out of the working set.
  VirtualAlloc(pages, end - first, MEM_RESET, PAGE_READWRITE);
  VirtualUnlock(pages, end - first);
}

}  // namespace waste
