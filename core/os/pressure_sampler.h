// SPDX-License-Identifier: Apache-2.0
//
// Reads how short memory is from files of Linux: MemAvailable, the control groups above this
// process (v1 and v2, listed once), and PSI. Room decides: what is left of each limit when file
// cache, which the kernel drops on demand, does not count as used. Hits at a limit make pressure
// critical. Stalls count unless there is plenty of room: then they are file pages that come and go
// (or a neighbour at a limit of its own), and giving memory back would help nobody. What cannot be
// read does not count. One thread.

#ifndef WASTE_CORE_OS_PRESSURE_SAMPLER_H_
#define WASTE_CORE_OS_PRESSURE_SAMPLER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/pressure_level.h"
#include "os/cgroup.h"

namespace waste {

// Time lost to waiting for memory within the last second, from the totals of a PSI file.
class StallMeter {
 public:
  explicit StallMeter(std::string path) : path_(std::move(path)) {}

  // At most kSome for "some task waits", kCritical for "all of them do".
  PressureLevel Sample(int64_t now_us);
  const std::string& path() const { return path_; }

 private:
  struct Totals {
    int64_t at_us = 0;
    int64_t some_us = 0;
    int64_t full_us = 0;
  };
  std::optional<Totals> Read(int64_t now_us) const;

  std::string path_;
  std::deque<Totals> samples_;  // the oldest is a second old, or the first
};

class PressureSampler {
 public:
  // `root` stands before every path that is read: empty for the system, a folder for tests.
  explicit PressureSampler(const std::string& root);

  // The worst of all sources. `now_us` is any clock that does not go back.
  PressureLevel Sample(int64_t now_us);

  // Whether anything was found that can ever report pressure.
  bool can_report() const;
  // Of the files that were found: what PSI can watch for us, and what changes at hits of a limit.
  std::vector<std::string> stall_paths() const;
  std::vector<std::string> event_paths() const;

 private:
  struct Room {
    PressureLevel level = PressureLevel::kNone;
    bool plenty = false;  // known, and a quarter or more is left
  };
  struct Group {
    MemoryGroup files;
    int64_t limit_hits = 0;
    int64_t ooms = 0;
  };

  Room MachineRoom() const;
  static Room SampleGroup(Group& group);

  std::string meminfo_path_;
  std::vector<Group> groups_;
  std::optional<StallMeter> machine_stalls_;
  std::optional<StallMeter> own_stalls_;  // of the process's own group (v2)
};

}  // namespace waste

#endif  // WASTE_CORE_OS_PRESSURE_SAMPLER_H_
