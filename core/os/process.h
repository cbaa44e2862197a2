// SPDX-License-Identifier: Apache-2.0
//
// Processes as the system tells of them: which one it is, although numbers are used again, and how
// much memory it has touched. For accounts that several processes keep together. Read afresh at
// each call. Any thread.

#ifndef WASTE_CORE_OS_PROCESS_H_
#define WASTE_CORE_OS_PROCESS_H_

#include <cstdint>
#include <optional>

namespace waste {

// Two processes may have had the same number, but not in the same space with the same start.
struct ProcessId {
  int64_t space = 0;  // the numbering it belongs to (Linux: the PID namespace)
  int64_t number = 0;
  int64_t start = 0;  // when it began, in units of the system's

  bool operator==(const ProcessId&) const = default;
  bool operator<(const ProcessId& other) const;
};

ProcessId ThisProcess();

// Memory of its own (no files) that a process has resident, in bytes; none if it is not running.
// Of a process in another space nothing can be told: 0.
std::optional<int64_t> TouchedBytes(const ProcessId& process);

}  // namespace waste

#endif  // WASTE_CORE_OS_PROCESS_H_
