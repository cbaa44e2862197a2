// SPDX-License-Identifier: Apache-2.0
//
// The threads that compute for a model: how many they are, and on which CPUs they run. Those that
// were asked for; else the fast ones of a machine that has slow ones too; else wherever the system
// puts them, one for each core granted. Any thread: what the calling one may use counts.

#ifndef WASTE_CORE_ENGINE_TEAM_H_
#define WASTE_CORE_ENGINE_TEAM_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "engine/open_options.h"
#include "os/cpu_list.h"

namespace waste {

struct Team {
  int32_t threads = 1;
  CpuSet cpus;  // each thread may run on any of them; empty: they are kept nowhere
};

// `root` stands before the paths of the kernel's files, for tests. Errors: kArgument (threads out
// of range; a cpu_list that is none or has a CPU which this process may not use, with those that it
// may), kUnsupported (a system that keeps no threads on CPUs).
Result<Team> ChooseTeam(const OpenOptions& options, const std::string& root = "");

}  // namespace waste

#endif  // WASTE_CORE_ENGINE_TEAM_H_
