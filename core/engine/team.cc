// SPDX-License-Identifier: Apache-2.0

#include "engine/team.h"

#include <algorithm>

#include "os/cpu_affinity.h"
#include "os/fast_cpus.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr int32_t kMaxThreads = 1024;

Result<CpuSet> CpusOf(const std::string& list) {
  const CpuSet granted = GrantedCpus();
  if (granted.empty())
    return Failure(Code::kUnsupported, "cpu_list is given, and this system keeps no threads on ",
                   "CPUs; leave it out");
  const std::string usable = "this process may use the CPUs " + PrintCpuList(granted);
  auto cpus = ParseCpuList(list);
  if (!cpus.ok())
    return Failure(cpus.status().code(), "cpu_list: ", cpus.status().message(), "; ", usable);
  if (const CpuSet refused = cpus->Without(granted); !refused.empty())
    return Failure(Code::kArgument, "cpu_list: ", usable, ", and not ", PrintCpuList(refused));
  if (!OnCpus(*cpus).ok())
    return Failure(Code::kUnsupported, "cpu_list: the system refuses to keep a thread on the CPUs ",
                   PrintCpuList(*cpus), "; leave it out");
  return cpus;
}

// Empty on a machine whose CPUs are all alike, and where the system would refuse.
CpuSet FastOnes(const std::string& root) {
  const CpuSet granted = GrantedCpus();
  const CpuSet fast = FastCpus(granted, root);
  return fast == granted || !OnCpus(fast).ok() ? CpuSet() : fast;
}

}  // namespace

Result<Team> ChooseTeam(const OpenOptions& options, const std::string& root) {
  if (options.threads < 0 || options.threads > kMaxThreads)
    return Failure(Code::kArgument, "threads is ", options.threads, "; it may be 0 to ",
                   kMaxThreads);
  Team team{.threads = options.threads, .cpus = {}};
  if (!options.cpu_list.empty()) {
    WASTE_ASSIGN(team.cpus, CpusOf(options.cpu_list));
    if (team.threads == 0) team.threads = std::min(team.cpus.count(), kMaxThreads);
  } else if (team.threads == 0) {
    team.cpus = FastOnes(root);
    team.threads = GrantedCores();  // a quota may grant less than there are CPUs
    if (!team.cpus.empty()) team.threads = std::min(team.threads, team.cpus.count());
  }
  return team;
}

}  // namespace waste
