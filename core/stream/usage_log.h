// SPDX-License-Identifier: Apache-2.0
//
// usage.waste: which experts a cache held when it was closed, and how much they were used, so that
// the next run begins with the best of them (docs/format.md, "usage.waste"). Pure functions but for
// the two that name a file; any thread.

#ifndef WASTE_CORE_STREAM_USAGE_LOG_H_
#define WASTE_CORE_STREAM_USAGE_LOG_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace waste {

struct UsageLog {
  struct Entry {
    uint16_t layer = 0;
    uint16_t expert = 0;
    uint32_t hits = 0;       // comparable within a file only
    uint32_t last_seen = 0;  // the token that used it last

    bool operator==(const Entry&) const = default;
  };

  uint64_t tokens = 0;  // that were run
  std::vector<Entry> entries;

  bool operator==(const UsageLog&) const = default;
};

// Errors name `path`: kFormat (no usage log, or of another version), kCorrupt (cut short).
Result<UsageLog> ParseUsageLog(std::span<const uint8_t> bytes, const std::string& path);
std::vector<uint8_t> PrintUsageLog(const UsageLog& usage);

// Errors also: kIo.
Result<UsageLog> ReadUsageLog(const std::string& path);
// Replaces the file as a whole, or leaves it.
Status WriteUsageLog(const UsageLog& usage, const std::string& path);

}  // namespace waste

#endif  // WASTE_CORE_STREAM_USAGE_LOG_H_
