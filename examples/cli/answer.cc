// SPDX-License-Identifier: Apache-2.0

#include "answer.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "interrupt.h"
#include "output.h"
#include "token_text.h"

namespace waste_cli {
namespace {

const char* FinishName(int32_t reason) {
  switch (reason) {
    case WASTE_FINISH_STOP:
      return "stop";
    case WASTE_FINISH_LENGTH:
      return "length";
    case WASTE_FINISH_CANCELLED:
      return "cancelled";
    default:
      return "none";
  }
}

// Collects the pieces, and shows them if asked to. What is shown on one stream ends with a newline
// before the other one goes on.
class Pieces {
 public:
  Pieces(Answer& answer, Show show) : answer_(answer), show_(show) {}
  // A failure too ends the line that was begun.
  ~Pieces() {
    if (show_ == Show::kAsItComes && aside_open_) WriteAside("\n");
  }

  void Add(int32_t channel, std::string_view text) {
    const bool is_response = channel == WASTE_CHANNEL_RESPONSE;
    (is_response                         ? answer_.text
     : channel == WASTE_CHANNEL_THINKING ? answer_.thinking
                                         : answer_.tool) += text;
    if (show_ == Show::kNothing) return;
    if (is_response) {
      if (std::exchange(aside_open_, false)) WriteAside("\n");
      WriteText(text);
    } else {
      aside_open_ = true;
      WriteAside(text);
    }
  }

 private:
  Answer& answer_;
  const Show show_;
  bool aside_open_ = false;
};

void AddStops(const Generation& generation, const SamplingOptions& sampling) {
  for (const std::string& stop : sampling.stops)
    Try([&](waste_error* error) {
      return waste_generation_add_stop(generation.get(), stop.data(), std::ssize(stop), error);
    });
}

void Stream(const Generation& generation, Answer& answer, Show show) {
  Pieces pieces(answer, show);
  std::array<char, 4096> buffer;
  const Interruptible interruptible(generation.get());
  for (;;) {
    auto token = Sized<waste_token>();
    auto error = Sized<waste_error>();
    const int64_t size =
        waste_next(generation.get(), buffer.data(), std::ssize(buffer), &token, &error);
    if (size <= 0) answer.finish_reason = token.finish_reason;
    if (size == 0 || size == WASTE_ERR_CANCELLED) return;
    if (size < 0) {
      if (show == Show::kAsItComes && !answer.text.empty()) Write("\n");
      throw LibraryFailure(error, static_cast<waste_status>(size));
    }
    pieces.Add(token.channel, {buffer.data(), static_cast<size_t>(size)});
  }
}

void CollectTokens(const Generation& generation, bool with_logprobs, Answer& answer) {
  const auto read = [&] {
    return Try([&](waste_error* error) {
      return waste_generation_tokens(generation.get(), answer.tokens.data(),
                                     std::ssize(answer.tokens), answer.logprobs.data(),
                                     std::ssize(answer.logprobs), error);
    });
  };
  const auto count = static_cast<size_t>(read());
  answer.tokens.resize(count);
  if (with_logprobs) answer.logprobs.resize(count);
  read();
}

}  // namespace

Answer Generate(const Generation& generation, const SamplingOptions& sampling, Show show) {
  Answer answer;
  AddStops(generation, sampling);
  Stream(generation, answer, show);
  CollectTokens(generation, sampling.logprobs, answer);
  answer.stats = Sized<waste_stats>();
  Try([&](waste_error* error) {
    return waste_generation_stats(generation.get(), &answer.stats, error);
  });
  return answer;
}

nlohmann::ordered_json ToJson(const Answer& answer, const SamplingOptions& sampling,
                              const Model& model) {
  const waste_stats& stats = answer.stats;
  const waste_info info = InfoOf(model);
  nlohmann::ordered_json object = {
      {"text", answer.text},
      {"thinking", answer.thinking},
      {"tool", answer.tool},
      {"tokens", answer.tokens},
      {"prompt_tokens", stats.prompt_tokens},
      {"finish_reason", FinishName(answer.finish_reason)},
      {"seed", sampling.seed.value_or(0)},
      {"prefill_tok_s", PerSecond(stats.prompt_tokens, stats.prefill_us)},
      {"decode_tok_s", PerSecond(stats.generated_tokens, stats.decode_us)},
      {"prefill_us", stats.prefill_us},
      {"decode_us", stats.decode_us},
      {"experts_hit", stats.experts_hit},
      {"experts_missed", stats.experts_missed},
      {"experts_foreseen", stats.experts_foreseen},
      {"bytes_read", stats.bytes_read},
      {"speculative_bytes", stats.speculative_bytes},
      {"read_stalls", stats.read_stalls},
      {"read_us", stats.read_us},
      {"direct_io", info.direct_io != 0},
      {"budget_bytes", info.budget_bytes},
      {"peak_rss_bytes", StatsOf(model).peak_rss_bytes}};
  if (sampling.logprobs) object["logprobs"] = answer.logprobs;
  return object;
}

void WriteSummary(const Answer& answer, const Model& model) {
  char line[160];
  for (size_t i = 0; i < answer.logprobs.size(); ++i) {
    std::snprintf(line, sizeof line, "%8d %9.4f  ", answer.tokens[i], answer.logprobs[i]);
    WriteNote(line + QuotedTokenText(model, answer.tokens[i]));
  }
  if (!StderrIsTerminal()) return;
  const waste_stats& stats = answer.stats;
  std::snprintf(
      line, sizeof line, "[%lld tokens read at %.1f/s, %lld written at %.1f/s; %s]\n",
      static_cast<long long>(stats.prompt_tokens), PerSecond(stats.prompt_tokens, stats.prefill_us),
      static_cast<long long>(stats.generated_tokens),
      PerSecond(stats.generated_tokens, stats.decode_us), FinishName(answer.finish_reason));
  WriteAside(line);
}

double PerSecond(int64_t count, int64_t time_us) {
  return time_us > 0 ? static_cast<double>(count) * 1e6 / static_cast<double>(time_us) : 0;
}

}  // namespace waste_cli
