// SPDX-License-Identifier: Apache-2.0

#include "os/cpu_list.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/utf8.h"

namespace waste {
namespace {

// The number that `text` is, or kMaxCpus if it is larger than that; nothing if it is no number.
std::optional<int32_t> ParseNumber(std::string_view text) {
  if (text.empty()) return std::nullopt;
  int32_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = std::min(number * 10 + (c - '0'), CpuSet::kMaxCpus);
  }
  return number;
}

// What a message shows of an item, which may be as long as its author likes.
std::string Quote(std::string_view item) {
  constexpr int64_t kMost = 40;
  const std::string_view start = CutUtf8(item, kMost);
  std::string quoted = "\"";
  quoted.append(start).append(start.size() < item.size() ? "...\"" : "\"");
  return quoted;
}

Status AddItem(std::string_view item, int64_t place, CpuSet& cpus) {
  if (item.empty()) return Failure(Code::kArgument, "item ", place, " is empty");
  const size_t dash = item.find('-');
  const std::optional<int32_t> first = ParseNumber(item.substr(0, dash));
  const std::optional<int32_t> last =
      dash == item.npos ? first : ParseNumber(item.substr(dash + 1));
  const auto refuse = [&](const auto&... why) {
    return Failure(Code::kArgument, "item ", place, ", ", Quote(item), ", ", why...);
  };
  if (!first || !last) return refuse("is no CPU like 3 and no range like 0-3");
  if (std::max(*first, *last) >= CpuSet::kMaxCpus)
    return refuse("is beyond the last CPU there can be, ", CpuSet::kMaxCpus - 1);
  if (*last < *first) return refuse("ends before it begins");
  for (int32_t cpu = *first; cpu <= *last; ++cpu) cpus.Add(cpu);
  return Status();
}

}  // namespace

int32_t CpuSet::count() const {
  int32_t count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

bool CpuSet::Has(int32_t cpu) const {
  return (words_[static_cast<size_t>(cpu / 64)] >> (cpu % 64) & 1) != 0;
}

void CpuSet::Add(int32_t cpu) { words_[static_cast<size_t>(cpu / 64)] |= uint64_t{1} << cpu % 64; }

CpuSet CpuSet::Without(const CpuSet& other) const {
  CpuSet rest = *this;
  for (size_t i = 0; i < words_.size(); ++i) rest.words_[i] &= ~other.words_[i];
  return rest;
}

Result<CpuSet> ParseCpuList(std::string_view text) {
  CpuSet cpus;
  for (int64_t place = 1;; ++place) {
    const size_t comma = text.find(',');
    WASTE_TRY(AddItem(text.substr(0, comma), place, cpus));
    if (comma == text.npos) return cpus;
    text.remove_prefix(comma + 1);
  }
}

std::string PrintCpuList(const CpuSet& cpus) {
  std::string text;
  for (int32_t cpu = 0; cpu < CpuSet::kMaxCpus; ++cpu) {
    if (!cpus.Has(cpu)) continue;
    const int32_t first = cpu;
    while (cpu + 1 < CpuSet::kMaxCpus && cpus.Has(cpu + 1)) ++cpu;
    if (!text.empty()) text.append(",");
    text.append(std::to_string(first));
    if (cpu > first) text.append("-").append(std::to_string(cpu));
  }
  return text;
}

}  // namespace waste
