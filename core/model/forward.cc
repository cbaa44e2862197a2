// SPDX-License-Identifier: Apache-2.0
//
// The layer loop. The residual stream x [rows, hidden] runs through it; with AttnRes it is the sum
// since the last block began, and what layers see is a mix of it with the blocks (attn_res.h).

#include "model/forward.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "model/arena.h"
#include "model/attn_res.h"
#include "model/compute.h"
#include "model/ffn.h"
#include "model/kda.h"
#include "model/mla.h"
#include "model/moe.h"
#include "model/primitives.h"
#include "model/session_slice.h"

namespace waste {
namespace {

constexpr int64_t kRows = Forward::kMaxRows;

int64_t ResidualBlockCount(const ModelConfig& config) {
  return config.attn_res_block > 0 ? CeilDivide(config.layers, config.attn_res_block) : 0;
}

// What a piece of Project or of the head needs of a thread.
int64_t ProjectThreadBytes(const ModelConfig& config) {
  const MlaConfig& mla = config.mla;
  const int64_t columns =
      std::max({config.hidden, config.dense_inner, config.moe.inner * config.moe.shared_experts,
                config.moe.latent, config.kda.width(), config.kda.head_dim, mla.q_lora_rank,
                mla.heads * mla.v_dim});
  Arena arena;
  arena.Floats(RoundUp(columns, kTrunkGroup));
  arena.Floats(kRows * Compute::kBlock);
  return arena.peak_bytes();
}

struct ForwardScratch {
  float* x;       // [rows, hidden]: the residual stream
  float* input;   // [rows, hidden]: of a block, mixed and normed
  float* output;  // [rows, hidden]: of a block
  float* blocks;  // [residual blocks, rows, hidden]
  KdaScratch kda;
  MlaScratch mla;
  FfnScratch dense;
  MoeScratch moe;
  uint8_t* threads;  // [threads, thread_bytes]
  int64_t thread_bytes;

  static ForwardScratch Plan(Arena& arena, const ModelConfig& config, int64_t threads) {
    ForwardScratch s;
    for (float** rows : {&s.x, &s.input, &s.output}) *rows = arena.Floats(kRows * config.hidden);
    s.blocks = arena.Floats(ResidualBlockCount(config) * kRows * config.hidden);
    s.thread_bytes =
        RoundUp(std::max({ProjectThreadBytes(config), KdaScratch::ThreadBytes(config),
                          MlaScratch::ThreadBytes(config), FfnScratch::ThreadBytes(config, kRows),
                          MoeScratch::ThreadBytes(config, kRows)}),
                Arena::kAlignment);
    s.threads = arena.Bytes(threads * s.thread_bytes);
    // One block runs at a time: they share what is left.
    const int64_t mark = arena.mark();
    s.kda = KdaScratch::Plan(arena, config, kRows);
    arena.RewindTo(mark);
    s.mla = MlaScratch::Plan(arena, config, kRows);
    arena.RewindTo(mark);
    s.dense = FfnScratch::Plan(arena, config, kRows);
    arena.RewindTo(mark);
    s.moe = MoeScratch::Plan(arena, config, kRows);
    return s;
  }
};

}  // namespace

struct Forward::Impl {
  Impl(const ModelConfig& model_config, const Weights& model_weights, const Container& files,
       const Kernels& kernels, ThreadPool& pool, ExpertSource& experts, AlignedBuffer memory)
      : config(model_config),
        weights(model_weights),
        container(files),
        buffer(std::move(memory)),
        arena(buffer.data()),
        s(ForwardScratch::Plan(arena, config, pool.threads())),
        compute(kernels, pool, s.threads, s.thread_bytes),
        moe(compute, config, experts, s.moe) {
    slices.reserve(kRows);
  }

  Status Step(std::span<SessionRows> sessions, const std::function<bool()>& stop);
  void Slice(std::span<const SessionRows> sessions);
  Status Embed(std::span<const SessionRows> sessions);
  Status RunLayer(int64_t layer, const std::function<bool()>& stop);
  void NormInput(const float* res_query, const float* norm);
  void PrepareRow(int64_t row, const float* res_query, const float* norm, float* out) const;
  void Add();
  void Logits(std::span<const SessionRows> sessions);
  void ProjectHead(int64_t count, std::span<float* const> logits);

