// SPDX-License-Identifier: Apache-2.0
//
// A team of threads that belongs to one model; there is no process-wide pool. Run() splits a range
// over the team, the caller being one of it, and returns when all of it is done. Which thread does
// which item is not fixed (several neighbours at a time, fewer towards the end), so a body must
// write only what belongs to its item: then results do not depend on the number of threads. Run is
// for one caller at a time; bodies do not call Run. Bodies have no reason to throw; if a failed
// check or bad_alloc leaves one, Run ends early and throws it. Workers run no signal handlers of
// the host, and idle ones take no CPU after some microseconds.

#ifndef WASTE_CORE_PARALLEL_THREAD_POOL_H_
#define WASTE_CORE_PARALLEL_THREAD_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "os/cpu_list.h"

namespace waste {

class ThreadPool {
 public:
  // `threads` >= 1 counts the caller. Errors: kNoMemory if the system gives no more threads.
  // Workers run on any of `cpus`, or anywhere if it is empty; the caller of Run sees to itself.
  static Result<std::unique_ptr<ThreadPool>> Create(int32_t threads, const CpuSet& cpus = {});
  ~ThreadPool();

  int32_t threads() const;

  // Calls body(begin, end) on parts of [0, count), every item once. Parts are one or several pieces
  // of `grain` items; the last piece may be smaller.
  void Run(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

 private:
  struct Team;
  explicit ThreadPool(std::unique_ptr<Team> team);
  std::unique_ptr<Team> team_;
};

}  // namespace waste

#endif  // WASTE_CORE_PARALLEL_THREAD_POOL_H_
