// SPDX-License-Identifier: Apache-2.0
//
// Generations: one answer, pulled.

#include <algorithm>

#include "boundary.h"
#include "handle.h"
#include "translate.h"

namespace waste {
namespace {

void FillToken(waste_token *info, const NextPiece &piece, FinishReason reason) {
  waste_token out{};
  out.id = piece.token;
  out.first_index = piece.first_index;
  out.count = static_cast<int32_t>(piece.token_count);
  out.channel = static_cast<int32_t>(piece.channel);
  out.logprob = piece.logprob;
  out.position = piece.position;
  out.finish_reason = piece.bytes > 0 ? WASTE_FINISH_NONE : static_cast<int32_t>(reason);
  WriteStruct(info, out);
}

template <typename Body>
waste_status WithGeneration(waste_generation *generation, waste_error *error, Body &&body) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(generation));
    return body(*use->generation);
  });
}

}  // namespace
}  // namespace waste

using namespace waste;

extern "C" {

waste_status waste_generate(waste_session *session, const char *prompt, int64_t prompt_size,
                            const waste_generation_options *options, waste_generation **out,
                            waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(session));
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(const std::string_view text, Text(prompt, prompt_size, "prompt"));
    WASTE_ASSIGN(const GenerationOptions wanted, ToGenerationOptions(options));
    WASTE_ASSIGN(auto generation,
                 Generation::Create(use->session, prompt == nullptr ? nullptr : &text, wanted));
    *out = new waste_generation(std::move(generation));
    return Status();
  });
}

waste_status waste_generation_add_stop(waste_generation *generation, const char *text,
                                       int64_t text_size, waste_error *error) {
  return WithGeneration(generation, error, [&](Generation &g) -> Status {
    WASTE_ASSIGN(const std::string_view stop, Text(text, text_size, "text"));
    return g.AddStop(stop);
  });
}

waste_status waste_generation_add_stop_token(waste_generation *generation, int32_t token,
                                             waste_error *error) {
  return WithGeneration(generation, error, [&](Generation &g) { return g.AddStopToken(token); });
}

waste_status waste_generation_add_bias(waste_generation *generation, int32_t token, double bias,
                                       waste_error *error) {
  return WithGeneration(generation, error, [&](Generation &g) { return g.AddBias(token, bias); });
}

int64_t waste_next(waste_generation *generation, char *buffer, int64_t buffer_size,
                   waste_token *info, waste_error *error) {
  return Guard(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto use, UseHandle(generation));
    WASTE_ASSIGN(const auto out, Array(buffer, buffer_size, "buffer"));
    if (info != nullptr) WASTE_TRY(CheckStruct(info, "info"));
    auto next = use->generation->Next(out);
    const FinishReason reason = use->generation->finish_reason();
    if (info != nullptr && (next.ok() || reason == FinishReason::kCancelled))
      FillToken(info, next.ok() ? *next : NextPiece{}, reason);
    if (!next.ok()) return std::move(next).status();
    return next->bytes;
  });
}

int64_t waste_generation_tokens(waste_generation *generation, int32_t *tokens, int64_t token_count,
                                double *logprobs, int64_t logprob_count, waste_error *error) {
  return Guard(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto use, UseHandle(generation));
    WASTE_ASSIGN(const auto ids_out, Array(tokens, token_count, "tokens"));
    WASTE_ASSIGN(const auto logprobs_out, Array(logprobs, logprob_count, "logprobs"));
    std::vector<int32_t> ids;
    std::vector<double> values;
    WASTE_TRY(use->generation->CopyTokens(ids, values));
    std::copy_n(ids.begin(), std::min(ids.size(), ids_out.size()), ids_out.begin());
    std::copy_n(values.begin(), std::min(values.size(), logprobs_out.size()), logprobs_out.begin());
    return static_cast<int64_t>(ids.size());
  });
}

waste_status waste_generation_stats(waste_generation *generation, waste_stats *out,
                                    waste_error *error) {
  return WithGeneration(generation, error, [&](Generation &g) -> Status {
    WASTE_TRY(CheckStruct(out, "out"));
    waste_stats stats = StatsOf(g.work());
    stats.finish_reason = static_cast<int32_t>(g.finish_reason());
    stats.position = g.session().token_count();
    stats.context = g.session().context();
    WriteStruct(out, stats);
    return Status();
  });
}

}  // extern "C"
