// SPDX-License-Identifier: Apache-2.0

#include "stream/lane_calibration.h"

#include <algorithm>

#include "os/system.h"
#include "stream/expert_numbers.h"

namespace waste {
namespace {

constexpr int32_t kCounts[] = {2, 4, 8};
constexpr int32_t kTurns = 3;
constexpr int64_t kTurnUs = 30'000;
constexpr int64_t kReadTimeoutMs = 2'000;  // of a drive that hangs: enough has been seen
constexpr double kAsGood = 0.9;            // turns of one count differ by as much

// Numbers of experts that jump about, so that no drive reads ahead.
class Jumps {
 public:
  explicit Jumps(int32_t count) : count_(static_cast<uint64_t>(count)) {}
  int32_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int32_t>((state_ >> 33) % count_);
  }

 private:
  uint64_t count_;
  uint64_t state_ = static_cast<uint64_t>(MonotonicMicros());
};

class Calibration {
 public:
  Calibration(const Container& container, ExpertReader& reader, std::span<uint8_t> memory)
      : container_(container),
        reader_(reader),
        memory_(memory),
        numbers_(container.manifest()),
        jumps_(numbers_.count()) {}

  // Bytes a second with `lanes` reads under way all the time; 0 if one fails.
  double Turn(int32_t lanes) {
    reader_.LimitLanes(lanes);
    for (int32_t lane = 0; lane < lanes; ++lane) Ask(lane);
    int64_t bytes = 0;
    int64_t micros = 0;
    const int64_t start = MonotonicMicros();
    while (micros < kTurnUs) {
      const auto done = reader_.Wait(kReadTimeoutMs);
      if (!done.has_value() || !done->status.ok()) {
        bytes = 0;
        break;
      }
      bytes += container_.record_bytes();
      micros = MonotonicMicros() - start;
      Ask(done->id);
    }
    reader_.CancelAll();
    return bytes == 0 ? 0 : static_cast<double>(bytes) * 1e6 / static_cast<double>(micros);
  }

 private:
  void Ask(int64_t lane) {
    const auto [layer, expert] = numbers_.At(jumps_.Next());
    const auto bytes = static_cast<size_t>(container_.record_bytes());
    const ExpertReader::Request request{lane, layer, expert,
                                        memory_.subspan(static_cast<size_t>(lane) * bytes, bytes)};
    reader_.Read({&request, 1}, ReadPriority::kDemand);
  }

  const Container& container_;
  ExpertReader& reader_;
  const std::span<uint8_t> memory_;
  const ExpertNumbers numbers_;
  Jumps jumps_;
};

}  // namespace

int32_t ChooseLanes(std::span<const LaneSpeed> speeds) {
  double best = 0;
  for (const LaneSpeed& one : speeds) best = std::max(best, one.bytes_s);
  int32_t chosen = 0;
  for (const LaneSpeed& one : speeds)
    if (one.bytes_s > 0 && one.bytes_s >= kAsGood * best && (chosen == 0 || one.lanes < chosen))
      chosen = one.lanes;
  return chosen == 0 ? kCounts[0] : chosen;
}

std::vector<LaneSpeed> MeasureLanes(const Container& container, ExpertReader& reader,
                                    std::span<uint8_t> memory) {
  std::vector<LaneSpeed> speeds;
  const int64_t records = static_cast<int64_t>(memory.size()) / container.record_bytes();
  const int64_t most = std::min<int64_t>(reader.lanes(), records);
  for (const int32_t lanes : kCounts)
    if (lanes <= most) speeds.push_back({lanes, 0});
  Calibration calibration(container, reader, memory);
  for (int32_t turn = 0; turn < kTurns; ++turn) {
    for (LaneSpeed& one : speeds) {
      const double bytes_s = calibration.Turn(one.lanes);
      if (bytes_s == 0) return {};
      one.bytes_s = std::max(one.bytes_s, bytes_s);
    }
  }
  return speeds;
}

}  // namespace waste
