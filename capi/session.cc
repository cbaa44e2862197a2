// SPDX-License-Identifier: Apache-2.0
//
// Sessions: each entry claims the session for its duration, so that a second call gets BUSY.

#include <algorithm>

#include "boundary.h"
#include "handle.h"
#include "translate.h"

namespace waste {
namespace {

// Claims the session behind `handle` for `body`. With `idle`, no generation may live.
template <typename Body>
int64_t WithHandle(waste_session *handle, bool idle, waste_error *error, Body &&body) {
  return Guard(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto use, UseHandle(handle));
    WASTE_ASSIGN(const Session::Claim claim,
                 idle ? use->session->TryClaimIdle() : use->session->TryClaim());
    return body(*handle);
  });
}

template <typename Body>
int64_t WithSession(waste_session *handle, bool idle, waste_error *error, Body &&body) {
  return WithHandle(handle, idle, error,
                    [&](waste_session &claimed) { return body(*claimed.session); });
}

template <typename Body>
waste_status WithIdleSession(waste_session *handle, waste_error *error, Body &&body) {
  return static_cast<waste_status>(
      WithSession(handle, true, error, [&](Session &session) -> Result<int64_t> {
        WASTE_TRY(body(session));
        return int64_t{0};
      }));
}

Status CheckRole(int32_t role) {
  if (role >= WASTE_ROLE_SYSTEM && role <= WASTE_ROLE_ASSISTANT) return Status();
  return Failure(Code::kArgument, "role is ", role, "; it may be 0 to ", WASTE_ROLE_ASSISTANT);
}

Status CheckTokens(const Session &session, std::span<const int32_t> tokens, int64_t vocab) {
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocab)
      return Failure(Code::kArgument, "token ", i, " is ", tokens[i],
                     ", not below the vocabulary of ", vocab);
  const int64_t held = static_cast<int64_t>(session.tokens().size());
  if (held + static_cast<int64_t>(tokens.size()) > session.context())
    return Failure(Code::kContextFull, tokens.size(), " tokens do not fit: the session holds ",
                   held, " of ", session.context());
  return Status();
}

// The whole of waste_eval: on failure the session forgets the tokens again.
Result<int64_t> Eval(waste_session &handle, std::span<const int32_t> tokens,
                     std::span<float> logits) {
  Session &session = *handle.session;
  const int64_t vocab = session.model().info().vocab;
  WASTE_TRY(CheckTokens(session, tokens, vocab));
  const int64_t held = static_cast<int64_t>(session.tokens().size());
  const int64_t rows = static_cast<int64_t>(logits.size()) / vocab;
  if (static_cast<int64_t>(logits.size()) % vocab != 0 ||
      rows > static_cast<int64_t>(tokens.size()))
    return Failure(Code::kArgument, "logit_count is ", logits.size(), "; it is the vocabulary of ",
                   vocab, " times at most the ", tokens.size(), " tokens");
  const EvalStop::Running running(handle.stop);  // before Append: who sees the position may cancel
  session.Append(tokens);
  const Status status = session.Run(
      logits, Phase::kPrefill, [&running] { return running.stopped(); }, nullptr);
  if (!status.ok()) {
    session.Truncate(held);
    return status;
  }
  return static_cast<int64_t>(logits.size());
}

}  // namespace
}  // namespace waste

using namespace waste;

extern "C" {

waste_status waste_session_create(waste_model *model, const waste_session_options *options,
                                  waste_session **out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(model));
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(const SessionOptions wanted, ToSessionOptions(options));
    WASTE_ASSIGN(auto session, Session::Create(use->model, wanted));
    *out = new waste_session(std::move(session));
    return Status();
  });
}

waste_status waste_session_add_message(waste_session *session, int32_t role, const char *text,
                                       int64_t text_size, waste_error *error) {
  return WithIdleSession(session, error, [&](Session &s) -> Status {
    WASTE_TRY(CheckRole(role));
    WASTE_ASSIGN(const std::string_view message, Text(text, text_size, "text"));
    WASTE_ASSIGN(const PreparedPrompt prompt, s.PrepareMessage(static_cast<Role>(role), message));
    s.Commit(prompt);
    return Status();
  });
}

int64_t waste_eval(waste_session *session, const int32_t *tokens, int64_t token_count,
                   float *logits, int64_t logit_count, waste_error *error) {
  return WithHandle(session, true, error, [&](waste_session &claimed) -> Result<int64_t> {
    WASTE_ASSIGN(const auto given, Array(tokens, token_count, "tokens"));
    WASTE_ASSIGN(const auto out, Array(logits, logit_count, "logits"));
    return Eval(claimed, given, out);
  });
}

int64_t waste_session_tokens(waste_session *session, int32_t *tokens, int64_t token_count,
                             waste_error *error) {
  return WithSession(session, false, error, [&](Session &s) -> Result<int64_t> {
    WASTE_ASSIGN(const auto out, Array(tokens, token_count, "tokens"));
    std::copy_n(s.tokens().begin(), std::min(s.tokens().size(), out.size()), out.begin());
    return static_cast<int64_t>(s.tokens().size());
  });
}

waste_status waste_session_reset(waste_session *session, waste_error *error) {
  return WithIdleSession(session, error, [](Session &s) {
    s.Truncate(0);
    return Status();
  });
}

waste_status waste_session_rewind(waste_session *session, int64_t position, waste_error *error) {
  return WithIdleSession(session, error, [&](Session &s) -> Status {
    const int64_t held = static_cast<int64_t>(s.tokens().size());
    if (position < 0 || position > held)
      return Failure(Code::kArgument, "position is ", position, "; the session holds ", held,
                     " tokens");
    s.Truncate(position);
    return Status();
  });
}

waste_status waste_session_fork(waste_session *session, waste_session **out, waste_error *error) {
  return WithIdleSession(session, error, [&](Session &s) -> Status {
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(auto copy, s.Fork());
    *out = new waste_session(std::move(copy));
    return Status();
  });
}

waste_status waste_session_save(waste_session *session, const char *path, int64_t path_size,
                                waste_error *error) {
  return WithIdleSession(session, error, [&](Session &s) -> Status {
    WASTE_ASSIGN(const std::string name, Path(path, path_size, "path"));
    return s.Save(name);
  });
}

waste_status waste_session_load(waste_session *session, const char *path, int64_t path_size,
                                waste_error *error) {
  return WithIdleSession(session, error, [&](Session &s) -> Status {
    WASTE_ASSIGN(const std::string name, Path(path, path_size, "path"));
    return s.Load(name);
  });
}

waste_status waste_session_stats(waste_session *session, waste_stats *out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(session));
    WASTE_TRY(CheckStruct(out, "out"));
    waste_stats stats = StatsOf(use->session->work());
    stats.position = use->session->token_count();
    stats.context = use->session->context();
    stats.memory_bytes = use->session->state_bytes();
    WriteStruct(out, stats);
    return Status();
  });
}

}  // extern "C"
