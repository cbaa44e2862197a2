// SPDX-License-Identifier: Apache-2.0

#include "stream/background_filler.h"

#include <chrono>
#include <system_error>

#include "os/signals_blocked.h"

namespace waste {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBusyPause{25};
constexpr milliseconds kDonePause{2000};  // slots may be emptied, and given back, later

milliseconds PauseAfter(ExpertCache::Filling filling) {
  switch (filling) {
    case ExpertCache::Filling::kFilled:
      return milliseconds(0);
    case ExpertCache::Filling::kBusy:
      return kBusyPause;
    case ExpertCache::Filling::kDone:
      return kDonePause;
  }
  return kDonePause;
}

}  // namespace

BackgroundFiller::BackgroundFiller(ExpertCache& cache) : cache_(cache) {
  const SignalsBlocked signals_blocked;
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {
  }
}

BackgroundFiller::~BackgroundFiller() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  ending_asked_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundFiller::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    lock.unlock();
    const milliseconds pause = PauseAfter(cache_.FillOne());
    lock.lock();
    ending_asked_.wait_for(lock, pause, [this] { return ending_; });
  }
}

}  // namespace waste
