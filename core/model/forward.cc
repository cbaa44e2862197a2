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

constexpr int64_t kLogitRows = Compute::kSplitRows;  // whose logits are made together

int64_t ResidualBlockCount(const ModelConfig& config) {
  return config.attn_res_block > 0 ? CeilDivide(config.layers, config.attn_res_block) : 0;
}

// Of a matrix of the trunk.
int64_t MostColumns(const ModelConfig& config) {
  const MlaConfig& mla = config.mla;
  return std::max({config.hidden, config.dense_inner, config.moe.inner * config.moe.shared_experts,
                   config.moe.latent, config.kda.width(), config.kda.head_dim, mla.q_lora_rank,
                   mla.heads * mla.v_dim});
}

// What a piece of Project or of the head needs of a thread.
int64_t ProjectThreadBytes(const ModelConfig& config) {
  Arena arena;
  arena.Floats(RowsScratch(MostColumns(config)));
  arena.Floats(kLogitRows * Compute::kBlock);
  return arena.peak_bytes();
}

struct ForwardPlan {
  ExpertPlan experts;
  bool integers;  // inputs of the trunk in those
  int64_t rows;   // most of a step
  int64_t threads;

  ForwardPlan(const ExpertCodec& codec, const Kernels& kernels, int32_t thread_count,
              const ForwardOptions& options)
      : experts{codec, options.fast && kernels.table_rows != nullptr,
                options.fast && kernels.expert_words != nullptr},
        integers(options.fast && kernels.split_rows != nullptr && kernels.trunk_words != nullptr),
        rows(options.max_rows + Forward::kMaxWritten),
        threads(thread_count) {}
  int64_t tile_rows() const { return std::min(rows, kTileRows); }
};

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
  uint8_t* integers = nullptr;  // of rows, as long as the widest projection

  static ForwardScratch Plan(Arena& arena, const ModelConfig& config, const ForwardPlan& plan) {
    ForwardScratch s;
    const int64_t floats = plan.rows * config.hidden;
    for (float** rows : {&s.x, &s.input, &s.output}) *rows = arena.Floats(floats);
    s.blocks = arena.Floats(ResidualBlockCount(config) * floats);
    s.thread_bytes = RoundUp(std::max({ProjectThreadBytes(config), KdaScratch::ThreadBytes(config),
                                       MlaScratch::ThreadBytes(config, Forward::kMaxWritten),
                                       FfnScratch::ThreadBytes(config),
                                       MoeScratch::ThreadBytes(config, plan.experts, plan.rows)}),
                             Arena::kAlignment);
    s.threads = arena.Bytes(plan.threads * s.thread_bytes);
    if (plan.integers) s.integers = arena.Bytes(Compute::IntegerBytes(MostColumns(config)));
    // One block runs at a time: they share what is left.
    const int64_t mark = arena.mark();
    s.kda = KdaScratch::Plan(arena, config, plan.tile_rows());
    arena.RewindTo(mark);
    s.mla = MlaScratch::Plan(arena, config, plan.tile_rows(), Forward::kMaxWritten);
    arena.RewindTo(mark);
    s.dense = FfnScratch::Plan(arena, config, plan.rows);
    arena.RewindTo(mark);
    s.moe = MoeScratch::Plan(arena, config, plan.experts, plan.rows);
    return s;
  }
};

// Rows of a step that attention works on together.
struct Tile {
  int64_t begin, rows;
  int64_t first_slice, slices;
  bool is_written;  // all of them, or none
};

}  // namespace

struct Forward::Impl {
  Impl(const ModelConfig& model_config, const Weights& model_weights, const Container& files,
       const Kernels& kernels, ThreadPool& pool, ExpertSource& experts, const ForwardPlan& shape,
       AlignedBuffer memory)
      : config(model_config),
        weights(model_weights),
        container(files),
        plan(shape),
        buffer(std::move(memory)),
        arena(buffer.data()),
        s(ForwardScratch::Plan(arena, config, plan)),
        compute(kernels, pool, s.threads, s.thread_bytes, s.integers),
        moe(compute, config, plan.experts, experts, s.moe) {
    order.reserve(static_cast<size_t>(plan.rows));
    slices.reserve(static_cast<size_t>(2 * plan.rows));
    tiles.reserve(static_cast<size_t>(plan.rows));
  }

