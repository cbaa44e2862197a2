// SPDX-License-Identifier: Apache-2.0
//
// Experts' matrices: multiplied as they are, by look-up tables of bytes, and by a plain loop, which
// any kernel has to beat.

#include <cmath>
#include <string>

#include "bench_case.h"
#include "kernels/expert_tables.h"
#include "kernels/word_input.h"
#include "plain_experts.h"

namespace waste {
namespace {

struct ExpertData {
  ExpertData(const ExpertCodec& expert_codec, int64_t row_count, int64_t column_count,
             int64_t matrix_count)
      : codec(expert_codec),
        rows(row_count),
        columns(column_count),
        index_bytes(ExpertIndexBytes(codec, rows, columns)),
        indices(RandomBytes(index_bytes * matrix_count)),
        scales(Scales(rows)),
        books(RandomFloats(codec.stages * codec.entries * kVectorSize)) {
    for (int32_t s = 0; s < codec.stages; ++s)
      forms.emplace_back(books.floats() + s * codec.entries * kVectorSize, codec.entries);
  }

  ExpertMatrix Matrix(int64_t turn) const {
    ExpertMatrix w{codec,         rows, columns, indices.data() + turn * index_bytes,
                   scales.data(), {},   {}};
    for (int32_t s = 0; s < codec.stages; ++s) {
      const int64_t at = s * codec.entries * kVectorSize;
      w.books[static_cast<size_t>(s)] = books.floats() + at;
      w.forms[static_cast<size_t>(s)] = forms[static_cast<size_t>(s)].view();
    }
    return w;
  }

  ExpertCodec codec;
  int64_t rows, columns, index_bytes;
  AlignedBuffer indices, scales, books;
  std::vector<OwnedBookForms> forms;
};

// Weights whose products are summed, whatever of them is read.
void ReportWeights(benchmark::State& state, int64_t weights) {
  state.counters["G weights/s"] = benchmark::Counter(
      static_cast<double>(weights * state.iterations()) / 1e9, benchmark::Counter::kIsRate);
}

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
  ReportWeights(state, rows * columns * batch);
  if (batch <= 4)
    ReportBytes(state, data.index_bytes, MemoryLimit(state.threads()));
  else
    ReportFlops(state, 2 * rows * columns * batch);
}

// As ExpertRows with inputs in integers, which are made outside.
void ExpertWords(benchmark::State& state, const ExpertCodec& codec, int64_t batch) {
  if (kernels->expert_words == nullptr) return state.SkipWithError("this ISA has no such products");
  const int64_t count = kStreamBytes / ExpertIndexBytes(codec, kInner, kHidden);
  const ExpertData data(codec, kInner, kHidden, count);
  const AlignedBuffer x = RandomFloats(batch * kHidden);
  AlignedBuffer y = RandomFloats(batch * kInner);
  AlignedBuffer memory = *AlignedBuffer::AllocateHuge(4 * ExpertInputs::Floats(batch, kHidden));
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(1 << 20);
  const ExpertInputs inputs = ExpertInputs::In(memory.floats(), batch, kHidden);
  for (int64_t b = 0; b < batch; ++b) {
    const ExpertInputs one = inputs.At(b, 0);
    kernels->round_expert_input(x.floats() + b * kHidden, kHidden, one.integers, one.scales);
  }
  int64_t turn = 0;
  for (auto _ : state) {
    kernels->expert_words(data.Matrix(turn), 0, kInner, inputs, batch, y.floats(), kInner,
                          scratch.floats());
    turn = (turn + 1) % count;
  }
  ReportWeights(state, kInner * kHidden * batch);
  ReportWordOps(state, 2 * kInner * kHidden * batch);
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
  ReportWeights(state, rows * columns);
  ReportBytes(state, data.index_bytes, MemoryLimit(state.threads()));
}

// Whether the plain loop gives what the kernel gives.
bool PlainIsRight(const ExpertMatrix& w, const float* x, const float* tables, float* scratch) {
  AlignedBuffer fast = RandomFloats(w.rows), plain = RandomFloats(w.rows);
  kernels->expert_rows(w, 0, w.rows, x, w.columns, 1, fast.floats(), w.rows, scratch);
  if (!PlainRows(w, tables, plain.floats())) return false;
  double squares = 0, largest = 0;
  for (int64_t r = 0; r < w.rows; ++r) {
    squares += static_cast<double>(fast.floats()[r]) * fast.floats()[r];
    const double difference = std::abs(static_cast<double>(fast.floats()[r]) - plain.floats()[r]);
    if (!(difference <= largest)) largest = difference;  // a NaN stays
  }
  return largest <= 1e-4 * std::sqrt(squares / static_cast<double>(w.rows));
}

// As TableRows, with tables of f32 and nothing but look-ups.
void ExpertPlain(benchmark::State& state, const ExpertCodec& codec, int64_t rows, int64_t columns) {
  const int64_t count = kStreamBytes / ExpertIndexBytes(codec, rows, columns);
  const ExpertData data(codec, rows, columns, count);
  const AlignedBuffer x = RandomFloats(columns);
  AlignedBuffer y = RandomFloats(rows);
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(1 << 20);
  AlignedBuffer tables = *AlignedBuffer::AllocateHuge(4 * PlainTableFloats(codec, columns));
  BuildPlainTables(data.Matrix(0), x.floats(), tables.floats());
  if (!PlainIsRight(data.Matrix(0), x.floats(), tables.floats(), scratch.floats()))
    return state.SkipWithError("the plain loop gives something else than the kernel");
  int64_t turn = 0;
  for (auto _ : state) {
    PlainRows(data.Matrix(turn), tables.floats(), y.floats());
    turn = (turn + 1) % count;
  }
  ReportWeights(state, rows * columns);
  ReportBytes(state, data.index_bytes, MemoryLimit(state.threads()));
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

const char* CodecName(const ExpertCodec& codec) {
  if (codec.kind == IndexKind::kPacked6) return "packed6";
  return codec.stages == 2 ? "2" : codec.stages == 3 ? "3" : codec.stages == 4 ? "4" : "6";
}

}  // namespace

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
  for (const ExpertCodec& codec : {kCodecs[1], kCodecs[4]})
    for (const int64_t batch : {1, 2, 3, 6, 16, 64, 256})
      benchmark::RegisterBenchmark(
          (std::string("expert_words/") + CodecName(codec) + "/batch:" + std::to_string(batch))
              .c_str(),
          [=](benchmark::State& s) { ExpertWords(s, codec, batch); });
  for (const ExpertCodec& codec : {kCodecs[1], kCodecs[4]})
    benchmark::RegisterBenchmark(
        (std::string("expert_plain/") + CodecName(codec)).c_str(),
        [=](benchmark::State& s) { ExpertPlain(s, codec, kInner, kHidden); })
        ->UseRealTime();  // as those of batch:1
}

}  // namespace waste
