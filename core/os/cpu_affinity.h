// SPDX-License-Identifier: Apache-2.0
//
// Where the system lets a thread run, and how to keep it to a part of that for a while. Linux only:
// elsewhere nothing is told and nothing is kept. Threads that are started meanwhile are kept there
// too, for good. Nothing here allocates.

#ifndef WASTE_CORE_OS_CPU_AFFINITY_H_
#define WASTE_CORE_OS_CPU_AFFINITY_H_

#include "os/cpu_list.h"

namespace waste {

// The CPUs that the calling thread may run on. Empty where the system does not tell.
CpuSet GrantedCpus();

// While it lives, the thread that made it runs on `cpus` alone; then where it ran before. For an
// empty set, nothing happens. To be destroyed by the same thread.
class OnCpus {
 public:
  explicit OnCpus(const CpuSet& cpus);
  OnCpus(const OnCpus&) = delete;
  OnCpus& operator=(const OnCpus&) = delete;
  ~OnCpus();

  // False if the system refused: the thread runs where it ran.
  bool ok() const { return ok_; }

 private:
  CpuSet before_;  // empty: there is nothing to restore
  bool ok_ = true;
};

}  // namespace waste

#endif  // WASTE_CORE_OS_CPU_AFFINITY_H_
