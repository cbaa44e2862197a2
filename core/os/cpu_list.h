// SPDX-License-Identifier: Apache-2.0
//
// Sets of CPUs, by the numbers that Linux gives them, and the text that Linux writes for a set: as
// in "0-3,8". Pure functions on values; what the machine has is not asked here. Any thread.

#ifndef WASTE_CORE_OS_CPU_LIST_H_
#define WASTE_CORE_OS_CPU_LIST_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace waste {

class CpuSet {
 public:
  static constexpr int32_t kMaxCpus = 8192;  // the most that a kernel is built for

  bool empty() const { return count() == 0; }
  int32_t count() const;
  // Of a `cpu` in [0, kMaxCpus).
  bool Has(int32_t cpu) const;
  void Add(int32_t cpu);
  CpuSet Without(const CpuSet& other) const;
  bool operator==(const CpuSet&) const = default;

  // CPU n is bit n % 64 of word n / 64, as in the masks of the system's calls.
  using Words = std::array<uint64_t, kMaxCpus / 64>;
  const Words& words() const { return words_; }
  Words& words() { return words_; }

 private:
  Words words_ = {};
};

// Numbers and ranges with commas between them, in any order; nothing else, blanks included. Errors:
// kArgument, with the place and the text of the item that is none.
Result<CpuSet> ParseCpuList(std::string_view text);

// The shortest text that ParseCpuList takes for the set; none for the empty one.
std::string PrintCpuList(const CpuSet& cpus);

}  // namespace waste

#endif  // WASTE_CORE_OS_CPU_LIST_H_
