// SPDX-License-Identifier: Apache-2.0
//
// Samples ten times a second, and at once when the kernel reports stalls (a PSI trigger, where it
// grants one) or a hit at the limit of a v2 group. One sample reads three to ten small files.

#if defined(__linux__)

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "os/memory_pressure.h"
#include "os/pressure_sampler.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr int64_t kPeriodMs = 100;
constexpr int64_t kLeastMs = 20;  // between samples: reports may come in thousands

class LinuxMemoryPressure : public MemoryPressure {
 public:
  LinuxMemoryPressure(PressureSampler sampler, int stop) : sampler_(std::move(sampler)) {
    watched_.push_back({stop, POLLIN, 0});
    for (const std::string& path : sampler_.stall_paths()) WatchStalls(path);
    for (const std::string& path : sampler_.event_paths())
      if (const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC); file >= 0) Watch(file);
  }
  LinuxMemoryPressure(const LinuxMemoryPressure&) = delete;
  LinuxMemoryPressure& operator=(const LinuxMemoryPressure&) = delete;
  ~LinuxMemoryPressure() override {
    for (const pollfd& file : watched_) close(file.fd);
  }

  PressureLevel Wait(int64_t timeout_ms) override {
    const int64_t least_ms = std::min(kLeastMs, timeout_ms);
    const bool stopped =
        !Poll(1, least_ms) || !Poll(watched_.size(), std::min(kPeriodMs, timeout_ms) - least_ms);
    if (!stopped) level_ = sampler_.Sample(MonotonicMicros());
    return level_;
  }

  void Stop() override {
    const uint64_t one = 1;
    // An eventfd takes it unless its count is about to overflow, and then Wait wakes as well.
    if (write(watched_[0].fd, &one, sizeof one) < 0) return;
  }

 private:
  // The same threshold as the sampler's. The window of one second is for those with
  // CAP_SYS_RESOURCE, that of two for everybody since Linux 6.5; without either, samples do.
  void WatchStalls(const std::string& path) {
    for (const std::string_view trigger : {"some 150000 1000000", "some 300000 2000000"}) {
      const int file = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
      if (file < 0) return;
      if (write(file, trigger.data(), trigger.size() + 1) > 0) return Watch(file);
      close(file);
    }
  }

  void Watch(int file) {
    watched_.push_back({file, POLLPRI, 0});
    Read(file);
  }

  // Until one of the first `count` files reports something. False: it was the one of Stop.
  bool Poll(size_t count, int64_t timeout_ms) {
    for (pollfd& file : watched_) file.revents = 0;
    poll(watched_.data(), count, static_cast<int>(timeout_ms));
    for (size_t i = 1; i < count; ++i)
      if (watched_[i].revents != 0) Read(watched_[i].fd);
    return (watched_[0].revents & POLLIN) == 0;
  }

  // A file of the cgroup tree reports changes since it was last read.
  static void Read(int file) {
    char text[512];
    if (pread(file, text, sizeof text, 0) < 0) return;
  }

  PressureSampler sampler_;
  std::vector<pollfd> watched_;  // the first is Stop's
  PressureLevel level_ = PressureLevel::kNone;
};

}  // namespace

std::unique_ptr<MemoryPressure> SystemMemoryPressure() {
  PressureSampler sampler("");
  if (!sampler.can_report()) return nullptr;
  const int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop < 0) return nullptr;
  return std::make_unique<LinuxMemoryPressure>(std::move(sampler), stop);
}

}  // namespace waste

#endif  // defined(__linux__)
