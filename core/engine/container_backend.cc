// SPDX-License-Identifier: Apache-2.0

#include "engine/container_backend.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "container/verify.h"
#include "engine/expert_streamer.h"
#include "engine/memory_grant.h"
#include "kernels/kernels.h"
#include "model/forward.h"
#include "model/state.h"
#include "model/weights.h"
#include "os/cpu_affinity.h"
#include "os/system.h"
#include "parallel/thread_pool.h"

namespace waste {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 24;

Status CheckOptions(const OpenOptions& options) {
  if (options.context < 0 || options.context > kMaxContext)
    return Failure(Code::kArgument, "context is ", options.context, "; it may be 0 to ",
                   kMaxContext);
  if (options.lanes < 0 || options.lanes > ExpertReader::kMaxLanes)
    return Failure(Code::kArgument, "read_lanes is ", options.lanes, "; it may be 0 to ",
                   ExpertReader::kMaxLanes);
  if (options.budget_bytes < 0)
    return Failure(Code::kArgument, "budget is ", options.budget_bytes, " bytes");
  return Status();
}

Result<int64_t> ChooseContext(const ModelConfig& config, int64_t asked) {
  const int64_t most = config.max_context > 0 ? config.max_context : kMaxContext;
  if (asked > most)
    return Failure(Code::kArgument, "context is ", asked, "; this model holds at most ", most);
  return asked > 0 ? asked : std::min(most, OpenOptions::kDefaultContext);
}

// Steps of 256, 512, ... rows, as long as a session could fill one.
void AddPrefillSteps(const PreparedContainer& prepared, const OpenOptions& options,
                     ModelSizes& sizes) {
  int64_t rows = Forward::kLeastRows;
  for (PrefillStep& step : sizes.prefill_steps) {
    const bool is_least = rows == Forward::kLeastRows;
    if (rows > Forward::kMostRows || (!is_least && rows / 2 >= prepared.context)) break;
    const int64_t bytes = Forward::ScratchBytes(
        prepared.config, prepared.container->manifest().codec, *prepared.kernels,
        prepared.team.threads, {.max_rows = rows, .fast = !options.exact});
    if (is_least) sizes.scratch_bytes = bytes;
    step = {rows, bytes - sizes.scratch_bytes};
    rows *= 2;
  }
}

ModelSizes SizesOf(const PreparedContainer& prepared, const OpenOptions& options,
                   int64_t weight_bytes) {
  const Container& container = *prepared.container;
  const ModelConfig& config = prepared.config;
  ModelSizes sizes;
  sizes.trunk_bytes = weight_bytes + container.codebook_bytes();
  sizes.state_bytes = SessionState::Bytes(config, prepared.context);
  sizes.record_bytes = container.record_bytes();
  sizes.top_k = config.moe.top_k;
  sizes.ahead = ExpertsAhead(config.moe.top_k, options);
  for (const auto& [layer, entry] : container.manifest().layers) {
    ++sizes.moe_layers;
    sizes.expert_total += entry.experts;
  }
  AddPrefillSteps(prepared, options, sizes);
  return sizes;
}

// Two a weight that a token is multiplied with: every matrix but the embedding, and its experts.
int64_t TokenFlops(const Container& container, const ModelConfig& config) {
  int64_t weights = 0;
  for (const TrunkEntry& entry : container.manifest().trunk) {
    if (entry.shape.size() != 2 || entry.name.ends_with("embed_tokens.weight")) continue;
    weights += entry.shape[0] * entry.shape[1];
  }
  const int64_t layers = std::ssize(container.manifest().layers);
  return 2 * (weights + layers * config.moe.top_k * 3 * config.moe.inner * config.expert_outer());
}

// FNV-1a over the manifest: its trunk index, shapes and config. Equal for equal conversions only.
uint64_t IdentityOf(const Manifest& manifest) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : PrintManifest(manifest))
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

// A budget that cannot hold the floor is refused before anything is read.
Status CheckPlan(const MemoryPlan& plan, int64_t asked) {
  if (plan.fits) return Status();
  if (asked == 0)
    return Failure(Code::kRamBudget, "this model needs at least ", plan.floor_bytes,
                   " bytes of RAM, and this process may use ", plan.usable_bytes,
                   " (other models have ", plan.reserved_bytes,
                   " reserved); ask for a smaller context, or free memory")
        .WithNeededBytes(plan.floor_bytes);
  return Failure(Code::kRamBudget, "a budget of ", asked, " bytes is below the floor of ",
                 plan.floor_bytes, " bytes (trunk ", plan.trunk_bytes, ", state ", plan.state_bytes,
                 ", scratch ", plan.scratch_bytes, ", staging ", plan.staging_bytes,
                 "); grant at least the floor, or ask for a smaller context")
      .WithNeededBytes(plan.floor_bytes);
}

void PassNoticesOn(const Container& container, Progress& progress) {
  while (std::optional<std::string> notice = container.NextNotice())
    progress.Log(*std::move(notice));
}

// What of a container is text: its tokenizer, and its chat format if it has one.
struct TextParts {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatFormat> chat;  // points into the tokenizer
};

