// SPDX-License-Identifier: Apache-2.0

#include "os/pressure_sampler.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "os/memory_pressure.h"

namespace waste {
namespace {

constexpr int64_t kWindowUs = 1'000'000;
// Of each second: where work is felt to drag, and where hardly any gets done. The first is also
// what userspace OOM killers take for the beginning of trouble.
constexpr int64_t kSomeStallUs = 150'000;
constexpr int64_t kFullStallUs = 400'000;

bool Exists(const std::string& path) { return std::ifstream(path).good(); }

// "NAME:   1234 kB" in bytes, or -1.
int64_t Kilobytes(const std::string& line) {
  const size_t colon = line.find(':');
  return colon == line.npos ? -1 : std::strtoll(line.c_str() + colon + 1, nullptr, 10) * 1024;
}

}  // namespace

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", and the same for "full". The averages lag by
// ten seconds; the totals, in microseconds, do not.
std::optional<StallMeter::Totals> StallMeter::Read(int64_t now_us) const {
  std::ifstream file(path_);
  Totals totals;
  bool found = false;
  totals.at_us = now_us;
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find("total=");
    if (at == line.npos) continue;
    const int64_t total = std::strtoll(line.c_str() + at + 6, nullptr, 10);
    if (line.starts_with("some ")) totals.some_us = total;
    if (line.starts_with("full ")) totals.full_us = total;
    found = true;
  }
  return found ? std::optional(totals) : std::nullopt;
}

PressureLevel StallMeter::Sample(int64_t now_us) {
  const std::optional<Totals> now = Read(now_us);
  if (!now.has_value()) return PressureLevel::kNone;
  samples_.push_back(*now);
  while (samples_.size() > 2 && samples_[1].at_us <= now_us - kWindowUs) samples_.pop_front();
  // After a longer gap (a machine that slept) the stalls are spread over it.
  const Totals& then = samples_.front();
  const int64_t span_us = std::max(now_us - then.at_us, kWindowUs);
  const auto of_each_second = [&](int64_t stall_us) {
    return static_cast<double>(stall_us) * kWindowUs / static_cast<double>(span_us);
  };
  if (of_each_second(now->full_us - then.full_us) >= kFullStallUs) return PressureLevel::kCritical;
  if (of_each_second(now->some_us - then.some_us) >= kSomeStallUs) return PressureLevel::kSome;
  return PressureLevel::kNone;
}

PressureSampler::PressureSampler(const std::string& root) : meminfo_path_(root + "/proc/meminfo") {
  if (const std::string path = root + "/proc/pressure/memory"; Exists(path))
    machine_stalls_.emplace(path);
  for (MemoryGroup& files : ListMemoryGroups(root)) {
    // The root group's file is the machine's; only other groups have a type.
    const std::string path = files.folder + "/memory.pressure";
    if (files.own && files.v2 && Exists(files.folder + "/cgroup.type") && Exists(path))
      own_stalls_.emplace(path);
    const MemoryHits hits = ReadMemoryHits(files);
    groups_.push_back({std::move(files), hits.limit_hits, hits.ooms});
  }
}

bool PressureSampler::can_report() const {
  return Exists(meminfo_path_) || !groups_.empty() || machine_stalls_.has_value();
}

std::vector<std::string> PressureSampler::stall_paths() const {
  std::vector<std::string> paths;
  for (const std::optional<StallMeter>* meter : {&machine_stalls_, &own_stalls_})
    if (meter->has_value()) paths.push_back((*meter)->path());
  return paths;
}

std::vector<std::string> PressureSampler::event_paths() const {
  std::vector<std::string> paths;
  for (const Group& group : groups_)
    if (const std::string path = MemoryEventsPath(group.files); !path.empty())
      paths.push_back(path);
  return paths;
}

PressureSampler::Room PressureSampler::MachineRoom() const {
  int64_t total = -1, available = -1;
  std::ifstream file(meminfo_path_);
  for (std::string line; (total < 0 || available < 0) && std::getline(file, line);) {
    if (line.starts_with("MemTotal:")) total = Kilobytes(line);
    if (line.starts_with("MemAvailable:")) available = Kilobytes(line);
  }
  if (total <= 0 || available < 0) return {};
  return {LevelOfRoom(total, available), available >= total / 4};
}

PressureSampler::Room PressureSampler::SampleGroup(Group& group) {
  const MemoryUse use = ReadMemoryUse(group.files);
  Room room;
  int64_t left = use.limit_bytes == INT64_MAX ? INT64_MAX : use.limit_bytes - use.used_bytes;
  room.plenty = left >= use.limit_bytes / 4;
  if (!room.plenty) {  // else the file cache, which is dear to count, makes no difference
    left += ReadFileCacheBytes(group.files);
    room = {LevelOfRoom(use.limit_bytes, left), left >= use.limit_bytes / 4};
  }
  const MemoryHits hits = ReadMemoryHits(group.files);
  const bool hit = hits.limit_hits > std::exchange(group.limit_hits, hits.limit_hits);
  const bool oom = hits.ooms > std::exchange(group.ooms, hits.ooms);
  if (oom || (hit && room.level == PressureLevel::kSome)) room.level = PressureLevel::kCritical;
  return room;
}

PressureLevel PressureSampler::Sample(int64_t now_us) {
  const Room machine = MachineRoom();
  PressureLevel level = machine.level;
  bool plenty = machine.plenty;
  for (Group& group : groups_) {
    const Room room = SampleGroup(group);
    level = std::max(level, room.level);
    plenty = plenty && room.plenty;
  }
  // Sampled in any case: a window must have a beginning.
  if (machine_stalls_.has_value())
    if (const PressureLevel stalls = machine_stalls_->Sample(now_us); !machine.plenty)
      level = std::max(level, stalls);
  if (own_stalls_.has_value())
    if (const PressureLevel stalls = own_stalls_->Sample(now_us); !plenty)
      level = std::max(level, stalls);
  return level;
}

}  // namespace waste
