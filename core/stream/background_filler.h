// SPDX-License-Identifier: Apache-2.0
//
// A thread that fills the empty slots of a cache while nobody fetches: at open with what an earlier
// run used most, and with everything if everything fits. It reads one record at a time, and steps
// aside as soon as somebody asks for experts.

#ifndef WASTE_CORE_STREAM_BACKGROUND_FILLER_H_
#define WASTE_CORE_STREAM_BACKGROUND_FILLER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "stream/expert_cache.h"

namespace waste {

class BackgroundFiller {
 public:
  // The cache outlives it. Without a thread to be had nothing is filled, which is slower, and all.
  explicit BackgroundFiller(ExpertCache& cache);
  ~BackgroundFiller();  // waits for the read that runs
  BackgroundFiller(const BackgroundFiller&) = delete;
  BackgroundFiller& operator=(const BackgroundFiller&) = delete;

 private:
  void Work();

  ExpertCache& cache_;
  std::mutex mutex_;
  std::condition_variable ending_asked_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace waste

#endif  // WASTE_CORE_STREAM_BACKGROUND_FILLER_H_
