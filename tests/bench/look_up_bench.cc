// SPDX-License-Identifier: Apache-2.0
//
// One layer's experts for one written token, as the model runs them: TableCompute on a team of
// threads, eight experts of Kimi-Linear 48B by chance out of more than caches hold. Tables are
// built for it and indices read from memory.

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bench_case.h"
#include "model/table_compute.h"
#include "parallel/thread_pool.h"

namespace waste {
namespace {

constexpr int64_t kExperts = 200, kChosen = 8;
constexpr ExpertCodec kCodec = {IndexKind::kByte, 3, 256};

ModelConfig MoeModel() {
  ModelConfig config;
  config.hidden = kHidden;
  config.moe.experts = kExperts;
  config.moe.top_k = kChosen;
  config.moe.inner = kInner;
  return config;
}

class LookUpRig {
 public:
  explicit LookUpRig(int32_t threads)
      : config_(MoeModel()),
        pool_(*ThreadPool::Create(threads)),
        thread_bytes_(TableScratch::ThreadBytes(config_, kCodec)),
        threads_memory_(*AlignedBuffer::AllocateHuge(threads * thread_bytes_)),
        indices_(RandomBytes(kExperts * 3 * kMatrixBytes)),
        scales_(Scales(kHidden)),
        books_(RandomFloats(3 * kCodec.stages * kCodec.entries * kVectorSize)),
        x_(RandomFloats(kHidden)),
        out_(RandomFloats(kChosen * kHidden)),
        compute_(*kernels, *pool_, threads_memory_.data(), thread_bytes_, nullptr) {
    for (int64_t book = 0; book < 3 * kCodec.stages; ++book)
      forms_.emplace_back(books_.floats() + book * kCodec.entries * kVectorSize, kCodec.entries);
    Arena measure;
    TableScratch::Plan(measure, config_, kCodec);
    scratch_memory_ = *AlignedBuffer::AllocateHuge(measure.peak_bytes());
    Arena arena(scratch_memory_.data());
    tables_ = std::make_unique<TableCompute>(compute_, config_, kCodec,
                                             TableScratch::Plan(arena, config_, kCodec));
    for (int64_t expert = 0; expert < kExperts; ++expert)
      records_.push_back({.gate = Matrix(expert, 0, kInner, kHidden),
                          .up = Matrix(expert, 1, kInner, kHidden),
                          .down = Matrix(expert, 2, kHidden, kInner)});
  }

  void Run() {
    std::vector<TablePair> pairs;
    for (int64_t i = 0; i < kChosen; ++i)
      pairs.push_back({&records_[random_() % kExperts], 0, out_.floats() + i * kHidden});
    tables_->Forget();
    tables_->Run(pairs, {x_.floats(), kHidden, 1, 0});
  }

  static constexpr int64_t bytes() { return kChosen * 3 * kMatrixBytes; }

 private:
  static constexpr int64_t kMatrixBytes = kInner * kHidden / kVectorSize * kCodec.stages;

  // Books of one kind are those of all experts.
  ExpertMatrix Matrix(int64_t expert, int64_t kind, int64_t rows, int64_t columns) const {
    ExpertMatrix w{
        kCodec,         rows, columns, indices_.data() + (3 * expert + kind) * kMatrixBytes,
        scales_.data(), {},   {}};
    for (int64_t s = 0; s < kCodec.stages; ++s) {
      const int64_t book = kind * kCodec.stages + s;
      w.books[static_cast<size_t>(s)] = books_.floats() + book * kCodec.entries * kVectorSize;
      w.forms[static_cast<size_t>(s)] = forms_[static_cast<size_t>(book)].view();
    }
    return w;
  }

  const ModelConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  const int64_t thread_bytes_;
  AlignedBuffer threads_memory_, indices_, scales_, books_, x_, out_, scratch_memory_;
  std::vector<OwnedBookForms> forms_;
  Compute compute_;
  std::unique_ptr<TableCompute> tables_;
  std::vector<ExpertRecord> records_;
  std::mt19937 random_{1};
};

void LookUp(benchmark::State& state, int32_t threads) {
  if (kernels->table_rows == nullptr) return state.SkipWithError("this ISA has no tables");
  LookUpRig rig(threads);
  for (auto _ : state) rig.Run();
  ReportBytes(state, LookUpRig::bytes(), MemoryLimit(threads));
}

}  // namespace

// The threads are the team's, not the benchmark's, hence their name.
void RegisterLookUp(int32_t threads) {
  for (const int32_t team : std::set<int32_t>{1, threads})
    benchmark::RegisterBenchmark(("look_up/experts:8/team:" + std::to_string(team)).c_str(),
                                 [=](benchmark::State& s) { LookUp(s, team); })
        ->UseRealTime();
}

}  // namespace waste
