// SPDX-License-Identifier: Apache-2.0

#include "os/cpu_affinity.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace waste {

#if defined(__linux__)

namespace {

bool MoveTo(const CpuSet& cpus) {
  return sched_setaffinity(0, sizeof(CpuSet::Words),
                           reinterpret_cast<const cpu_set_t*>(cpus.words().data())) == 0;
}

}  // namespace

CpuSet GrantedCpus() {
  CpuSet cpus;
  const int result = sched_getaffinity(0, sizeof(CpuSet::Words),
                                       reinterpret_cast<cpu_set_t*>(cpus.words().data()));
  return result == 0 ? cpus : CpuSet();
}

#else

namespace {

bool MoveTo(const CpuSet&) { return false; }

}  // namespace

CpuSet GrantedCpus() { return CpuSet(); }

#endif

OnCpus::OnCpus(const CpuSet& cpus) {
  if (cpus.empty()) return;
  const CpuSet before = GrantedCpus();
  if (before == cpus) return;
  ok_ = !before.empty() && MoveTo(cpus);
  if (ok_) before_ = before;
}

OnCpus::~OnCpus() {
  if (!before_.empty()) MoveTo(before_);
}

}  // namespace waste
