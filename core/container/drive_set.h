// SPDX-License-Identifier: Apache-2.0
//
// Which of several drives the next read goes to: the one that would be done with it first, by what
// it has to do already and by its measured bandwidth. Bandwidth is bytes that came over the time in
// which the drive had something to read, so it is the same however many reads it serves at once.
// Times are the caller's, in nanoseconds of any steady clock. A choice changes speed, never
// results. Knows no files. Any thread; the lock is held for a few instructions, never over a read.

#ifndef WASTE_CORE_CONTAINER_DRIVE_SET_H_
#define WASTE_CORE_CONTAINER_DRIVE_SET_H_

#include <cstdint>
#include <mutex>
#include <vector>

namespace waste {

class DriveSet {
 public:
  using Drives = uint32_t;  // a set of them: bit d is drive d
  static constexpr int32_t kMaxDrives = 32;
  // A drive that was left alone for this many times what a read there takes is read from once, and
  // what it gives now is believed: at most a hundredth of the time goes into that.
  static constexpr double kForgetAfterReads = 100;
  static constexpr double kForgetAfterNs = 60e9;  // at the latest

  explicit DriveSet(int32_t count) : drives_(static_cast<size_t>(count)) {}

  int32_t count() const { return static_cast<int32_t>(drives_.size()); }

  // Begins a read of `bytes` on one of `candidates` (not empty) and returns which. Those that are
  // avoided are taken only if all are.
  int32_t Begin(Drives candidates, int64_t bytes, int64_t now_ns);
  // Ends it; a read that failed says nothing about bandwidth.
  void End(int32_t drive, int64_t bytes, int64_t now_ns, bool succeeded);

  // Says that the drive fails. True the first time.
  bool Avoid(int32_t drive);

  int64_t reads(int32_t drive) const;       // begun
  double bytes_per_s(int32_t drive) const;  // 0 if nothing was measured

 private:
  struct Drive {
    bool avoided = false;
    int64_t reads = 0;
    int64_t pending_bytes = 0;  // of reads that have begun
    int64_t begun_ns = 0;       // the latest of them
    int64_t counted_ns = 0;     // until when busy_ns is counted, while anything is pending
    double done_bytes = 0;      // of late: each read that ends makes the older ones count less
    double busy_ns = 0;         // in which these came
    double kept = 0;            // of both at the end of the next read; 0 if it counts alone
  };

  static bool IsForgotten(const Drive& drive, double expected_ns, int64_t now_ns);
  static double ExpectedNs(const Drive& drive, int64_t bytes);
  int32_t Choose(Drives candidates, int64_t bytes, int64_t now_ns) const;

  mutable std::mutex mutex_;
  std::vector<Drive> drives_;
};

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_DRIVE_SET_H_