Result<TextParts> LoadText(const Container& container, const ModelConfig& config) {
  const std::string rank_path = JoinPath(container.folder(), "tokenizer.model");
  if (container.rank_file().empty())
    return Failure(Code::kIo, rank_path, ": the file is missing or empty; copy it again");
  std::vector<std::pair<int32_t, std::string>> specials;
  for (const SpecialToken& special : container.specials())
    specials.emplace_back(special.id, special.text);
  TextParts text;
  WASTE_ASSIGN(text.tokenizer, Tokenizer::Create(container.rank_file(), specials, rank_path));
  if (text.tokenizer->max_id() >= config.vocab)
    return Failure(Code::kCorrupt, container.folder(), ": the tokenizer has token ",
                   text.tokenizer->max_id(), ", the model a vocabulary of ", config.vocab);
  if (config.chat == ChatKind::kK3) {
    auto chat = MakeK3Format(*text.tokenizer);
    if (!chat.ok())
      return Failure(chat.status().code(), JoinPath(container.folder(), "specials.json"), ": ",
                     chat.status().message());
    text.chat = *std::move(chat);
  } else if (config.chat == ChatKind::kTable) {
    WASTE_ASSIGN(text.chat, MakeTableFormat(*text.tokenizer, *container.chat(),
                                            JoinPath(container.folder(), "chat.json")));
  }
  return text;
}

class StateTimeline : public Timeline {
 public:
  explicit StateTimeline(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}

  int64_t position() const override { return state_->position(); }
  void RewindTo(int64_t position) override { state_->RewindTo(position); }
  void CopyFrom(const Timeline& other) override {
    state_->CopyFrom(*static_cast<const StateTimeline&>(other).state_);
  }
  int64_t SavedBytes() const override { return state_->SavedBytes(); }
  void SaveTo(std::span<uint8_t> out) const override { state_->SaveTo(out); }
  Status LoadFrom(std::span<const uint8_t> bytes, int64_t position) override {
    return state_->LoadFrom(bytes, position);
  }

  SessionState& state() { return *state_; }

 private:
  std::unique_ptr<SessionState> state_;
};

// For a model whose layers are all dense: never asked for anything.
class NoExperts : public ExpertSource {
 public:
  int64_t max_experts() const override { return 0; }
  Status Fetch(int32_t layer, std::span<const int32_t>, const std::function<bool()>&,
               const Use&) override {
    return Failure(Code::kCorrupt, "layer ", layer, " asks for experts, and the model has none");
  }
};

static_assert(Backend::kMaxWritten == Forward::kMaxWritten);

class ContainerBackend : public Backend {
 public:
  ContainerBackend(PreparedContainer prepared, const MemoryPlan& plan)
      : prepared_(std::move(prepared)), plan_(plan) {
    rows_.reserve(static_cast<size_t>(plan_.prefill_rows + kMaxWritten));
  }

  Status Load(const OpenOptions& options, Progress& progress);

  const BackendInfo& info() const override { return info_; }
  const MemoryPlan& plan() const override { return plan_; }
  const Tokenizer& tokenizer() const override { return *text_.tokenizer; }
  const ChatFormat* chat() const override { return text_.chat.get(); }

  int64_t TimelineBytes(int64_t context) const override {
    return SessionState::Bytes(config(), context);
  }
  Result<std::unique_ptr<Timeline>> NewTimeline(int64_t context) override {
    WASTE_ASSIGN(auto state, SessionState::Create(config(), context));
    return std::unique_ptr<Timeline>(std::make_unique<StateTimeline>(std::move(state)));
  }

  void Step(std::span<SessionStep> sessions) override;

  ExpertCounters counters() const override {
    return streamer_ == nullptr ? ExpertCounters() : streamer_->counters();
  }

  std::optional<std::string> NextNotice() override { return container().NextNotice(); }

  void LimitPrefill(const PrefillStep& step) override {
    if (step.rows < plan().prefill_rows) DiscardPages(forward_->scratch());
  }
  void LimitCache(int64_t bytes) override {
    if (streamer_ != nullptr) streamer_->LimitCache(bytes);
  }

 private:
  const Container& container() const { return *prepared_.container; }
  const ModelConfig& config() const { return prepared_.config; }

  Status LoadWeights(Progress& progress);
  void FillInfo();

  // In order of use: what comes later points into what came before.
  PreparedContainer prepared_;
  const MemoryPlan plan_;
  BackendInfo info_;
  TextParts text_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<ExpertStreamer> streamer_;  // null for a model without experts
  NoExperts no_experts_;
  std::unique_ptr<Forward> forward_;
  std::vector<SessionRows> rows_;  // of the step that runs
};

