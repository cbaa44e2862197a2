// SPDX-License-Identifier: Apache-2.0

#include "engine/scripted_backend.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "engine/memory_grant.h"
#include "engine/script.h"
#include "engine/team.h"

namespace waste {
namespace {

// Where a script stands: how many answers were begun, how many tokens of the last were seen, and
// whether the script was asked for the next one here. Only such a token can be the script's own.
struct Cursor {
  int32_t answer = -1;
  int32_t seen = 0;
  bool asked = false;
};

constexpr int64_t kCursorBytes = 9;

// Remembers the cursor behind every token, so that rewinding is exact.
class ScriptTimeline : public Timeline {
 public:
  explicit ScriptTimeline(int64_t context) { cursors_.reserve(static_cast<size_t>(context)); }

  int64_t position() const override { return static_cast<int64_t>(cursors_.size()); }
  void RewindTo(int64_t position) override { cursors_.resize(static_cast<size_t>(position)); }
  void CopyFrom(const Timeline& other) override {
    const auto& from = static_cast<const ScriptTimeline&>(other).cursors_;
    cursors_.assign(from.begin(), from.end());
  }

  int64_t SavedBytes() const override { return position() * kCursorBytes; }
  void SaveTo(std::span<uint8_t> out) const override {
    uint8_t* at = out.data();
    for (const Cursor& cursor : cursors_) {
      StoreLittle(at, static_cast<uint32_t>(cursor.answer), 4);
      StoreLittle(at + 4, static_cast<uint32_t>(cursor.seen), 4);
      at[8] = cursor.asked ? 1 : 0;
      at += kCursorBytes;
    }
  }
  Status LoadFrom(std::span<const uint8_t> bytes, int64_t position) override {
    if (static_cast<int64_t>(bytes.size()) != position * kCursorBytes)
      return Failure(Code::kCorrupt, "a state of ", bytes.size(), " bytes for ", position,
                     " tokens");
    cursors_.clear();
    ByteReader in(bytes);
    for (int64_t i = 0; i < position; ++i) {
      Cursor cursor;
      cursor.answer = std::max(static_cast<int32_t>(in.U32()), -1);
      cursor.seen = std::max(static_cast<int32_t>(in.U32()), 0);
      cursor.asked = in.U8() != 0;
      cursors_.push_back(cursor);
    }
    return Status();
  }

  Cursor last() const { return cursors_.empty() ? Cursor{} : cursors_.back(); }
  void Push(const Cursor& cursor) { cursors_.push_back(cursor); }

 private:
  std::vector<Cursor> cursors_;  // [position]
};

// Sleeps, but not past a cancel.
Status Stall(int64_t millis, const std::function<bool()>& stop) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(millis);
  while (std::chrono::steady_clock::now() < until) {
    if (stop()) return Status(Code::kCancelled, "cancelled while the script stalls");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Status();
}

class ScriptedBackend : public Backend {
 public:
  ScriptedBackend(Script script, const MemoryPlan& plan, const CpuSet& cpus, int64_t context)
      : script_(std::move(script)), plan_(plan) {
    info_.name = "scripted";
    info_.vocab = script_.vocab;
    info_.context = context;
    info_.cpus = cpus;
    info_.identity = 0x5C217;
    info_.stop_tokens = {script_.end_token};
  }

  Status LoadText(const std::string& path) {
    WASTE_ASSIGN(tokenizer_, Tokenizer::Create(script_.rank_file, script_.specials, path));
    WASTE_ASSIGN(chat_, MakeK3Format(*tokenizer_));
    return Status();
  }

  const BackendInfo& info() const override { return info_; }
  const MemoryPlan& plan() const override { return plan_; }
  const Tokenizer& tokenizer() const override { return *tokenizer_; }
  const ChatFormat* chat() const override { return chat_.get(); }
  int64_t TimelineBytes(int64_t context) const override { return context * kCursorBytes; }
  Result<std::unique_ptr<Timeline>> NewTimeline(int64_t context) override {
    return std::unique_ptr<Timeline>(std::make_unique<ScriptTimeline>(context));
  }
  ExpertCounters counters() const override { return {}; }
  void LimitCache(int64_t) override {}

  // One after another: the stall or failure of an answer is that of its session alone.
  void Step(std::span<SessionStep> sessions) override {
    for (SessionStep& one : sessions) one.status = StepOne(one);
  }

 private:
  const ScriptAnswer& AnswerOf(const Cursor& cursor) const {
    return script_.answers[static_cast<size_t>(cursor.answer) % script_.answers.size()];
  }
  int32_t TokenAt(const Cursor& cursor) const;
  Cursor Advance(const Cursor& cursor, int32_t token) const;
  Status StepOne(const SessionStep& one);
  Status Happen(const Cursor& cursor, const std::function<bool()>& stop);

