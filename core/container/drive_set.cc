// SPDX-License-Identifier: Apache-2.0

#include "container/drive_set.h"

#include <algorithm>

#include "base/check.h"

namespace waste {
namespace {

// Of a drive that was not measured: more than any has, so that each is tried early.
constexpr double kUnmeasuredBytesPerNs = 100;

constexpr double kKept = 31.0 / 32;  // of what was measured, at each read that ends

}  // namespace

double DriveSet::ExpectedNs(const Drive& drive, int64_t bytes) {
  const double bytes_per_ns =
      drive.busy_ns > 0 ? drive.done_bytes / drive.busy_ns : kUnmeasuredBytesPerNs;
  return static_cast<double>(drive.pending_bytes + bytes) / bytes_per_ns;
}

bool DriveSet::IsForgotten(const Drive& drive, double expected_ns, int64_t now_ns) {
  const double patience_ns = std::min(kForgetAfterReads * expected_ns, kForgetAfterNs);
  return drive.busy_ns > 0 && drive.pending_bytes == 0 &&
         static_cast<double>(now_ns - drive.begun_ns) > patience_ns;
}

int32_t DriveSet::Choose(Drives candidates, int64_t bytes, int64_t now_ns) const {
  int32_t best = -1;
  double best_ns = 0;
  for (int32_t number = 0; number < count(); ++number) {
    if ((candidates >> number & 1) == 0) continue;
    const Drive& drive = drives_[number];
    const double expected_ns = ExpectedNs(drive, bytes);
    if (IsForgotten(drive, expected_ns, now_ns)) return number;
    if (best >= 0 && expected_ns >= best_ns) continue;
    best = number;
    best_ns = expected_ns;
  }
  return best;
}

int32_t DriveSet::Begin(Drives candidates, int64_t bytes, int64_t now_ns) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Drives working = 0;
  for (int32_t number = 0; number < count(); ++number)
    if (!drives_[number].avoided) working |= candidates & Drives{1} << number;
  const int32_t chosen = Choose(working != 0 ? working : candidates, bytes, now_ns);
  WASTE_CHECK(chosen >= 0);
  Drive& drive = drives_[chosen];
  if (drive.pending_bytes == 0) {
    drive.counted_ns = now_ns;
    drive.kept = IsForgotten(drive, ExpectedNs(drive, bytes), now_ns) ? 0 : kKept;
  }
  drive.pending_bytes += bytes;
  drive.begun_ns = now_ns;
  ++drive.reads;
  return chosen;
}

void DriveSet::End(int32_t number, int64_t bytes, int64_t now_ns, bool succeeded) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Drive& drive = drives_[number];
  drive.pending_bytes -= bytes;
  // Threads may come here in another order than they looked at the clock.
  const int64_t busy_ns = std::max(now_ns - drive.counted_ns, int64_t{0});
  if (succeeded) {
    drive.done_bytes = drive.kept * drive.done_bytes + static_cast<double>(bytes);
    drive.busy_ns = drive.kept * drive.busy_ns + static_cast<double>(busy_ns);
    drive.kept = kKept;
  }
  drive.counted_ns += busy_ns;
}

bool DriveSet::Avoid(int32_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool is_new = !drives_[number].avoided;
  drives_[number].avoided = true;
  return is_new;
}

int64_t DriveSet::reads(int32_t drive) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return drives_[drive].reads;
}

double DriveSet::bytes_per_s(int32_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Drive& drive = drives_[number];
  return drive.busy_ns > 0 ? 1e9 * drive.done_bytes / drive.busy_ns : 0;
}

}  // namespace waste
