// SPDX-License-Identifier: Apache-2.0

#include "os/process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>

#if defined(__APPLE__)
#include <libproc.h>
#endif

namespace waste {
namespace {

struct Running {
  int64_t start = 0;
  int64_t touched_bytes = 0;
};

#if defined(__linux__)

int64_t NumberSpace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? static_cast<int64_t>(info.st_ino) : 0;
}

// Field 22 of /proc/PID/stat; the name before it, in brackets, may hold anything.
std::optional<int64_t> StartOf(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t bracket = line.rfind(')');
  if (bracket == line.npos) return std::nullopt;
  std::istringstream fields(line.substr(bracket + 1));
  std::string field;
  for (int32_t number = 3; number <= 22; ++number) fields >> field;
  std::istringstream text(field);
  int64_t start;
  if (!(text >> start)) return std::nullopt;
  return start;
}

std::optional<Running> Find(int64_t number) {
  const std::string folder = "/proc/" + std::to_string(number);
  const auto start = StartOf(folder);
  int64_t all = 0, resident = 0, of_files = 0;
  std::ifstream pages(folder + "/statm");
  if (!start.has_value() || !(pages >> all >> resident >> of_files)) return std::nullopt;
  return Running{*start, std::max<int64_t>(resident - of_files, 0) * sysconf(_SC_PAGESIZE)};
}

#elif defined(__APPLE__)

int64_t NumberSpace() { return 0; }

std::optional<Running> Find(int64_t number) {
  struct proc_taskallinfo info = {};
  if (proc_pidinfo(static_cast<int>(number), PROC_PIDTASKALLINFO, 0, &info, sizeof info) !=
      static_cast<int>(sizeof info))
    return std::nullopt;
  return Running{
      static_cast<int64_t>(info.pbsd.pbi_start_tvsec * 1'000'000 + info.pbsd.pbi_start_tvusec),
      static_cast<int64_t>(info.ptinfo.pti_resident_size)};
}

#endif

}  // namespace

bool ProcessId::operator<(const ProcessId& other) const {
  return std::tie(space, number, start) < std::tie(other.space, other.number, other.start);
}

ProcessId ThisProcess() {
  ProcessId id{.space = NumberSpace(), .number = getpid()};
  if (const auto running = Find(id.number)) id.start = running->start;
  return id;
}

std::optional<int64_t> TouchedBytes(const ProcessId& process) {
  if (process.space != NumberSpace()) return 0;
  const auto running = Find(process.number);
  if (!running.has_value() || running->start != process.start) return std::nullopt;
  return running->touched_bytes;
}

}  // namespace waste