  Status Step(std::span<SessionRows> sessions, const std::function<bool()>& stop);
  void Arrange(std::span<SessionRows> sessions);
  void Slice(const SessionRows& session);
  Status Embed();
  Status RunLayer(int64_t layer, const std::function<bool()>& stop);
  void RunAttention(int64_t layer, const Tile& tile, int64_t blocks_before);
  // `history` is how many residual blocks the mix is of.
  void NormInput(int64_t begin, int64_t end, int64_t history, const float* res_query,
                 const float* norm);
  void PrepareRow(int64_t row, int64_t history, const float* res_query, const float* norm,
                  float* out) const;
  void Add(int64_t begin, int64_t end);
  void Logits();
  void ProjectRows(std::span<const int64_t> of_row, std::span<float* const> logits);
  void ProjectHead(Rows x, std::span<float* const> logits);

  const ModelConfig& config;
  const Weights& weights;
  const Container& container;
  const ForwardPlan plan;
  AlignedBuffer buffer;
  Arena arena;
  ForwardScratch s;
  Compute compute;
  Moe moe;
  HiddenObserver observer;

  // Of the step that runs.
  std::vector<SessionRows*> order;   // prompts first
  std::vector<SessionSlice> slices;  // tile by tile
  std::vector<Tile> tiles;
  int64_t rows = 0;
  int64_t prompt_rows = 0;
  int64_t blocks = 0;  // residual blocks begun
};

int64_t Forward::ScratchBytes(const ModelConfig& config, const ExpertCodec& codec,
                              const Kernels& kernels, int32_t threads,
                              const ForwardOptions& options) {
  Arena arena;
  ForwardScratch::Plan(arena, config, ForwardPlan(codec, kernels, threads, options));
  return arena.peak_bytes();
}

Result<std::unique_ptr<Forward>> Forward::Create(const ModelConfig& config, const Weights& weights,
                                                 const Container& container, const Kernels& kernels,
                                                 ThreadPool& pool, ExpertSource& experts,
                                                 const ForwardOptions& options) {
  const ExpertCodec& codec = container.manifest().codec;
  WASTE_ASSIGN(AlignedBuffer memory, AlignedBuffer::AllocateHuge(ScratchBytes(
                                         config, codec, kernels, pool.threads(), options)));
  auto impl = std::make_unique<Impl>(config, weights, container, kernels, pool, experts,
                                     ForwardPlan(codec, kernels, pool.threads(), options),
                                     std::move(memory));
  return std::unique_ptr<Forward>(new Forward(std::move(impl)));
}

Forward::Forward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Forward::~Forward() = default;

std::span<uint8_t> Forward::scratch() { return impl_->buffer.bytes(); }

void Forward::set_hidden_observer(HiddenObserver observer) {
  impl_->observer = std::move(observer);
}

Status Forward::Step(std::span<SessionRows> sessions, const std::function<bool()>& stop) {
  return impl_->Step(sessions, stop);
}

Status Forward::Impl::Step(std::span<SessionRows> sessions, const std::function<bool()>& stop) {
  Arrange(sessions);
  if (rows == 0) return Status();
  WASTE_TRY(Embed());
  blocks = 0;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    WASTE_TRY(RunLayer(layer, stop));
    if (observer) observer(layer, {s.x, static_cast<size_t>(rows * config.hidden)});
  }
  Logits();
  for (SessionRows* session : order) {
    session->committed = session->stop == nullptr || !(*session->stop)();
    if (session->committed) session->state->Commit(std::ssize(session->tokens));
  }
  return Status();
}