  Rows input() const { return {s.input, config.hidden, rows}; }

  const ModelConfig& config;
  const Weights& weights;
  const Container& container;
  AlignedBuffer buffer;
  Arena arena;
  ForwardScratch s;
  Compute compute;
  Moe moe;
  HiddenObserver observer;

  std::vector<SessionSlice> slices;  // of the step that runs
  int64_t rows = 0;                  // in it
  int64_t blocks = 0;                // residual blocks begun
};

int64_t Forward::ScratchBytes(const ModelConfig& config, int64_t /*max_context*/, int32_t threads) {
  // Attention sums online: nothing here grows with the context.
  Arena arena;
  ForwardScratch::Plan(arena, config, threads);
  return arena.peak_bytes();
}

Result<std::unique_ptr<Forward>> Forward::Create(const ModelConfig& config, const Weights& weights,
                                                 const Container& container, const Kernels& kernels,
                                                 ThreadPool& pool, ExpertSource& experts,
                                                 int64_t max_context) {
  WASTE_ASSIGN(AlignedBuffer memory,
               AlignedBuffer::Allocate(ScratchBytes(config, max_context, pool.threads())));
  auto impl =
      std::make_unique<Impl>(config, weights, container, kernels, pool, experts, std::move(memory));
  return std::unique_ptr<Forward>(new Forward(std::move(impl)));
}

Forward::Forward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Forward::~Forward() = default;

void Forward::set_hidden_observer(HiddenObserver observer) {
  impl_->observer = std::move(observer);
}

Status Forward::Step(std::span<SessionRows> sessions, const std::function<bool()>& stop) {
  return impl_->Step(sessions, stop);
}

Status Forward::Impl::Step(std::span<SessionRows> sessions, const std::function<bool()>& stop) {
  Slice(sessions);
  if (rows == 0) return Status();
  WASTE_TRY(Embed(sessions));
  blocks = 0;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    if (stop && stop()) return Failure(Code::kCancelled, "stopped before layer ", layer);
    WASTE_TRY(RunLayer(layer, stop));
    if (observer) observer(layer, {s.x, static_cast<size_t>(rows * config.hidden)});
  }
  Logits(sessions);
  for (SessionRows& session : sessions) {
    session.committed = session.stop == nullptr || !(*session.stop)();
    if (session.tokens.empty() || !session.committed) continue;
    session.state->Commit(std::ssize(session.tokens));
  }
  return Status();
}

// Sessions without tokens have no part in the step.
void Forward::Impl::Slice(std::span<const SessionRows> sessions) {
  slices.clear();
  rows = 0;
  for (const SessionRows& session : sessions) {
    const int64_t count = static_cast<int64_t>(session.tokens.size());
    const int64_t logits = static_cast<int64_t>(session.logits.size());
    WASTE_CHECK(logits % config.vocab == 0 && logits / config.vocab <= count);
    if (count == 0) continue;
    WASTE_CHECK(rows + count <= kRows);
    WASTE_CHECK(session.state->position() + count <= session.state->context());
    for (const SessionSlice& other : slices) WASTE_CHECK(other.state != session.state);
    slices.push_back({session.state, rows, count});
    rows += count;
  }
}

Status Forward::Impl::Embed(std::span<const SessionRows> sessions) {
  float* row = s.x;
  // No block runs yet, so its input is free: 64 rows of f32 hold one row of any format.
  const std::span<uint8_t> scratch(reinterpret_cast<uint8_t*>(s.input),
                                   static_cast<size_t>(kRows * config.hidden) * sizeof(float));
  for (const SessionRows& session : sessions) {
    for (const int32_t token : session.tokens) {
      WASTE_CHECK(token >= 0 && token < config.vocab);
      WASTE_TRY(container.ReadTrunkRow(*weights.embedding, token, scratch,
                                       {row, static_cast<size_t>(config.hidden)}));
      row += config.hidden;
    }
  }
  return Status();
}

