// SPDX-License-Identifier: Apache-2.0
//
// What this machine is and what it grants this process, as the system tells: for `waste doctor`,
// which explains, and for the heading of `waste bench`. The library finds out for itself what it
// needs. What a system does not tell is 0 or empty. Any thread.

#ifndef WASTE_EXAMPLES_CLI_MACHINE_H_
#define WASTE_EXAMPLES_CLI_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace waste_cli {

struct Machine {
  int32_t cores_online = 0;
  int32_t cores_granted = 0;   // that the scheduler may use for this process
  int32_t cores_physical = 0;  // of those granted, siblings of one core counted once
  double quota_cores = 0;      // CPU time a second that a cgroup grants; 0: all there is
  int32_t memory_nodes = 0;    // NUMA
  int64_t memory_bytes = 0;
  int64_t cgroup_memory_bytes = 0;  // the tightest limit of a cgroup; 0: none
  int64_t swap_bytes = 0;
  int64_t swap_used_bytes = 0;
};

Machine ExamineMachine();

// "AMD EPYC 9354", or the architecture where the system has no name for it.
std::string ProcessorName();

// Of the instructions that kernels are written for: those that this processor has, or lacks.
std::vector<std::string> VectorFeatures(bool present);

// Those names of --isa that this processor runs, the widest vectors first: {"avx2", "scalar"}.
std::vector<std::string> InstructionSets();

// Where a file lies: "ext4 on vda", or an empty text.
std::string FileSystemOf(const std::string& path);

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_MACHINE_H_
