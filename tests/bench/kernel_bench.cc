// SPDX-License-Identifier: Apache-2.0
//
// The kernels one by one, on the shapes of Kimi-Linear 48B, each beside the limit that binds it,
// measured in the same run: `share` is what was reached of it. Matrices with few inputs stream from
// memory (more of them are used in turn than caches hold), those with many are bound by arithmetic.
//   kernel_bench [--isa NAME] [Google Benchmark's options, see --help]

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/expert_tables.h"
#include "kernels/kernels.h"
#include "kernels/split_input.h"
#include "machine_limits.h"
#include "model/delta_rule.h"
#include "os/system.h"

namespace waste {
namespace {

constexpr int64_t kStreamBytes = int64_t{96} << 20;  // a thread's matrices; caches hold less
constexpr int64_t kHidden = 2304;
constexpr int64_t kInner = 1024;

const Kernels* kernels = nullptr;
MachineLimits limits;

AlignedBuffer RandomBytes(int64_t bytes) {
  AlignedBuffer buffer = *AlignedBuffer::AllocateHuge(bytes);
  std::mt19937_64 random(7);
  for (int64_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(buffer.data() + i, &word, 8);
  }
  return buffer;
}

AlignedBuffer RandomFloats(int64_t count) {
  AlignedBuffer buffer = *AlignedBuffer::AllocateHuge(count * 4);
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < count; ++i) buffer.floats()[i] = normal(random);
  return buffer;
}

// f16 1/1024 everywhere.
AlignedBuffer Scales(int64_t count) {
  AlignedBuffer buffer = *AlignedBuffer::AllocateHuge(count * 2);
  for (int64_t i = 0; i < count; ++i) {
    buffer.data()[2 * i] = 0;
    buffer.data()[2 * i + 1] = 0x14;
  }
  return buffer;
}

void ReportBytes(benchmark::State& state, int64_t bytes, double limit) {
  const double done = static_cast<double>(bytes * state.iterations());
  state.counters["GB/s"] = benchmark::Counter(done / 1e9, benchmark::Counter::kIsRate);
  if (limit > 0)
    state.counters["share"] = benchmark::Counter(done / limit, benchmark::Counter::kIsRate);
}

void ReportFlops(benchmark::State& state, int64_t flops) {
  const double done = static_cast<double>(flops * state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(done / 1e9, benchmark::Counter::kIsRate);
  if (limits.fma_flops > 0)
    state.counters["share"] =
        benchmark::Counter(done / limits.fma_flops, benchmark::Counter::kIsRate);
}

// With several threads time is the wall's, so that rates are those of all of them.
void SetThreads(benchmark::internal::Benchmark* bench, int32_t threads) {
  bench->UseRealTime()->Threads(1);
  if (threads > 1) bench->Threads(threads);
}

double MemoryLimit(const benchmark::State& state) {
  return state.threads() == 1 ? limits.memory_bytes_s : limits.memory_all_bytes_s;
}

// y = W x, W of one of several matrices in turn.
void TrunkRows(benchmark::State& state, TrunkFormat format, int64_t rows, int64_t columns,
               int64_t batch) {
  const int64_t row_bytes = TrunkRowBytes(format, columns);
  const int64_t scale_bytes = IsQuantised(format) ? 2 * TrunkRowGroups(columns) : 0;
  const int64_t bytes = rows * (row_bytes + scale_bytes);
  const int64_t count = batch <= 4 ? kStreamBytes / bytes : 1;
  const AlignedBuffer payload = RandomBytes(count * rows * row_bytes);
  const AlignedBuffer scales = Scales(count * rows * TrunkRowGroups(columns));
  const AlignedBuffer x = RandomFloats(batch * columns);
  AlignedBuffer y = RandomFloats(batch * rows);
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(1 << 20);
  int64_t turn = 0;
  for (auto _ : state) {
    const TrunkMatrix w{format, rows, columns, payload.data() + turn * rows * row_bytes,
                        scale_bytes == 0 ? nullptr : scales.data() + turn * rows * scale_bytes};
    kernels->trunk_rows(w, 0, rows, x.floats(), columns, batch, y.floats(), rows, scratch.floats());
    turn = (turn + 1) % count;
  }
  if (batch <= 4)
    ReportBytes(state, bytes, MemoryLimit(state));
  else
    ReportFlops(state, 2 * rows * columns * batch);
}

// The same with the input in integers.
void SplitRows(benchmark::State& state, TrunkFormat format, int64_t rows, int64_t columns,
               int64_t batch) {
  if (kernels->split_rows == nullptr) return state.SkipWithError("this ISA has no such products");
  const int64_t row_bytes = TrunkRowBytes(format, columns);
  const int64_t scale_bytes = 2 * TrunkRowGroups(columns);
  const int64_t bytes = rows * (row_bytes + scale_bytes);
  const int64_t count = kStreamBytes / bytes;
  const AlignedBuffer payload = RandomBytes(count * rows * row_bytes);
  const AlignedBuffer scales = Scales(count * rows * TrunkRowGroups(columns));
  const AlignedBuffer x = RandomFloats(batch * columns);
  AlignedBuffer split = *AlignedBuffer::AllocateHuge(batch * SplitBytes(columns));
  for (int64_t b = 0; b < batch; ++b)
    kernels->split_input(x.floats() + b * columns, columns, split.data() + b * SplitBytes(columns));
  AlignedBuffer y = RandomFloats(batch * rows);
  int64_t turn = 0;
  for (auto _ : state) {
    const TrunkMatrix w{format, rows, columns, payload.data() + turn * rows * row_bytes,
                        scales.data() + turn * rows * scale_bytes};
    kernels->split_rows(w, 0, rows, split.data(), batch, y.floats(), rows);
    turn = (turn + 1) % count;
  }
  ReportBytes(state, bytes, MemoryLimit(state));
}

struct ExpertData {
  ExpertData(const ExpertCodec& expert_codec, int64_t row_count, int64_t column_count,
             int64_t matrix_count)
      : codec(expert_codec),
        rows(row_count),
        columns(column_count),
        index_bytes(ExpertIndexBytes(codec, rows, columns)),
        indices(RandomBytes(index_bytes * matrix_count)),
        scales(Scales(rows)),
        books(RandomFloats(codec.stages * codec.entries * kVectorSize)),
        turned(RandomFloats(codec.stages * codec.entries * kVectorSize)) {}

  ExpertMatrix Matrix(int64_t turn) const {
    ExpertMatrix w{codec,         rows, columns, indices.data() + turn * index_bytes,
                   scales.data(), {},   {}};
    for (int32_t s = 0; s < codec.stages; ++s) {
      const int64_t at = s * codec.entries * kVectorSize;
      w.books[static_cast<size_t>(s)] = books.floats() + at;
      w.turned_books[static_cast<size_t>(s)] = turned.floats() + at;
    }
    return w;
  }

  ExpertCodec codec;
  int64_t rows, columns, index_bytes;
  AlignedBuffer indices, scales, books, turned;
};

void ExpertRows(benchmark::State& state, const ExpertCodec& codec, int64_t rows, int64_t columns,
                int64_t batch) {
  const int64_t count = kStreamBytes / ExpertIndexBytes(codec, rows, columns);
  const ExpertData data(codec, rows, columns, count);
  const AlignedBuffer x = RandomFloats(batch * columns);
  AlignedBuffer y = RandomFloats(batch * rows);
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(1 << 20);
  int64_t turn = 0;
  for (auto _ : state) {
    kernels->expert_rows(data.Matrix(turn), 0, rows, x.floats(), columns, batch, y.floats(), rows,
                         scratch.floats());
    turn = (turn + 1) % count;
  }
  if (batch <= 4)
    ReportBytes(state, data.index_bytes, MemoryLimit(state));
  else
    ReportFlops(state, 2 * rows * columns * batch);
}

// A whole matrix's tables.
void Build(const ExpertMatrix& w, const float* x, uint8_t* tables, float* scratch) {
  for (int64_t g = 0; g < TableGroups(w.codec, w.columns); ++g)
    kernels->build_table(w, x, g, IndexChunks(), tables + g * TableGroupBytes(w.codec), scratch);
}

// Whole matrices by tables that are built already.
void TableRows(benchmark::State& state, const ExpertCodec& codec, int64_t rows, int64_t columns) {
  if (kernels->table_rows == nullptr) return state.SkipWithError("this ISA has no tables");
  const int64_t count = kStreamBytes / ExpertIndexBytes(codec, rows, columns);
  const ExpertData data(codec, rows, columns, count);
  const AlignedBuffer x = RandomFloats(columns);
  AlignedBuffer y = RandomFloats(SumRows(rows));
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(kTableScratch * 4);
  AlignedBuffer tables = *AlignedBuffer::AllocateHuge(TableBytes(codec, columns));
  Build(data.Matrix(0), x.floats(), tables.data(), scratch.floats());
  const int64_t groups = TableGroups(codec, columns);
  int64_t turn = 0;
  for (auto _ : state) {
    const ExpertMatrix w = data.Matrix(turn);
    turn = (turn + 1) % count;
    for (int64_t g = 0; g < groups; ++g) {
      const bool is_last = g + 1 == groups;
      kernels->table_rows(w, 0, rows, g, tables.data() + g * TableGroupBytes(codec),
                          ChunksOf(is_last ? data.Matrix(turn) : w, 0, rows, is_last ? 0 : g + 1),
                          g == 0, y.floats());
    }
  }
  ReportBytes(state, data.index_bytes, MemoryLimit(state));
}

void BuildTables(benchmark::State& state, const ExpertCodec& codec, int64_t columns) {
  if (kernels->build_table == nullptr) return state.SkipWithError("this ISA has no tables");
  const ExpertData data(codec, 64, columns, 1);
  const AlignedBuffer x = RandomFloats(columns);
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(kTableScratch * 4);
  AlignedBuffer tables = *AlignedBuffer::AllocateHuge(TableBytes(codec, columns));
  for (auto _ : state) Build(data.Matrix(0), x.floats(), tables.data(), scratch.floats());
  ReportFlops(state, 2 * codec.stages * codec.entries * columns);
}

// One head of 128 after the other, `heads` of them: 32 stay in cache, thousands do not.
void DeltaStep(benchmark::State& state, int64_t heads) {
  constexpr int64_t kDim = 128;
  AlignedBuffer states = *AlignedBuffer::AllocateHuge(heads * kDim * kDim * 4);
  const AlignedBuffer in = RandomFloats(4 * kDim);
  const std::vector<float> decay(kDim, 0.9f);
  float out[kDim], scratch[kDim];
  for (auto _ : state)
    for (int64_t head = 0; head < heads; ++head)
      kernels->delta_step(
          states.floats() + head * kDim * kDim, states.floats() + head * kDim * kDim, decay.data(),
          in.floats(), in.floats() + kDim, in.floats() + 2 * kDim, 0.01f, kDim, kDim, out, scratch);
  // Read and written.
  ReportBytes(state, 2 * heads * kDim * kDim * 4, heads > 32 ? MemoryLimit(state) : 0);
}

// The chunked form for a tile of 256 rows and 32 heads: time a row, of all heads.
void DeltaChunk(benchmark::State& state) {
  constexpr int64_t kDim = 128, kHeads = 32, kRows = 256;
  AlignedBuffer states = *AlignedBuffer::AllocateZeroed(kHeads * kDim * kDim * 4);
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(DeltaScratchBytes(kDim));
  AlignedBuffer rows = RandomFloats(4 * kRows * kDim);
  std::vector<float> decay(kRows * kDim, 0.9f), beta(kRows, 0.01f);
  float* const at = rows.floats();
  const DeltaRows in{.q = at,
                     .k = at + kRows * kDim,
                     .v = at + 2 * kRows * kDim,
                     .decay = decay.data(),
                     .stride = kDim,
                     .beta = beta.data(),
                     .beta_stride = 1,
                     .count = kRows,
                     .position = 0,
                     .out = at + 3 * kRows * kDim};
  for (auto _ : state)
    for (int64_t head = 0; head < kHeads; ++head) {
      float* const s = states.floats() + head * kDim * kDim;
      DeltaChunked(*kernels, in, kDim, s, s, scratch.data());
    }
  // Three products of the state's size a row and head.
  ReportFlops(state, 2 * 3 * kHeads * kRows * kDim * kDim);
  state.counters["us/row"] =
      benchmark::Counter(static_cast<double>(kRows * state.iterations()) / 1e6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

const char* CodecName(const ExpertCodec& codec) {
  if (codec.kind == IndexKind::kPacked6) return "packed6";
  return codec.stages == 2 ? "2" : codec.stages == 3 ? "3" : codec.stages == 4 ? "4" : "6";
}

void RegisterTrunk(int32_t threads) {
  for (const TrunkFormat format : {TrunkFormat::kQ4G, TrunkFormat::kQ8G, TrunkFormat::kQ3G,
                                   TrunkFormat::kF16, TrunkFormat::kF32})
    for (const int64_t batch : {1, 2, 4, 8, 32, 512}) {
      const std::string name =
          std::string("trunk/") + TrunkFormatName(format) + "/batch:" + std::to_string(batch);
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& s) { TrunkRows(s, format, 4096, kHidden, batch); });
      if (batch == 1) SetThreads(bench, threads);
    }
}

void RegisterSplit(int32_t threads) {
  for (const TrunkFormat format : {TrunkFormat::kQ4G, TrunkFormat::kQ8G})
    for (const int64_t batch : {1, 2, 4, 8}) {
      const std::string name =
          std::string("split/") + TrunkFormatName(format) + "/batch:" + std::to_string(batch);
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& s) { SplitRows(s, format, 4096, kHidden, batch); });
      if (batch == 1) SetThreads(bench, threads);
    }
}