Status Forward::Impl::RunLayer(int64_t layer, const std::function<bool()>& stop) {
  const LayerWeights& w = weights.layers[layer];
  const int64_t floats = rows * config.hidden;

  NormInput(w.attention_res_query, w.attention_norm);
  const bool begins_block = config.attn_res_block > 0 && layer % config.attn_res_block == 0;
  if (begins_block) std::copy_n(s.x, floats, s.blocks + blocks++ * kRows * config.hidden);
  if (config.attention[layer] == AttentionKind::kKda)
    RunKda(compute, config, w.kda, s.kda, layer, slices, input(), s.output);
  else
    RunMla(compute, config, w.mla, s.mla, layer, slices, input(), s.output);
  if (begins_block)
    std::copy_n(s.output, floats, s.x);  // the block holds what came before: the sum starts anew
  else
    Add();

  NormInput(w.ffn_res_query, w.ffn_norm);
  if (config.is_moe(layer)) {
    const bool next_has_experts = layer + 1 < config.layers && config.is_moe(layer + 1);
    const MoeWeights* next = next_has_experts ? &weights.layers[layer + 1].moe : nullptr;
    WASTE_TRY(moe.Run(layer, w.moe, next, input(), stop, s.output));
  } else {
    RunFfn(compute, config, w.dense, s.dense, input(), s.output);
  }
  Add();
  return Status();
}

// out = RMSNorm(x), of what AttnRes makes of x where there is a query.
void Forward::Impl::PrepareRow(int64_t row, const float* res_query, const float* norm,
                               float* out) const {
  const int64_t hidden = config.hidden;
  const float* x = s.x + row * hidden;
  if (res_query != nullptr) {
    const ResidualBlocks history{s.blocks + row * hidden, kRows * hidden, blocks};
    MixResiduals(compute.kernels, history, x, res_query, config.norm_eps, hidden, out);
    x = out;
  }
  RmsNorm(compute.kernels, x, norm, config.norm_eps, hidden, out);
}

void Forward::Impl::NormInput(const float* res_query, const float* norm) {
  const int64_t work = (2 + 3 * blocks) * config.hidden;
  compute.Parallel(rows, work, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      PrepareRow(row, res_query, norm, s.input + row * config.hidden);
  });
}

void Forward::Impl::Add() {
  for (int64_t i = 0; i < rows * config.hidden; ++i) s.x[i] += s.output[i];
}

// Of the last rows of each session, as many as its span has room for.
void Forward::Impl::Logits(std::span<const SessionRows> sessions) {
  std::array<int64_t, kRows> of_row;
  std::array<float*, kRows> to;
  int64_t count = 0, end = 0;
  for (const SessionRows& session : sessions) {
    end += static_cast<int64_t>(session.tokens.size());
    const int64_t n = static_cast<int64_t>(session.logits.size()) / config.vocab;
    for (int64_t i = 0; i < n; ++i) {
      of_row[count] = end - n + i;
      to[count++] = session.logits.data() + i * config.vocab;
    }
  }
  if (count == 0) return;
  compute.Parallel(count, (2 + 3 * blocks) * config.hidden, [&](int64_t begin, int64_t last) {
    for (int64_t i = begin; i < last; ++i)
      PrepareRow(of_row[i], weights.final_res_query, weights.final_norm,
                 s.input + i * config.hidden);
  });
  ProjectHead(count, {to.data(), static_cast<size_t>(count)});
}

// The rows' logits lie in as many places: a piece is projected aside and then copied out.
void Forward::Impl::ProjectHead(int64_t count, std::span<float* const> logits) {
  const int64_t work = config.hidden * count;
  const int64_t grain =
      RoundUp(std::clamp<int64_t>(Compute::kPieceWork / work, 4, Compute::kBlock), 4);
  compute.Run(config.vocab, grain, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute);
    Arena pieces(thread.memory());
    float* kernel_scratch = pieces.Floats(RoundUp(config.hidden, kTrunkGroup));
    float* y = pieces.Floats(count * Compute::kBlock);  // [rows, kBlock]
    for (int64_t r = begin; r < end; r += Compute::kBlock) {
      const int64_t n = std::min(end - r, Compute::kBlock);
      compute.kernels.trunk_rows(RowsOf(weights.head, r, r + n), 0, n, s.input, config.hidden,
                                 count, y, Compute::kBlock, kernel_scratch);
      for (int64_t i = 0; i < count; ++i) std::copy_n(y + i * Compute::kBlock, n, logits[i] + r);
    }
  });
}

}  // namespace waste