// The step's rows: prompts first, then tokens that are being written. Sessions without tokens have
// no part in it.
void Forward::Impl::Arrange(std::span<SessionRows> sessions) {
  order.clear();
  slices.clear();
  tiles.clear();
  rows = prompt_rows = 0;
  for (const bool prompts : {true, false}) {
    for (SessionRows& session : sessions) {
      if (session.tokens.empty() || session.is_prompt != prompts) continue;
      for (const SessionRows* other : order) WASTE_CHECK(other->state != session.state);
      order.push_back(&session);
      Slice(session);
    }
    if (prompts) prompt_rows = rows;
  }
  WASTE_CHECK(rows <= plan.rows && rows - prompt_rows <= kMaxWritten);
}

// A session's rows as parts of tiles. Parts end at multiples of kTileRows of the text, so that a
// step may be cut anywhere there.
void Forward::Impl::Slice(const SessionRows& session) {
  const int64_t count = std::ssize(session.tokens), start = session.state->position();
  const int64_t logits = std::ssize(session.logits);
  WASTE_CHECK(logits % config.vocab == 0 && logits / config.vocab <= count);
  WASTE_CHECK(start + count <= session.state->context());
  for (int64_t done = 0; done < count;) {
    const int64_t part =
        std::min({count - done, kTileRows - (start + done) % kTileRows, plan.tile_rows()});
    if (tiles.empty() || tiles.back().rows + part > plan.tile_rows() ||
        tiles.back().is_written == session.is_prompt)
      tiles.push_back({rows, 0, std::ssize(slices), 0, !session.is_prompt});
    Tile& tile = tiles.back();
    slices.push_back({session.state, tile.rows, part, done, session.is_prompt});
    ++tile.slices;
    tile.rows += part;
    rows += part;
    done += part;
  }
}

