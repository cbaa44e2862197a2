// SPDX-License-Identifier: Apache-2.0
//
// Trunk matrices: with inputs in f32, and in integers where the ISA has products of bytes.

#include <string>

#include "bench_case.h"
#include "kernels/split_input.h"
#include "kernels/word_input.h"

namespace waste {
namespace {

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
    ReportBytes(state, bytes, MemoryLimit(state.threads()));
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
  ReportBytes(state, bytes, MemoryLimit(state.threads()));
}

// As trunk/batch:512, with inputs in words, which are made outside.
void TrunkWords(benchmark::State& state, TrunkFormat format, int64_t rows, int64_t batch) {
  if (kernels->trunk_words == nullptr) return state.SkipWithError("this ISA has no such products");
  const int64_t columns = kHidden;
  const AlignedBuffer payload = RandomBytes(rows * TrunkRowBytes(format, columns));
  const AlignedBuffer scales = Scales(rows * TrunkRowGroups(columns));
  const AlignedBuffer x = RandomFloats(batch * columns);
  AlignedBuffer memory = *AlignedBuffer::AllocateHuge(4 * TrunkInputs::Floats(batch, columns));
  AlignedBuffer scratch = *AlignedBuffer::AllocateHuge(4 * RowsScratch(columns));
  const TrunkInputs inputs = TrunkInputs::In(memory.floats(), batch, columns);
  for (int64_t b = 0; b < batch; ++b) {
    const TrunkInputs one = inputs.At(b, 0);
    kernels->round_trunk_input(x.floats() + b * columns, columns, one.integers, one.scales);
  }
  AlignedBuffer y = RandomFloats(batch * rows);
  const TrunkMatrix w{format, rows, columns, payload.data(), scales.data()};
  for (auto _ : state)
    kernels->trunk_words(w, 0, rows, inputs, batch, y.floats(), rows, scratch.floats());
  ReportWordOps(state, 2 * rows * columns * batch);
}

void RegisterWords() {
  for (const TrunkFormat format : {TrunkFormat::kQ4G, TrunkFormat::kQ8G})
    for (const int64_t batch : {16, 32, 64, 128, 512})
      benchmark::RegisterBenchmark(
          (std::string("trunk_words/") + TrunkFormatName(format) +
           "/batch:" + std::to_string(batch))
              .c_str(),
          [=](benchmark::State& s) { TrunkWords(s, format, 4096, batch); });
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

}  // namespace

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
  RegisterSplit(threads);
  RegisterWords();
}

}  // namespace waste
