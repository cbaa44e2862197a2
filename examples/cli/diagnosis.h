// SPDX-License-Identifier: Apache-2.0
//
// What `waste doctor` finds: the model's needs for a token, what the machine gives, and the speeds
// that follow. The arithmetic is that of docs/performance.md: a token waits for the slowest of
// what it needs. Pure functions of the findings, so that each sentence can be traced to figures.

#ifndef WASTE_EXAMPLES_CLI_DIAGNOSIS_H_
#define WASTE_EXAMPLES_CLI_DIAGNOSIS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "drive_limit.h"
#include "drives.h"
#include "handle.h"
#include "machine.h"

namespace waste_cli {

// What a model keeps on disk, by its manifest.
struct ExpertBanks {
  int64_t layers = 0;
  int64_t experts = 0;  // of all layers
  int64_t bytes = 0;
};

struct Findings {
  waste_memory_plan plan = Sized<waste_memory_plan>();
  waste_info info = Sized<waste_info>();
  ExpertBanks banks;
  Machine machine;
  std::string file_system;  // of the container
  int32_t io_asked = WASTE_IO_AUTO;
  double memory_bytes_s = 0;
  double flops = 0;
  double word_ops = 0;   // products of words, of those that read prompts with them
  DriveLimits drives;    // kDriveReaders at a time
  DriveLimit drive;      // of a token that reads from all of these
  DriveLimit drive_one;  // the same, one record at a time

  int64_t token_expert_bytes() const {
    return banks.layers * info.experts_per_token * info.expert_bytes;
  }
  int64_t token_bytes() const { return info.token_trunk_bytes + token_expert_bytes(); }
  // The smallest budget that keeps every expert.
  int64_t resident_budget_bytes() const {
    return plan.floor_bytes - plan.staging_bytes + banks.experts * info.expert_bytes;
  }
  double prompt_flops() const { return std::max(flops, word_ops); }
  double cached_share() const;
  // What a token has to read if each expert were as likely as any other; text does better.
  double token_missed_bytes() const;

  double warm_tok_s() const;  // all experts in memory
  double cold_tok_s() const;  // none
  double here_tok_s() const;  // as many as the budget holds
  double prefill_tok_s() const;
  bool needs_drive() const { return token_missed_bytes() > 0; }

  // "memory", "drive" or "arithmetic".
  std::string limited_by() const;
};

// Whether direct reads were obtained, and why not: "direct", "through the page cache: ...".
std::string DirectText(const Findings& found);

// Sentences: what will limit the model first, then what is not as it could be.
std::vector<std::string> Advice(const Findings& found);

// 1.23 GB, 45.6 MB: decimal, as drives and memories are sold.
std::string AmountText(double bytes);

// std::snprintf into a string.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_DIAGNOSIS_H_
