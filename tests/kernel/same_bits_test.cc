// SPDX-License-Identifier: Apache-2.0
//
// AVX2 and NEON add in one order, so what one machine computes the other repeats bit by bit. The
// two never meet in a process: each is held to one checksum over all functions and formats.

#include <cstring>

#include "support/kernel_case.h"

namespace waste {
namespace {

constexpr uint64_t kExpected = 3760954850369033041u;

// FNV-1a over the bits.
struct Checksum {
  uint64_t value = 14695981039346656037u;

  void Add(const std::vector<float>& floats) {
    for (const float number : floats) {
      uint32_t bits;
      std::memcpy(&bits, &number, 4);
      value = (value ^ bits) * 1099511628211u;
    }
  }
};

std::vector<uint8_t> Scales(int64_t count) {
  std::vector<uint8_t> scales;
  for (int64_t i = 0; i < count; ++i) {
    scales.push_back(static_cast<uint8_t>(i));
    scales.push_back(0x2C);
  }
  return scales;
}

void AddTrunk(const Kernels& kernels, TrunkFormat format, int64_t batch, Checksum& sum) {
  const int64_t rows = 13, columns = 300;
  std::vector<uint8_t> payload = RandomBytes(1, rows * TrunkRowBytes(format, columns));
  if (format == TrunkFormat::kF32) {
    const std::vector<float> values = RandomFloats(1, rows * columns);
    std::memcpy(payload.data(), values.data(), payload.size());
  }
  if (format == TrunkFormat::kF16) {
    for (size_t i = 1; i < payload.size(); i += 2) payload[i] &= 0xBF;  // finite
  }
  const std::vector<uint8_t> scales = Scales(rows * TrunkRowGroups(columns));
  const TrunkMatrix w = {format, rows, columns, payload.data(), scales.data()};
  const std::vector<float> x = RandomFloats(2, batch * columns);
  std::vector<float> y(batch * rows), scratch(RowsScratch(columns));
  kernels.trunk_rows(w, 0, rows, x.data(), columns, batch, y.data(), rows, scratch.data());
  sum.Add(y);
}

void AddExpert(const Kernels& kernels, const ExpertCodec& codec, int64_t batch, Checksum& sum) {
  const int64_t rows = 70, columns = 136;
  const std::vector<uint8_t> indices = RandomBytes(3, ExpertIndexBytes(codec, rows, columns));
  const std::vector<uint8_t> scales = Scales(rows);
  ExpertMatrix w = {codec, rows, columns, indices.data(), scales.data(), {}};
  std::vector<std::vector<float>> books;
  for (int32_t s = 0; s < codec.stages; ++s) {
    books.push_back(RandomFloats(50 + static_cast<uint32_t>(s), codec.entries * kVectorSize));
  }
  for (int32_t s = 0; s < codec.stages; ++s) w.books[s] = books[s].data();
  const std::vector<float> x = RandomFloats(4, batch * columns);
  std::vector<float> y(batch * rows), scratch(RowsScratch(columns));
  kernels.expert_rows(w, 0, rows, x.data(), columns, batch, y.data(), rows, scratch.data());
  sum.Add(y);
}

void AddDense(const Kernels& kernels, Checksum& sum) {
  const int64_t keys = 24, values = 45;
  std::vector<float> state = RandomFloats(5, keys * values), out(values), scratch(values);
  const std::vector<float> decay = RandomFloats(6, keys), k = RandomFloats(7, keys),
                           q = RandomFloats(8, keys), v = RandomFloats(9, values);
  kernels.delta_step(state.data(), state.data(), decay.data(), k.data(), q.data(), v.data(), 0.3f,
                     keys, values, out.data(), scratch.data());
  sum.Add(state);
  sum.Add(out);
  sum.Add({kernels.dot(state.data(), state.data() + 50, 1003)});
  std::vector<float> x = RandomFloats(14, values), dots(4);
  kernels.decayed_dots(decay.data(), k.data(), q.data(), 0, 1, keys, x.data(), dots.data(),
                       dots.data() + 1, 0);
  kernels.decayed_dots(state.data(), state.data() + 1, state.data() + 2, 3, 1, values, x.data(),
                       dots.data() + 2, dots.data() + 3, 0);
  sum.Add(x);
  sum.Add(dots);
  kernels.axpy(0.7f, v.data(), out.data(), values);
  sum.Add(out);
}

void AddProducts(const Kernels& kernels, Checksum& sum) {
  const int64_t m = 5, k = 30, n = 45;
  const std::vector<float> a = RandomFloats(10, m * k), b = RandomFloats(11, k * n);
  std::vector<float> c = RandomFloats(12, m * n);
  kernels.multiply_add(a.data(), k, 1, b.data(), n, m, k, n, c.data(), n);
  sum.Add(c);
}

void AddFunctions(const Kernels& kernels, Checksum& sum) {
  std::vector<float> x = RandomFloats(13, 1003);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= i % 2 == 0 ? 1.0f : 100.0f;
  for (const auto function : {kernels.exp, kernels.sigmoid, kernels.softplus, kernels.tanh}) {
    std::vector<float> y(x.size());
    function(x.data(), static_cast<int64_t>(x.size()), y.data());
    sum.Add(y);
  }
}

void RequireExpected(Isa isa) {
  const Kernels& kernels = RequireKernels(isa);
  Checksum sum;
  for (const int64_t batch : {1, 2, 3, 7}) {
    for (const TrunkFormat format : {TrunkFormat::kF32, TrunkFormat::kF16, TrunkFormat::kQ8G,
                                     TrunkFormat::kQ4G, TrunkFormat::kQ3G}) {
      AddTrunk(kernels, format, batch, sum);
    }
    for (const int32_t stages : {2, 3, 4, 6}) {
      AddExpert(kernels, {IndexKind::kByte, stages, 256}, batch, sum);
    }
    AddExpert(kernels, {IndexKind::kPacked6, 4, 64}, batch, sum);
  }
  AddDense(kernels, sum);
  AddProducts(kernels, sum);
  AddFunctions(kernels, sum);
  BOOST_TEST(sum.value == kExpected);
}

BOOST_AUTO_TEST_SUITE(same_bits)

#if defined(__aarch64__)
BOOST_AUTO_TEST_CASE(neon_gives_the_bits_of_avx2) { RequireExpected(Isa::kNeon); }
#else
BOOST_AUTO_TEST_CASE(avx2_gives_the_bits_of_neon,
                     *boost::unit_test::precondition(HasIsa{Isa::kAvx2})) {
  RequireExpected(Isa::kAvx2);
}
#endif

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
