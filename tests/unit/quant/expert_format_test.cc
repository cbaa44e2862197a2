// SPDX-License-Identifier: Apache-2.0

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <vector>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/half.h"
#include "quant/expert_format.h"

namespace waste {
namespace {

constexpr ExpertCodec kPacked{IndexKind::kPacked6, 4, 64};

ExpertCodec ByteCodec(int32_t stages) { return {IndexKind::kByte, stages, 256}; }

// A matrix with known indices, books and scales, each of which any language repeats exactly.
struct Sample {
  ExpertMatrix matrix;
  std::vector<uint8_t> indices;
  std::vector<uint8_t> scales;
  std::vector<std::vector<float>> books;
};

Sample MakeSample(const ExpertCodec& codec, int64_t rows, int64_t columns) {
  Sample sample;
  sample.indices.resize(ExpertIndexBytes(codec, rows, columns));
  uint32_t state = 99;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < columns / 8; ++v) {
      std::vector<uint8_t> stage_indices(codec.stages);
      for (uint8_t& index : stage_indices) {
        state = state * 1664525u + 1013904223u;
        index = static_cast<uint8_t>((state >> 24) % static_cast<uint32_t>(codec.entries));
      }
      StoreExpertIndices(codec, columns, r, v, stage_indices, sample.indices);
    }
    sample.scales.resize(2 * (r + 1));
    StoreLittle(&sample.scales[2 * r], static_cast<uint64_t>(15 - r % 5) << 10, 2);  // 2^-(r % 5)
  }
  sample.matrix = {.codec = codec, .rows = rows, .columns = columns};
  for (int32_t s = 0; s < codec.stages; ++s) {
    std::vector<float>& book = sample.books.emplace_back(codec.entries * 8);
    for (int32_t i = 0; i < codec.entries * 8; ++i) {
      book[i] = static_cast<float>(i % 31 - 15) + static_cast<float>(s) * 0.25f;
    }
  }
  for (int32_t s = 0; s < codec.stages; ++s) sample.matrix.books[s] = sample.books[s].data();
  sample.matrix.indices = sample.indices.data();
  sample.matrix.scales = sample.scales.data();
  return sample;
}

BOOST_AUTO_TEST_SUITE(expert_format)

BOOST_AUTO_TEST_CASE(index_sizes_follow_the_format_page) {
  BOOST_TEST(ExpertIndexBytes(ByteCodec(3), 3072, 3584) == 4128768);
  BOOST_TEST(ExpertIndexBytes(ByteCodec(3), 3584, 3072) == 4128768);
  BOOST_TEST(ExpertIndexBytes(ByteCodec(3), 1024, 2304) == 884736);
  BOOST_TEST(ExpertIndexBytes(ByteCodec(2), 1, 8) == 128);
  BOOST_TEST(ExpertIndexBytes(ByteCodec(6), 65, 16) == 128 * 2 * 6);
  BOOST_TEST(ExpertIndexBytes(kPacked, 64, 8) == 192);
}

BOOST_AUTO_TEST_CASE(index_bytes_lie_block_by_block_vector_by_vector_row_by_row) {
  std::vector<uint8_t> indices(ExpertIndexBytes(ByteCodec(2), 66, 24));
  const std::vector<uint8_t> pair = {7, 9};
  StoreExpertIndices(ByteCodec(2), 24, 65, 2, pair, indices);
  // Block 1 of three vectors, vector 2, row 1 of the block.
  const int64_t expected = ((1 * 3 + 2) * 64 + 1) * 2;
  for (int64_t i = 0; i < static_cast<int64_t>(indices.size()); ++i) {
    BOOST_TEST_REQUIRE(indices[i] == (i == expected ? 7 : i == expected + 1 ? 9 : 0));
  }
}

BOOST_AUTO_TEST_CASE(six_bit_indices_are_packed_lowest_first) {
  std::vector<uint8_t> indices(ExpertIndexBytes(kPacked, 1, 8));
  const std::vector<uint8_t> stage_indices = {0b100001, 0b110011, 0b010110, 0b111000};
  StoreExpertIndices(kPacked, 8, 0, 0, stage_indices, indices);
  BOOST_TEST(indices[0] == 0b11100001);  // s0 | s1 << 6
  BOOST_TEST(indices[1] == 0b01101100);  // s1 >> 2 | s2 << 4
  BOOST_TEST(indices[2] == 0b11100001);  // s2 >> 4 | s3 << 2
  const ExpertMatrix matrix{.codec = kPacked, .rows = 1, .columns = 8, .indices = indices.data()};
  const auto read = ExpertIndices(matrix, 0, 0);
  BOOST_TEST(std::equal(stage_indices.begin(), stage_indices.end(), read.begin()));
}

// crc32 of the index bytes and of the decoded f32 matrix [70, 24], computed with numpy from the
// same generator by an encoder that fills a [blocks, vectors, 64, bytes] array.
BOOST_AUTO_TEST_CASE(bytes_and_weights_agree_with_an_independent_codec) {
  const struct {
    ExpertCodec codec;
    uint32_t index_crc;
    uint32_t weight_crc;
    float last_weight;
  } cases[] = {{ByteCodec(2), 0x7f584378, 0xfa6e961e, 0.828125f},
               {ByteCodec(3), 0xd187fd5b, 0xe30b336a, -0.640625f},
               {ByteCodec(4), 0x944475f3, 0x096c65a8, -1.84375f},
               {ByteCodec(6), 0xd27b5811, 0xdff67bb0, 2.484375f},
               {kPacked, 0x71288c8f, 0x4af09c5f, -0.96875f}};
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.codec.stages << " stages of " << c.codec.entries) {
      const Sample sample = MakeSample(c.codec, 70, 24);
      BOOST_TEST(Crc32(sample.indices) == c.index_crc);
      std::vector<uint8_t> bytes;
      std::vector<float> row(24);
      for (int64_t r = 0; r < 70; ++r) {
        DecodeExpertRow(sample.matrix, r, row);
        for (const float weight : row) {
          bytes.resize(bytes.size() + 4);
          StoreLittle(&bytes[bytes.size() - 4], std::bit_cast<uint32_t>(weight), 4);
        }
      }
      BOOST_TEST(Crc32(bytes) == c.weight_crc);
      BOOST_TEST(row.back() == c.last_weight);
    }
  }
}

BOOST_AUTO_TEST_CASE(subnormal_row_scales_are_kept_and_zero_ones_decode_to_zero) {
  Sample sample = MakeSample(ByteCodec(2), 2, 8);
  StoreLittle(&sample.scales[0], 0x0001, 2);  // 2^-24
  StoreLittle(&sample.scales[2], 0x0000, 2);
  std::vector<float> row(8);
  DecodeExpertRow(sample.matrix, 0, row);
  const auto indices = ExpertIndices(sample.matrix, 0, 0);
  const float sum = sample.books[0][indices[0] * 8 + 1] + sample.books[1][indices[1] * 8 + 1];
  BOOST_TEST(sum != 0.0f);
  BOOST_TEST(row[1] == sum * 0x1p-24f);
  DecodeExpertRow(sample.matrix, 1, row);
  for (const float weight : row) BOOST_TEST(weight == 0.0f);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
