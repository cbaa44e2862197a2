// SPDX-License-Identifier: Apache-2.0

#include "engine/model.h"

#include <algorithm>
#include <utility>

#include "engine/container_backend.h"
#include "engine/memory_grant.h"
#include "engine/scripted_backend.h"
#include "os/cpu_affinity.h"

namespace waste {
namespace {

constexpr std::string_view kScriptPrefix = "test:";

bool IsScript(const std::string& path) { return path.starts_with(kScriptPrefix); }
std::string ScriptPath(const std::string& path) { return path.substr(kScriptPrefix.size()); }

BatchQueue::Limits LimitsOf(int64_t prompt_rows) {
  return {.rows = prompt_rows + Backend::kMaxWritten, .written = Backend::kMaxWritten};
}

}  // namespace

Result<std::shared_ptr<Model>> Model::Open(const std::string& path, const OpenOptions& options,
                                           std::shared_ptr<Progress> progress) {
  WASTE_ASSIGN(auto opened, IsScript(path)
                                ? OpenScriptedBackend(ScriptPath(path), options, *progress)
                                : OpenContainerBackend(path, options, *progress));
  auto model = std::make_shared<Model>(std::move(opened), std::move(progress));
  if (model->plan().cache_bytes > 0 && !IsScript(path)) WASTE_TRY(model->WatchPressure(options));
  return model;
}

Result<MemoryPlan> Model::Plan(const std::string& path, const OpenOptions& options) {
  if (IsScript(path)) return PlanScript(ScriptPath(path), options);
  WASTE_ASSIGN(const PreparedContainer prepared, PrepareContainer(path, options));
  return PlanOnThisMachine(prepared.sizes, options.budget_bytes);
}

Model::Model(OpenedBackend opened, std::shared_ptr<Progress> log)
    : reservation_(std::move(opened.reservation)),
      backend_(std::move(opened.backend)),
      log_(std::move(log)),
      stop_tokens_(info().stop_tokens),
      steps_(
          LimitsOf(std::max(plan().prefill_rows, info().prefill_steps.front().rows)),
          [this](std::span<SessionStep> batch) { RunBatch(batch); }, BatchQueue::Patience()) {
  if (chat() != nullptr)
    stop_tokens_.insert(stop_tokens_.end(), chat()->stop_tokens().begin(),
                        chat()->stop_tokens().end());
  std::sort(stop_tokens_.begin(), stop_tokens_.end());
  step_rows_ = StepLimit().rows;
}

bool Model::IsStopToken(int32_t token) const {
  return std::binary_search(stop_tokens_.begin(), stop_tokens_.end(), token);
}

int64_t Model::BytesWithoutCache(int64_t session_bytes) const {
  const MemoryPlan& p = plan();
  return p.trunk_bytes + p.scratch_bytes + p.staging_bytes + session_bytes;
}

int64_t Model::charged_bytes() const {
  const std::lock_guard<std::mutex> lock(account_);
  return ChargedBytes();
}

int64_t Model::ChargedBytes() const {
  return BytesWithoutCache(session_bytes_) + StepLimit().more_bytes + CacheLimit();
}

PrefillStep Model::StepLimit() const {
  const int64_t rest = plan().budget_bytes - BytesWithoutCache(session_bytes_);
  return LongestStep(info().prefill_steps, std::min(rest, plan().prefill_bytes));
}

// Others would wait for as long as a whole step takes.
int64_t Model::StepRows(const Timeline& timeline) const {
  const int64_t most = step_rows_.load(std::memory_order_relaxed);
  return steps_.HasCompany(timeline) ? std::min(most, info().prefill_steps.front().rows) : most;
}

void Model::ShareOut() {
  const PrefillStep step = StepLimit();
  if (step.rows != step_rows_.exchange(step.rows, std::memory_order_relaxed)) {
    steps_.Limit(LimitsOf(step.rows));
    backend_->LimitPrefill(step);
  }
  backend_->LimitCache(CacheLimit());
}

int64_t Model::CacheLimit() const {
  const int64_t rest =
      plan().budget_bytes - BytesWithoutCache(session_bytes_) - StepLimit().more_bytes;
  return std::min(std::clamp(rest, int64_t{0}, plan().cache_bytes), pressure_bytes_);
}

Status Model::WatchPressure(const OpenOptions& options) {
  std::unique_ptr<MemoryPressure> pressure = options.pressure();
  if (pressure == nullptr) return Status();
  WASTE_ASSIGN(watcher_, PressureWatcher::Create(
                             std::move(pressure), plan().cache_bytes, options.pace,
                             [this](int64_t bytes) { return LimitUnderPressure(bytes); }));
  return Status();
}

// Waits for no step, which may take longer than the memory can be spared: what is leased is given
// back when its lease ends.
int64_t Model::LimitUnderPressure(int64_t bytes) {
  const std::lock_guard<std::mutex> lock(account_);
  pressure_bytes_ = bytes;
  backend_->LimitCache(CacheLimit());
  return CacheLimit();
}

void Model::ReserveCharged() {
  reservation_.Resize(std::max(ChargedBytes(), plan().allocated_bytes()));
}

Status Model::ChargeSession(int64_t bytes) {
  // No step may run while the cache gives slots back: they could be leased.
  const BatchQueue::Turn turn = steps_.Enter();
  const std::lock_guard<std::mutex> lock(account_);
  const int64_t wanted = session_bytes_ + bytes;
  if (const int64_t needed = BytesWithoutCache(wanted); needed > plan().limit_bytes)
    return Failure(Code::kRamBudget, "another session of ", bytes,
                   " bytes does not fit: ", session_bytes_,
                   " bytes of sessions are open and the budget is ", plan().limit_bytes,
                   "; close one, ask for a smaller context, or grant ", needed)
        .WithNeededBytes(needed);
  session_bytes_ = wanted;
  ShareOut();
  ReserveCharged();
  return Status();
}

void Model::ReleaseSession(int64_t bytes) {
  const BatchQueue::Turn turn = steps_.Enter();
  const std::lock_guard<std::mutex> lock(account_);
  session_bytes_ -= bytes;
  ShareOut();
  ReserveCharged();
}

Status Model::Step(Timeline& timeline, std::span<const int32_t> tokens, std::span<float> logits,
                   bool is_prompt, const std::function<bool()>& stop, ExpertCounters& used) {
  SessionStep step{.timeline = &timeline,
                   .tokens = tokens,
                   .logits = logits,
                   .is_prompt = is_prompt,
                   .stop = &stop};
  steps_.Step(step);
  used = step.used;
  return std::move(step.status);
}

void Model::RunBatch(std::span<SessionStep> batch) {
  const ExpertCounters before = backend_->counters();
  {
    const OnCpus on_cpus(info().cpus);  // who leads the batch is one of the team
    backend_->Step(batch);
  }
  const ExpertCounters used = backend_->counters() - before;
  int64_t rows = 0, begin = 0;
  for (const SessionStep& step : batch) rows += std::ssize(step.tokens);
  for (SessionStep& step : batch) {
    const int64_t end = begin + std::ssize(step.tokens);
    step.used = ShareOf(used, begin, end, rows);
    begin = end;
  }
  while (std::optional<std::string> notice = backend_->NextNotice()) log_->Log(*std::move(notice));
}

}  // namespace waste
