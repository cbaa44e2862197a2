// SPDX-License-Identifier: Apache-2.0
//
// MLA over caches long enough to be split into runs, against the formula in double.

#include "model/mla.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <memory>

#include "support/kernel_case.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

constexpr int64_t kHidden = 40, kMostRows = 3;

MlaConfig SmallMla() {
  return {.heads = 5, .kv_lora_rank = 24, .nope_dim = 12, .rope_dim = 6, .v_dim = 10};
}

// A layer with F32 projections of moderate size; no output gate, the identity as norm.
struct Layer {
  ModelConfig config;
  std::vector<std::vector<float>> matrices;
  std::vector<float> norm;
  MlaWeights w = {};

  Layer() {
    config.layers = 1;
    config.hidden = kHidden;
    config.attention = {AttentionKind::kMla};
    config.mla = SmallMla();
    const MlaConfig& mla = config.mla;
    norm.assign(static_cast<size_t>(mla.kv_lora_rank), 1.0f);
    w.kv_norm = norm.data();
    w.q = Matrix(mla.heads * (mla.nope_dim + mla.rope_dim), kHidden);
    w.kv_a = Matrix(mla.cache_width(), kHidden);
    w.key = Matrix(mla.heads * mla.nope_dim, mla.kv_lora_rank);
    w.value = Matrix(mla.heads * mla.v_dim, mla.kv_lora_rank);
    w.out = Matrix(kHidden, mla.heads * mla.v_dim);
  }

 private:
  TrunkMatrix Matrix(int64_t rows, int64_t columns) {
    matrices.push_back(RandomFloats(static_cast<uint32_t>(matrices.size()), rows * columns));
    for (float& value : matrices.back()) value *= 0.3f;
    return {TrunkFormat::kF32, rows, columns,
            reinterpret_cast<const uint8_t*>(matrices.back().data()), nullptr};
  }
};

// Sessions whose caches hold latents by chance, and one more row of each to attend with.
class Rig {
 public:
  Rig(const Layer& layer, const Kernels& kernels, int32_t threads,
      const std::vector<int64_t>& positions)
      : layer_(layer),
        pool_(Require(ThreadPool::Create(threads))),
        x_(RandomFloats(7, 3 * kHidden)) {
    for (const int64_t position : positions) {
      sessions_.push_back(Require(SessionState::Create(layer.config, position + kMostRows)));
      const std::vector<float> latents =
          RandomFloats(static_cast<uint32_t>(position), position * layer.config.mla.cache_width());
      std::copy(latents.begin(), latents.end(), sessions_.back()->latent(0));
      sessions_.back()->Commit(position);
    }
    Arena measure;
    MlaScratch::Plan(measure, layer.config, kMostRows, kMostRows);
    scratch_ = Require(AlignedBuffer::AllocateZeroed(measure.peak_bytes()));
    const int64_t thread_bytes =
        std::max(MlaScratch::ThreadBytes(layer.config, kMostRows), 4 * RowsScratch(kHidden));
    thread_memory_ = Require(AlignedBuffer::AllocateZeroed(threads * thread_bytes));
    compute_ =
        std::make_unique<Compute>(kernels, *pool_, thread_memory_.data(), thread_bytes, nullptr);
  }

  // `rows` rows of every session.
  std::vector<float> Run(int64_t rows, bool is_written) {
    std::vector<SessionSlice> slices;
    for (const auto& session : sessions_)
      slices.push_back({.state = session.get(),
                        .begin = std::ssize(slices) * rows,
                        .count = rows,
                        .is_prompt = !is_written});
    const int64_t count = std::ssize(slices) * rows;
    Arena arena(scratch_.data());
    const MlaScratch scratch = MlaScratch::Plan(arena, layer_.config, kMostRows, kMostRows);
    std::vector<float> out(static_cast<size_t>(count * kHidden));
    RunMla(*compute_, layer_.config, layer_.w, scratch, 0, slices,
           {x_.data(), kHidden, count, is_written ? 0 : count}, out.data());
    return out;
  }

