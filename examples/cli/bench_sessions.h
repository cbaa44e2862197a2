// SPDX-License-Identifier: Apache-2.0
//
// Several sessions of one model that write at the same time, a thread each, as the users of a
// server do. Each begins at another place of the text, so that they do not all want the same
// experts. Main thread only; the others live within a Repeat.

#ifndef WASTE_EXAMPLES_CLI_BENCH_SESSIONS_H_
#define WASTE_EXAMPLES_CLI_BENCH_SESSIONS_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <span>
#include <vector>

#include "bench_phase.h"
#include "handle.h"

namespace waste_cli {

// One that writes: a session, and the logits of what comes next. It draws from the likeliest
// tokens: always the likeliest, and many a text goes in circles, whose few experts are all in
// memory soon.
class Writer {
 public:
  explicit Writer(const Model& model, uint32_t seed = 0);

  void Reset();
  void Eval(std::span<const int32_t> tokens);
  void Write(int64_t count);

 private:
  int32_t Draw();

  Session session_;
  std::vector<float> logits_;
  std::mt19937 random_;  // goes on where it is, so that no repeat writes what one before wrote
};

class SessionsBench {
 public:
  // `text` is what prompts are cut from, `tokens` what each session writes in a repeat.
  SessionsBench(const Model& model, int32_t sessions, std::vector<int32_t> text, int64_t tokens);

  void Repeat(bool counts);

  // `alone_tok_s` is the speed of one session by itself.
  nlohmann::ordered_json Result(double alone_tok_s) const;

 private:
  void OnThreads(const std::function<void(size_t)>& work);

  const Model& model_;
  const std::vector<int32_t> text_;
  const int64_t tokens_;
  std::vector<Writer> writers_;
  std::vector<std::vector<double>> speeds_;  // of each, one a repeat
  Phase phase_;                              // of all
};

}  // namespace waste_cli

#endif  // WASTE_EXAMPLES_CLI_BENCH_SESSIONS_H_