  Script script_;
  MemoryPlan plan_;
  BackendInfo info_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatFormat> chat_;
  std::map<const ScriptEvent*, int64_t> failures_;  // that have happened
};

// The token that the script gives at a cursor.
int32_t ScriptedBackend::TokenAt(const Cursor& cursor) const {
  const ScriptAnswer& answer = AnswerOf(cursor);
  if (cursor.seen < static_cast<int32_t>(answer.tokens.size()))
    return answer.tokens[static_cast<size_t>(cursor.seen)];
  return answer.endless ? answer.tokens.back() : script_.end_token;
}

// A token that the script gave goes on in the answer; any other belongs to a prompt, and the first
// such token begins the next answer.
Cursor ScriptedBackend::Advance(const Cursor& cursor, int32_t token) const {
  if (cursor.asked && cursor.answer >= 0 && token == TokenAt(cursor))
    return {cursor.answer, cursor.seen + 1};
  const bool in_prompt = cursor.answer >= 0 && cursor.seen == 0 && !cursor.asked;
  return {in_prompt ? cursor.answer : cursor.answer + 1, 0};
}

Status ScriptedBackend::Happen(const Cursor& cursor, const std::function<bool()>& stop) {
  const auto& events = AnswerOf(cursor).events;
  const auto event = events.find(cursor.seen);
  if (event == events.end()) return Status();
  WASTE_TRY(Stall(event->second.stall_ms, stop));
  if (event->second.failure && failures_[&event->second] < event->second.failure->times) {
    ++failures_[&event->second];
    return event->second.failure->status;
  }
  return Status();
}

Status ScriptedBackend::StepOne(const SessionStep& one) {
  constexpr float kSure = 20;  // a logit that any temperature up to 2 samples
  auto& timeline = static_cast<ScriptTimeline&>(*one.timeline);
  const std::function<bool()> stop = [&one] { return one.stopped(); };
  std::vector<Cursor> cursors = {timeline.last()};
  for (const int32_t token : one.tokens) cursors.push_back(Advance(cursors.back(), token));
  if (stop()) return Status(Code::kCancelled, "cancelled");
  if (cursors.back().seen == 0) WASTE_TRY(Stall(script_.prefill_stall_ms, stop));
  if (!one.logits.empty()) WASTE_TRY(Happen(cursors.back(), stop));

  const int64_t rows = static_cast<int64_t>(one.logits.size()) / script_.vocab;
  for (int64_t row = 0; row < rows; ++row) {
    const auto out = one.logits.subspan(static_cast<size_t>(row * script_.vocab),
                                        static_cast<size_t>(script_.vocab));
    for (size_t id = 0; id < out.size(); ++id) out[id] = -0.01f * static_cast<float>(id % 7);
    const Cursor& cursor = cursors[cursors.size() - static_cast<size_t>(rows - row)];
    out[static_cast<size_t>(TokenAt(cursor))] = kSure;
  }
  cursors.back().asked = rows > 0;
  for (size_t i = 1; i < cursors.size(); ++i) timeline.Push(cursors[i]);
  return Status();
}

ModelSizes SizesOf(const Script& script) {
  ModelSizes sizes;
  sizes.state_bytes = script.context * kCursorBytes;
  sizes.trunk_bytes = std::max(script.floor_bytes - sizes.state_bytes, int64_t{0});
  return sizes;
}

}  // namespace

Result<MemoryPlan> PlanScript(const std::string& path, const OpenOptions& options) {
  WASTE_ASSIGN(const Script script, ReadScript(path));
  WASTE_TRY(ChooseTeam(options).status());
  return PlanOnThisMachine(SizesOf(script), options.budget_bytes);
}

Result<OpenedBackend> OpenScriptedBackend(const std::string& path, const OpenOptions& options,
                                          Progress& progress) {
  WASTE_ASSIGN(Script script, ReadScript(path));
  WASTE_ASSIGN(const Team team, ChooseTeam(options));
  MemoryGrant grant = GrantMemory(SizesOf(script), options.budget_bytes, progress);
  const MemoryPlan& plan = grant.plan;
  if (!plan.fits)
    return Failure(Code::kRamBudget, path, ": a budget of ", plan.budget_bytes,
                   " bytes is below the floor of ", plan.floor_bytes)
        .WithNeededBytes(plan.floor_bytes);
  if (options.context > script.context)
    return Failure(Code::kArgument, path, ": context is ", options.context,
                   "; this model holds at most ", script.context);
  progress.SetTotal(script.open_stall_ms);
  WASTE_TRY(Stall(script.open_stall_ms, [&] { return progress.cancelled(); }));
  progress.Add(script.open_stall_ms);
  WASTE_TRY(script.open_failure);
  const int64_t context = options.context > 0 ? options.context : script.context;
  auto backend = std::make_unique<ScriptedBackend>(std::move(script), plan, team.cpus, context);
  WASTE_TRY(backend->LoadText(path));
  return OpenedBackend{std::move(grant.reservation), std::move(backend)};
}

}  // namespace waste
