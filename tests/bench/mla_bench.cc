// SPDX-License-Identifier: Apache-2.0
//
// One MLA layer of Kimi-Linear 48B for one written token, as the model runs it: RunMla on a team of
// threads, with its projections (Q4G) and a latent cache of so many positions. The model's seven
// layers take turns, so that neither weights nor latents are in caches.

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bench_case.h"
#include "model/mla.h"
#include "parallel/thread_pool.h"

namespace waste {
namespace {

constexpr int64_t kLayers = 7;

ModelConfig MlaModel() {
  ModelConfig config;
  config.layers = kLayers;
  config.hidden = kHidden;
  config.attention.assign(kLayers, AttentionKind::kMla);
  config.mla = {.heads = 32, .kv_lora_rank = 512, .nope_dim = 128, .rope_dim = 64, .v_dim = 128};
  return config;
}

// A Q4G matrix by chance, of its own memory.
class RandomMatrix {
 public:
  RandomMatrix(int64_t rows, int64_t columns)
      : payload_(RandomBytes(rows * TrunkRowBytes(TrunkFormat::kQ4G, columns))),
        scales_(Scales(rows * TrunkRowGroups(columns))),
        matrix_{TrunkFormat::kQ4G, rows, columns, payload_.data(), scales_.data()} {}

  const TrunkMatrix& get() const { return matrix_; }
  int64_t bytes() const {
    return matrix_.rows *
           (TrunkRowBytes(matrix_.format, matrix_.columns) + 2 * TrunkRowGroups(matrix_.columns));
  }

 private:
  AlignedBuffer payload_, scales_;
  TrunkMatrix matrix_;
};

class MlaLayer {
 public:
  explicit MlaLayer(const ModelConfig& config)
      : q_(config.mla.heads * (config.mla.nope_dim + config.mla.rope_dim), config.hidden),
        kv_(config.mla.cache_width(), config.hidden),
        key_(config.mla.heads * config.mla.nope_dim, config.mla.kv_lora_rank),
        value_(config.mla.heads * config.mla.v_dim, config.mla.kv_lora_rank),
        out_(config.hidden, config.mla.heads * config.mla.v_dim),
        norm_(static_cast<size_t>(config.mla.kv_lora_rank), 1.0f) {}

  MlaWeights weights() const {
    MlaWeights w = {};
    w.q = q_.get();
    w.kv_a = kv_.get();
    w.key = key_.get();
    w.value = value_.get();
    w.out = out_.get();
    w.kv_norm = norm_.data();
    return w;
  }

  int64_t bytes() const {
    return q_.bytes() + kv_.bytes() + key_.bytes() + value_.bytes() + out_.bytes();
  }

 private:
  RandomMatrix q_, kv_, key_, value_, out_;
  std::vector<float> norm_;
};

// A session that holds `positions` less the one to come, and what a step computes with.
class MlaRig {
 public:
  MlaRig(int32_t threads, int64_t positions)
      : config_(MlaModel()),
        pool_(*ThreadPool::Create(threads)),
        state_(*SessionState::Create(config_, positions)),
        thread_bytes_(std::max(MlaScratch::ThreadBytes(config_, 1), 4 * RowsScratch(Widest()))),
        threads_memory_(*AlignedBuffer::AllocateHuge(threads * thread_bytes_)),
        integers_(*AlignedBuffer::AllocateHuge(Compute::IntegerBytes(Widest()))),
        x_(RandomFloats(config_.hidden)),
        out_(RandomFloats(config_.hidden)),
        compute_(*kernels, *pool_, threads_memory_.data(), thread_bytes_,
                 kernels->split_rows != nullptr ? integers_.data() : nullptr) {
    Arena measure;
    MlaScratch::Plan(measure, config_, 1, 1);
    scratch_memory_ = *AlignedBuffer::AllocateHuge(measure.peak_bytes());
    Arena arena(scratch_memory_.data());
    scratch_ = MlaScratch::Plan(arena, config_, 1, 1);
    const int64_t latents = positions * config_.mla.cache_width();
    const AlignedBuffer floats = RandomFloats(latents);
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      layers_.emplace_back(config_);
      std::copy_n(floats.floats(), latents, state_->latent(layer));
    }
    state_->Commit(positions - 1);
  }

  // Not committed: the same position again and again.
  void Run(int64_t layer) {
    const SessionSlice slices[] = {{.state = state_.get(), .begin = 0, .count = 1}};
    const Rows x{x_.floats(), config_.hidden, 1, 0};
    RunMla(compute_, config_, layers_[static_cast<size_t>(layer)].weights(), scratch_, layer,
           slices, x, out_.floats());
  }

  // What a layer has to read, once.
  int64_t bytes() const {
    return layers_.front().bytes() + 4 * state_->context() * config_.mla.cache_width();
  }

 private:
  int64_t Widest() const { return std::max(config_.hidden, config_.mla.heads * config_.mla.v_dim); }

  const ModelConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<SessionState> state_;
  const int64_t thread_bytes_;
  AlignedBuffer threads_memory_, integers_, scratch_memory_, x_, out_;
  Compute compute_;
  MlaScratch scratch_ = {};
  std::vector<MlaLayer> layers_;
};

void Mla(benchmark::State& state, int32_t threads, int64_t positions) {
  MlaRig rig(threads, positions);
  for (int64_t layer = 0; layer < kLayers; ++layer) rig.Run(layer);  // touches all pages
  int64_t turn = 0;
  for (auto _ : state) {
    rig.Run(turn);
    turn = (turn + 1) % kLayers;
  }
  ReportBytes(state, rig.bytes(), MemoryLimit(threads));
  state.counters["ms"] =
      benchmark::Counter(static_cast<double>(state.iterations()) / 1e3,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

// The threads are the team's, not the benchmark's, hence their name.
void RegisterMla(int32_t threads) {
  for (const int64_t positions : {1, 4096})
    for (const int32_t team : std::set<int32_t>{1, threads}) {
      const std::string name =
          "mla/positions:" + std::to_string(positions) + "/team:" + std::to_string(team);
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& s) {
        Mla(s, team, positions);
      })->UseRealTime();
    }
}

}  // namespace waste
