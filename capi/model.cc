// SPDX-License-Identifier: Apache-2.0
//
// waste_plan, waste_open and what a model tells of itself; tokenizing, which needs a model only.

#include "boundary.h"
#include "handle.h"
#include "translate.h"

namespace waste {
namespace {

// Copies `tokens` into the caller's array and returns how many there are.
int64_t CopyTokens(const std::vector<int32_t> &tokens, std::span<int32_t> out) {
  std::copy_n(tokens.begin(), std::min(tokens.size(), out.size()), out.begin());
  return static_cast<int64_t>(tokens.size());
}

int64_t TokenizeWith(waste_model *model, const char *text, int64_t text_size, int32_t *tokens,
                     int64_t token_count, waste_error *error,
                     void (Tokenizer::*encode)(std::string_view, std::vector<int32_t> &) const) {
  return Guard(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto use, UseHandle(model));
    WASTE_ASSIGN(const std::string_view bytes, Text(text, text_size, "text"));
    WASTE_ASSIGN(const auto out, Array(tokens, token_count, "tokens"));
    std::vector<int32_t> encoded;
    (use->model->tokenizer().*encode)(bytes, encoded);
    return CopyTokens(encoded, out);
  });
}

}  // namespace
}  // namespace waste

using namespace waste;

extern "C" {

waste_status waste_plan(const char *path, int64_t path_size, const waste_open_options *options,
                        waste_memory_plan *out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_TRY(CheckStruct(out, "out"));
    WASTE_ASSIGN(const std::string name, Path(path, path_size, "path"));
    WASTE_ASSIGN(const OpenOptions wanted, ToOpenOptions(options));
    WASTE_ASSIGN(const MemoryPlan plan, Model::Plan(name, wanted));
    WriteStruct(out, FromPlan(plan));
    return Status();
  });
}

waste_status waste_open(const char *path, int64_t path_size, const waste_open_options *options,
                        waste_model **out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(const std::string name, Path(path, path_size, "path"));
    WASTE_ASSIGN(const OpenOptions wanted, ToOpenOptions(options));
    WASTE_ASSIGN(auto model, Model::Open(name, wanted, std::make_shared<Progress>()));
    *out = new waste_model(std::move(model));
    return Status();
  });
}

waste_status waste_model_info(waste_model *model, waste_info *out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(model));
    WASTE_TRY(CheckStruct(out, "out"));
    WriteStruct(out, InfoOf(*use->model));
    return Status();
  });
}

waste_status waste_model_stats(waste_model *model, waste_stats *out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(model));
    WASTE_TRY(CheckStruct(out, "out"));
    waste_stats stats = StatsOf(use->model->work());
    stats.context = use->model->info().context;
    stats.memory_bytes = use->model->charged_bytes();
    stats.peak_rss_bytes = PeakResidentBytes();
    WriteStruct(out, stats);
    return Status();
  });
}

int64_t waste_model_name(waste_model *model, char *buffer, int64_t buffer_size,
                         waste_error *error) {
  return Guard(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto use, UseHandle(model));
    WASTE_ASSIGN(const auto out, Array(buffer, buffer_size, "buffer"));
    return CopyText(use->model->info().name, out);
  });
}

int64_t waste_tokenize(waste_model *model, const char *text, int64_t text_size, int32_t *tokens,
                       int64_t token_count, waste_error *error) {
  return TokenizeWith(model, text, text_size, tokens, token_count, error, &Tokenizer::Encode);
}

int64_t waste_tokenize_markup(waste_model *model, const char *text, int64_t text_size,
                              int32_t *tokens, int64_t token_count, waste_error *error) {
  return TokenizeWith(model, text, text_size, tokens, token_count, error, &Tokenizer::EncodeMarkup);
}

int64_t waste_detokenize(waste_model *model, const int32_t *tokens, int64_t token_count,
                         char *buffer, int64_t buffer_size, waste_error *error) {
  return Guard(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto use, UseHandle(model));
    WASTE_ASSIGN(const auto given, Array(tokens, token_count, "tokens"));
    WASTE_ASSIGN(const auto out, Array(buffer, buffer_size, "buffer"));
    const Model &m = *use->model;
    std::string text;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] < 0 || given[i] >= m.info().vocab)
        return Failure(Code::kArgument, "token ", i, " is ", given[i],
                       ", not below the vocabulary of ", m.info().vocab);
      text += m.tokenizer().Bytes(given[i]);
    }
    return CopyText(text, out);
  });
}

}  // extern "C"