void RegisterExperts(int32_t threads) {
  constexpr ExpertCodec kCodecs[] = {{IndexKind::kByte, 2, 256},
                                     {IndexKind::kByte, 3, 256},
                                     {IndexKind::kByte, 4, 256},
                                     {IndexKind::kByte, 6, 256},
                                     {IndexKind::kPacked6, 4, 64}};
  for (const ExpertCodec& codec : kCodecs) {
    const std::string name = CodecName(codec);
    auto* bench = benchmark::RegisterBenchmark(
        ("table_rows/" + name).c_str(),
        [=](benchmark::State& s) { TableRows(s, codec, kInner, kHidden); });
    SetThreads(bench, threads);
    benchmark::RegisterBenchmark(("table_rows_down/" + name).c_str(), [=](benchmark::State& s) {
      TableRows(s, codec, kHidden, kInner);
    });
    benchmark::RegisterBenchmark(("build_tables/" + name).c_str(),
                                 [=](benchmark::State& s) { BuildTables(s, codec, kHidden); });
  }
  for (const ExpertCodec& codec : kCodecs)
    for (const int64_t batch : {1, 2, 3, 4, 6, 8, 16, 64, 256}) {
      if (codec.stages != 3 && batch != 1 && batch != 64) continue;
      const std::string name =
          std::string("expert/") + CodecName(codec) + "/batch:" + std::to_string(batch);
      auto* bench = benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& s) { ExpertRows(s, codec, kInner, kHidden, batch); });
      if (batch == 1) SetThreads(bench, threads);
    }
}