  // The first row of the first session by the formula, its latent in the cache already.
  std::vector<double> Expected() {
    const MlaConfig& mla = layer_.config.mla;
    const int64_t rank = mla.kv_lora_rank, seen = sessions_[0]->position() + 1;
    std::vector<double> heads_out;
    const std::vector<double> q =
        Times(layer_.w.q, std::vector<double>(x_.begin(), x_.begin() + kHidden));
    for (int64_t head = 0; head < mla.heads; ++head) {
      const double* of_head = q.data() + head * (mla.nope_dim + mla.rope_dim);
      std::vector<double> weights, sum(static_cast<size_t>(rank));
      double total = 0;
      for (int64_t t = 0; t < seen; ++t) {
        const float* latent = sessions_[0]->latent(0) + t * mla.cache_width();
        double score = 0;
        for (int64_t i = 0; i < mla.nope_dim; ++i)
          for (int64_t j = 0; j < rank; ++j)
            score += of_head[i] * At(layer_.w.key, head * mla.nope_dim + i, j) * latent[j];
        for (int64_t i = 0; i < mla.rope_dim; ++i)
          score += of_head[mla.nope_dim + i] * latent[rank + i];
        const double weight = std::exp(score / std::sqrt(double(mla.nope_dim + mla.rope_dim)));
        total += weight;
        for (int64_t j = 0; j < rank; ++j) sum[j] += weight * latent[j];
      }
      for (double& value : sum) value /= total;
      for (int64_t i = 0; i < mla.v_dim; ++i) {
        heads_out.push_back(0);
        for (int64_t j = 0; j < rank; ++j)
          heads_out.back() += At(layer_.w.value, head * mla.v_dim + i, j) * sum[j];
      }
    }
    return Times(layer_.w.out, heads_out);
  }

 private:
  static double At(const TrunkMatrix& w, int64_t row, int64_t column) {
    return reinterpret_cast<const float*>(w.row(row))[column];
  }
  static std::vector<double> Times(const TrunkMatrix& w, const std::vector<double>& x) {
    std::vector<double> y(static_cast<size_t>(w.rows));
    for (int64_t r = 0; r < w.rows; ++r)
      for (int64_t c = 0; c < w.columns; ++c) y[r] += At(w, r, c) * x[c];
    return y;
  }

  const Layer& layer_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<float> x_;
  std::vector<std::unique_ptr<SessionState>> sessions_;
  AlignedBuffer scratch_, thread_memory_;
  std::unique_ptr<Compute> compute_;
};

BOOST_AUTO_TEST_SUITE(mla)

// 511 and 512 are the last of one run and of eight tiles; 1,100 has two runs, 9,000 all sixteen.
constexpr int64_t kPositions[] = {0, 1, 63, 64, 511, 512, 1023, 1024, 1100, 9000};

WASTE_KERNEL_CASE(rows_of_both_kinds_are_what_the_formula_says) {
  const Layer layer;
  for (const int64_t position : kPositions) {
    Rig rig(layer, kernels, 2, {position});
    for (const bool is_written : {true, false}) {
      const std::vector<float> out = rig.Run(1, is_written);
      const std::vector<double> expected = rig.Expected();
      double size = 0;
      for (const double value : expected) size = std::max(size, std::fabs(value));
      for (size_t i = 0; i < expected.size(); ++i)
        BOOST_TEST_REQUIRE(std::fabs(out[i] - expected[i]) <= 1e-5 * size,
                           "position " << position << ", element " << i << ": " << out[i] << " for "
                                       << expected[i]);
    }
  }
}

// Neither threads nor the other sessions of a step, nor how many rows of its own come with it.
WASTE_KERNEL_CASE(a_row_does_not_depend_on_threads_or_company) {
  const Layer layer;
  for (const int64_t position : kPositions) {
    for (const bool is_written : {true, false}) {
      const std::vector<float> alone = Rig(layer, kernels, 1, {position}).Run(1, is_written);
      for (const int32_t threads : {1, 2, 3, 8}) {
        const std::vector<float> together =
            Rig(layer, kernels, threads, {position, 700, 30}).Run(1, is_written);
        BOOST_TEST_REQUIRE(std::equal(alone.begin(), alone.end(), together.begin()),
                           threads << " threads at " << position);
        const std::vector<float> first =
            Rig(layer, kernels, threads, {position}).Run(3, is_written);
        BOOST_TEST_REQUIRE(std::equal(alone.begin(), alone.end(), first.begin()),
                           threads << " threads, three rows at " << position);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