Status Forward::Impl::Embed() {
  float* row = s.x;
  // No block runs yet, so its input is free: rows of f32 hold one row of any format.
  const std::span<uint8_t> scratch(reinterpret_cast<uint8_t*>(s.input),
                                   static_cast<size_t>(plan.rows * config.hidden) * sizeof(float));
  for (const SessionRows* session : order) {
    for (const int32_t token : session->tokens) {
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
  const int64_t blocks_before = blocks;
  if (config.attn_res_block > 0 && layer % config.attn_res_block == 0) ++blocks;
  for (const Tile& tile : tiles) {
    if (stop && stop()) return Failure(Code::kCancelled, "stopped in layer ", layer);
    RunAttention(layer, tile, blocks_before);
  }

  NormInput(0, rows, blocks, w.ffn_res_query, w.ffn_norm);
  const Rows input{s.input, config.hidden, rows, prompt_rows};
  if (config.is_moe(layer)) {
    const bool next_has_experts = layer + 1 < config.layers && config.is_moe(layer + 1);
    const MoeWeights* next = next_has_experts ? &weights.layers[layer + 1].moe : nullptr;
    WASTE_TRY(moe.Run(layer, w.moe, next, input, stop, s.output));
  } else {
    RunFfn(compute, config, w.dense, s.dense, input, s.output);
  }
  Add(0, rows);
  return Status();
}

// x += attention of the tile's rows. Where a residual block begins, it holds what came before, and
// the sum starts anew.
void Forward::Impl::RunAttention(int64_t layer, const Tile& tile, int64_t blocks_before) {
  const LayerWeights& w = weights.layers[layer];
  const bool begins_block = blocks > blocks_before;
  const int64_t at = tile.begin * config.hidden, floats = tile.rows * config.hidden;
  NormInput(tile.begin, tile.begin + tile.rows, blocks_before, w.attention_res_query,
            w.attention_norm);
  if (begins_block)
    std::copy_n(s.x + at, floats, s.blocks + blocks_before * plan.rows * config.hidden + at);

  const Rows input{s.input + at, config.hidden, tile.rows, tile.is_written ? 0 : tile.rows};
  const auto of_tile = std::span(slices).subspan(static_cast<size_t>(tile.first_slice),
                                                 static_cast<size_t>(tile.slices));
  if (config.attention[layer] == AttentionKind::kKda)
    RunKda(compute, config, w.kda, s.kda, layer, of_tile, input, s.output + at);
  else
    RunMla(compute, config, w.mla, s.mla, layer, of_tile, input, s.output + at);
  if (begins_block)
    std::copy_n(s.output + at, floats, s.x + at);
  else
    Add(tile.begin, tile.begin + tile.rows);
}

// out = RMSNorm(x), of what AttnRes makes of x where there is a query.
void Forward::Impl::PrepareRow(int64_t row, int64_t history, const float* res_query,
                               const float* norm, float* out) const {
  const int64_t hidden = config.hidden;
  const float* x = s.x + row * hidden;
  if (res_query != nullptr) {
    const ResidualBlocks held{s.blocks + row * hidden, plan.rows * hidden, history};
    MixResiduals(compute.kernels, held, x, res_query, config.norm_eps, hidden, out);
    x = out;
  }
  RmsNorm(compute.kernels, x, norm, config.norm_eps, hidden, out);
}

void Forward::Impl::NormInput(int64_t begin, int64_t end, int64_t history, const float* res_query,
                              const float* norm) {
  const int64_t work = (2 + 3 * history) * config.hidden;
  compute.Parallel(end - begin, work, [&](int64_t first, int64_t last) {
    for (int64_t row = begin + first; row < begin + last; ++row)
      PrepareRow(row, history, res_query, norm, s.input + row * config.hidden);
  });
}

void Forward::Impl::Add(int64_t begin, int64_t end) {
  const int64_t hidden = config.hidden;
  compute.Parallel(end - begin, hidden, [&](int64_t first, int64_t last) {
    const int64_t at = (begin + first) * hidden;
    compute.kernels.axpy(1.0f, s.output + at, s.x + at, (last - first) * hidden);
  });
}

// Of the last rows of each session, as many as its span has room for.
void Forward::Impl::Logits() {
  std::array<int64_t, kLogitRows> of_row;
  std::array<float*, kLogitRows> to;
  size_t count = 0;
  int64_t end = 0;
  const auto flush = [&] {
    if (count > 0) ProjectRows(std::span(of_row).first(count), std::span(to).first(count));
    count = 0;
  };
  for (const SessionRows* session : order) {
    end += std::ssize(session->tokens);
    const int64_t n = std::ssize(session->logits) / config.vocab;
    for (int64_t i = 0; i < n; ++i) {
      if (count == of_row.size()) flush();
      of_row[count] = end - n + i;
      to[count++] = session->logits.data() + i * config.vocab;
    }
  }
  flush();
}

void Forward::Impl::ProjectRows(std::span<const int64_t> of_row, std::span<float* const> logits) {
  const int64_t count = std::ssize(of_row);
  compute.Parallel(count, (2 + 3 * blocks) * config.hidden, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      PrepareRow(of_row[static_cast<size_t>(i)], blocks, weights.final_res_query,
                 weights.final_norm, s.input + i * config.hidden);
  });
  ProjectHead({s.input, config.hidden, count, 0}, logits);
}

// The rows' logits lie in as many places: a piece is projected aside and then copied out.
void Forward::Impl::ProjectHead(Rows x, std::span<float* const> logits) {
  const int64_t count = x.count;
  const RowIntegers integers = compute.Integers(x, config.hidden);
  const int64_t grain = std::min(compute.RowGrain(config.hidden * count, x), Compute::kBlock);
  compute.Run(config.vocab, grain, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute);
    Arena pieces(thread.memory());
    float* kernel_scratch = pieces.Floats(RowsScratch(config.hidden));
    float* y = pieces.Floats(count * Compute::kBlock);  // [rows, kBlock]
    for (int64_t r = begin; r < end; r += Compute::kBlock) {
      const int64_t n = std::min(end - r, Compute::kBlock);
      compute.Multiply(RowsOf(weights.head, r, r + n), 0, n, x, integers, y, Compute::kBlock,
                       kernel_scratch);
      for (int64_t i = 0; i < count; ++i) std::copy_n(y + i * Compute::kBlock, n, logits[i] + r);
    }
  });
}

}  // namespace waste