void RegisterDelta() {
  for (const int64_t heads : {32, 2048})
    benchmark::RegisterBenchmark(("delta_step/heads:" + std::to_string(heads)).c_str(),
                                 [=](benchmark::State& s) { DeltaStep(s, heads); });
  benchmark::RegisterBenchmark("delta_chunked", DeltaChunk);
}

// Into the context of the results, where a script finds them.
void TellLimits() {
  const auto tell = [](const char* name, double value) {
    benchmark::AddCustomContext(name, std::to_string(value / 1e9));
  };
  benchmark::AddCustomContext("isa", IsaName(kernels->isa));
  tell("memory_gb_s", limits.memory_bytes_s);
  tell("memory_all_gb_s", limits.memory_all_bytes_s);
  tell("fma_gflops", limits.fma_flops);
  tell("bf16_gflops", limits.bf16_flops);
  tell("lookups_g_s", limits.lookups_s);
}

Isa IsaNamed(const std::string& name) {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vbmi, Isa::kNeon})
    if (name == IsaName(isa)) return isa;
  return Isa::kBest;
}

int Main(int argc, char** argv) {
  Isa isa = Isa::kBest;
  benchmark::Initialize(&argc, argv);
  if (argc == 3 && std::strcmp(argv[1], "--isa") == 0) isa = IsaNamed(argv[2]);
  const auto table = KernelsFor(isa);
  if (!table.ok()) {
    std::fprintf(stderr, "%s\n", table.status().message().c_str());
    return 1;
  }
  kernels = *table;
  const int32_t threads = GrantedCores();
  limits = MeasureLimits(threads);
  TellLimits();
  RegisterTrunk(threads);
  RegisterSplit(threads);
  RegisterExperts(threads);
  RegisterDelta();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace waste

int main(int argc, char** argv) { return waste::Main(argc, argv); }
