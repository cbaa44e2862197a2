// SPDX-License-Identifier: Apache-2.0
//
// A program for tests/system/budget_test.py: opens a model, creates sessions, reads tokens in all
// of them in turns, and prints what that took as one JSON object. A client of the public header
// alone, in a process of its own, since the peak of the resident size is a process's.
//   sessions MODEL BUDGET_BYTES CONTEXT SESSIONS TOKENS     BUDGET_BYTES 0: automatic

#include <waste/waste.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Free {
  void operator()(void* object) const { waste_free(object); }
};
using Model = std::unique_ptr<waste_model, Free>;
using Session = std::unique_ptr<waste_session, Free>;

template <typename T>
T Sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

// Calls `call(error)`; a negative status ends the program with its message.
template <typename Call>
void Try(const Call& call) {
  waste_error error = Sized<waste_error>();
  if (call(&error) < 0) throw std::runtime_error(error.message);
}

Model Open(const char* path, int64_t budget_bytes, int64_t context) {
  waste_open_options options;
  waste_open_options_init(&options, sizeof options);
  options.budget_bytes = budget_bytes;
  options.context = context;
  waste_model* model = nullptr;
  Try([&](waste_error* error) { return waste_open(path, -1, &options, &model, error); });
  return Model(model);
}

Session NewSession(const Model& model) {
  waste_session* session = nullptr;
  Try([&](waste_error* error) {
    return waste_session_create(model.get(), nullptr, &session, error);
  });
  return Session(session);
}

// Tokens that differ from session to session, so that their experts do.
void Read(const Session& session, int64_t vocab, int64_t first, int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = first; i < first + count; ++i)
    tokens.push_back(static_cast<int32_t>(i * 7919 % std::min<int64_t>(vocab, 1000)));
  std::vector<float> logits(static_cast<size_t>(vocab));
  Try([&](waste_error* error) {
    return waste_eval(session.get(), tokens.data(), std::ssize(tokens), logits.data(), vocab,
                      error);
  });
}

void Run(const char* path, int64_t budget_bytes, int64_t context, int64_t count, int64_t tokens) {
  constexpr int64_t kTurn = 64;
  const Model model = Open(path, budget_bytes, context);
  waste_info info = Sized<waste_info>();
  Try([&](waste_error* error) { return waste_model_info(model.get(), &info, error); });
  std::vector<Session> sessions;
  for (int64_t i = 0; i < count; ++i) sessions.push_back(NewSession(model));
  for (int64_t read = 0; read < tokens; read += kTurn)
    for (int64_t i = 0; i < count; ++i)
      Read(sessions[static_cast<size_t>(i)], info.vocab_size, i * tokens + read,
           std::min(kTurn, tokens - read));
  waste_stats stats = Sized<waste_stats>();
  Try([&](waste_error* error) { return waste_model_stats(model.get(), &stats, error); });
  std::printf("{\"budget_bytes\":%lld,\"memory_bytes\":%lld,\"peak_rss_bytes\":%lld}\n",
              static_cast<long long>(info.budget_bytes), static_cast<long long>(stats.memory_bytes),
              static_cast<long long>(stats.peak_rss_bytes));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "usage: sessions MODEL BUDGET_BYTES CONTEXT SESSIONS TOKENS\n");
    return 2;
  }
  try {
    Run(arguments[1], std::atoll(arguments[2]), std::atoll(arguments[3]), std::atoll(arguments[4]),
        std::atoll(arguments[5]));
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
  }
  return 0;
}