void ContainerBackend::Step(std::span<SessionStep> sessions) {
  rows_.clear();
  for (const SessionStep& one : sessions)
    rows_.push_back({.state = &static_cast<StateTimeline*>(one.timeline)->state(),
                     .tokens = one.tokens,
                     .logits = one.logits,
                     .is_prompt = one.is_prompt,
                     .stop = one.stop != nullptr && *one.stop ? one.stop : nullptr});
  const auto all_stopped = [&sessions] {
    return std::ranges::all_of(sessions, [](const SessionStep& one) { return one.stopped(); });
  };
  const Status status = forward_->Step(rows_, all_stopped);
  for (size_t i = 0; i < sessions.size(); ++i) {
    const bool left_out = status.ok() && !rows_[i].committed;
    sessions[i].status =
        left_out ? Status(Code::kCancelled, "cancelled while its step ran") : status;
  }
}

void ContainerBackend::FillInfo() {
  info_.name = container().manifest().arch;
  info_.vocab = config().vocab;
  info_.layers = config().layers;
  info_.hidden = config().hidden;
  info_.experts = config().moe.experts;
  info_.top_k = config().moe.top_k;
  info_.expert_bytes = container().record_bytes();
  info_.container_bytes = container().total_bytes();
  info_.token_trunk_bytes = plan().trunk_bytes - container().codebook_bytes();
  info_.token_flops = TokenFlops(container(), config());
  info_.context = prepared_.context;
  info_.threads = prepared_.team.threads;
  info_.cpus = prepared_.team.cpus;
  info_.isa = prepared_.kernels->isa;
  info_.prefill_steps = prepared_.sizes.prefill_steps;
  info_.direct_io = container().direct_io();
  info_.lanes = streamer_ == nullptr ? 0 : streamer_->lanes();
  info_.identity = IdentityOf(container().manifest());
  info_.stop_tokens = config().eos;
  for (const char* text : {"[EOS]", "<|end_of_msg|>"})
    if (const int32_t id = text_.tokenizer->FindSpecial(text); id >= 0)
      info_.stop_tokens.push_back(id);
}

// The caller works too, but the threads that are started later must not inherit its place.
Status ContainerBackend::LoadWeights(Progress& progress) {
  const OnCpus on_cpus(prepared_.team.cpus);
  WASTE_ASSIGN(weights_, Weights::Load(container(), config(), progress, pool_.get()));
  return Status();
}

Status ContainerBackend::Load(const OpenOptions& options, Progress& progress) {
  WASTE_ASSIGN(text_, LoadText(container(), config()));
  WASTE_ASSIGN(pool_, ThreadPool::Create(prepared_.team.threads, prepared_.team.cpus));
  WASTE_TRY(LoadWeights(progress));
  if (plan().slot_count > 0) {
    WASTE_ASSIGN(streamer_, ExpertStreamer::Create(container(), plan(), config().moe.top_k, options,
                                                   progress));
  }
  ExpertSource& experts = streamer_ ? streamer_->source() : no_experts_;
  WASTE_ASSIGN(forward_,
               Forward::Create(config(), *weights_, container(), *prepared_.kernels, *pool_,
                               experts, {.max_rows = plan().prefill_rows, .fast = !options.exact}));
  FillInfo();
  PassNoticesOn(container(), progress);
  return Status();
}

}  // namespace

Result<PreparedContainer> PrepareContainer(const std::string& path, const OpenOptions& options) {
  WASTE_TRY(CheckOptions(options));
  PreparedContainer prepared;
  WASTE_ASSIGN(prepared.team, ChooseTeam(options));
  WASTE_ASSIGN(prepared.container, Container::Open(path, options.io, options.open_file));
  WASTE_ASSIGN(prepared.config, ParseModelConfig(prepared.container->manifest(),
                                                 prepared.container->chat().has_value()));
  const ModelConfig& config = prepared.config;
  WASTE_TRY(prepared.container->SetExpertDims({config.moe.inner, config.expert_outer()}));
  WASTE_ASSIGN(prepared.context, ChooseContext(config, options.context));
  WASTE_ASSIGN(const int64_t weight_bytes, Weights::Measure(*prepared.container, config));
  WASTE_ASSIGN(prepared.kernels, KernelsFor(options.isa));
  prepared.sizes = SizesOf(prepared, options, weight_bytes);
  return prepared;
}

Status VerifyModel(const std::string& path, Progress& progress) {
  WASTE_ASSIGN(const PreparedContainer prepared, PrepareContainer(path, {.io = IoMode::kBuffered}));
  WASTE_ASSIGN(const TextParts text, LoadText(*prepared.container, prepared.config));
  PassNoticesOn(*prepared.container, progress);
  return VerifyContainer(*prepared.container, progress);
}

Result<OpenedBackend> OpenContainerBackend(const std::string& path, const OpenOptions& options,
                                           Progress& progress) {
  WASTE_ASSIGN(PreparedContainer prepared, PrepareContainer(path, options));
  MemoryGrant grant = GrantMemory(prepared.sizes, options.budget_bytes, progress);
  WASTE_TRY(CheckPlan(grant.plan, options.budget_bytes));
  auto backend = std::make_unique<ContainerBackend>(std::move(prepared), grant.plan);
  WASTE_TRY(backend->Load(options, progress));
  return OpenedBackend{std::move(grant.reservation), std::move(backend)};
}

}  // namespace waste
