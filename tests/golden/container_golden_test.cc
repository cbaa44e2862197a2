// SPDX-License-Identifier: Apache-2.0
//
// Container v0, byte for byte: make_container_v0.py, which shares no code with us, wrote the
// folders in container_v0/. Our writer, given the same weights, must write the same files, and our
// reader must read the values that the script says they hold.

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>

#include "base/aligned_buffer.h"
#include "base/bytes.h"
#include "base/progress.h"
#include "container/container.h"
#include "container/json_text.h"
#include "container/verify.h"
#include "container/writer.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

const std::string kFolder = std::string(WASTE_SOURCE_DIR) + "/tests/golden/container_v0/";

// The text that the script's CONFIG was parsed from.
constexpr const char* kConfig =
    R"({"model_type":"tiny","num_hidden_layers":2,"first_k_dense_replace":1,"num_experts":2,
    "rms_norm_eps":1e-5,"rope_theta":1e16,"scale":2.0,"lower_bound":-5.0,"third":0.3333333333333333,
    "flag":true,"off":false,"nothing":null,"empty":[],"none":{},
    "_outer":{"name":"caf\u00e9 \u65e5\u672c \ud83d\ude00 \"quoted\"\n\u007f",
    "list":[1,[2,{"k":3}]]}})";

// The script's generator: the same numbers in the same order.
class Generator {
 public:
  explicit Generator(uint32_t seed) : x_(seed) {}

  uint32_t Bits(int count) {
    x_ = x_ * 1664525u + 1013904223u;
    return x_ >> (32 - count);
  }
  std::vector<float> Weights(int64_t count) {
    std::vector<float> weights(static_cast<size_t>(count));
    for (float& w : weights)
      w = static_cast<float>(static_cast<int32_t>(Bits(24)) - (1 << 23)) / float{1 << 23};
    return weights;
  }
  std::vector<uint8_t> Scales(int64_t count) {
    ByteWriter out;
    for (int64_t i = 0; i < count; ++i) out.U16(static_cast<uint16_t>(0x0200 + Bits(13)));
    return std::move(out).Take();
  }
  std::vector<uint8_t> Indices(const ExpertCodec& codec, int64_t rows, int64_t columns) {
    std::vector<uint8_t> indices(static_cast<size_t>(ExpertIndexBytes(codec, rows, columns)));
    std::vector<uint8_t> tuple(static_cast<size_t>(codec.stages));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t v = 0; v < columns / kVectorSize; ++v) {
        for (uint8_t& index : tuple)
          index = static_cast<uint8_t>(Bits(codec.kind == IndexKind::kPacked6 ? 6 : 8));
        StoreExpertIndices(codec, columns, r, v, tuple, indices);
      }
    }
    return indices;
  }

 private:
  uint32_t x_;
};

struct Golden {
  std::string name;
  uint32_t seed;
  ExpertCodec codec;
  ExpertDims dims;
  std::vector<TinyTensor> trunk;
  bool has_side_files;
};

const Golden kGoldens[] = {
    {"vq3r",
     1,
     {IndexKind::kByte, 3, 256},
     {72, 24},
     {{"Model.upper.weight", TrunkFormat::kF32, {2}},
      {"model.a.weight", TrunkFormat::kQ4G, {3, 130}},
      {"model.b.weight", TrunkFormat::kQ8G, {2, 128}},
      {"model.c.weight", TrunkFormat::kQ3G, {3, 130}},
      {"model.conv.weight", TrunkFormat::kF32, {4, 1, 3}},
      {"model.half.weight", TrunkFormat::kF16, {2, 5}},
      {"model.norm.weight", TrunkFormat::kF32, {24}},
      {"model.patch.weight", TrunkFormat::kQ4G, {2, 1, 2, 40}}},
     true},
    {"vq4p", 2, {IndexKind::kPacked6, 4, 64}, {16, 136}, {{"n", TrunkFormat::kF32, {1}}}, false}};

std::vector<uint8_t> ReadFile(const std::string& path) {
  return Require(ReadWholeFile(path, 1 << 20));
}

void AddTensor(const TinyTensor& tensor, Generator& generator, ContainerWriter& writer) {
  const int64_t columns = tensor.shape.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  const std::vector<float> weights = generator.Weights(rows * columns);
  const int64_t row_bytes = TrunkRowBytes(tensor.format, columns);
  const int64_t scale_bytes = IsQuantised(tensor.format) ? 2 * TrunkRowGroups(columns) : 0;
  std::vector<uint8_t> payload(static_cast<size_t>(rows * row_bytes));
  std::vector<uint8_t> scales(static_cast<size_t>(rows * scale_bytes));
  for (int64_t r = 0; r < rows; ++r)
    Require(EncodeTrunkRow(tensor.format, std::span(weights).subspan(r * columns, columns),
                           std::span(payload).subspan(r * row_bytes, row_bytes),
                           std::span(scales).subspan(r * scale_bytes, scale_bytes)));
  Require(writer.AddTrunk(tensor.name, tensor.format, tensor.shape, payload, scales));
}

void AddBank(const Golden& golden, Generator& generator, ContainerWriter& writer) {
  for (int32_t book = 0; book < 3 * golden.codec.stages; ++book) {
    std::vector<float> values = generator.Weights(golden.codec.entries * kVectorSize);
    for (size_t i = 0; i < 4; ++i) values[i] *= 0x1p-16f;
    Require(writer.AddCodebook(values));
  }
  Require(writer.BeginBank(1, 0, golden.codec));
  const auto [inner, outer] = golden.dims;
  for (int32_t e = 0; e < 2; ++e) {
    EncodedExpert expert;
    expert.gate = generator.Indices(golden.codec, inner, outer);
    expert.up = generator.Indices(golden.codec, inner, outer);
    expert.down = generator.Indices(golden.codec, outer, inner);
    expert.gate_scales = generator.Scales(inner);
    expert.up_scales = generator.Scales(inner);
    expert.down_scales = generator.Scales(outer);
    Require(writer.AddExpert(expert));
  }
  Require(writer.EndBank());
}

void WriteGolden(const Golden& golden, const std::string& folder) {
  Generator generator(golden.seed);
  const auto writer = Require(ContainerWriter::Create(folder));
  for (const TinyTensor& tensor : golden.trunk) AddTensor(tensor, generator, *writer);
  AddBank(golden, generator, *writer);
  if (golden.has_side_files) {
    for (const char* name : {"tokenizer.model", "chat.json"})
      Require(writer->AddFile(name, ReadFile(kFolder + golden.name + "/" + name)));
    Require(writer->AddSpecials({{4, "<|caf\u00e9\n\U0001f600|>"}, {3, "[BOS]"}}));
  }
  Require(writer->Finish("kimi-linear", "", Require(ParseJsonText(kConfig, "config"))));
}

void Append(const ExpertMatrix& matrix, std::vector<float>& values) {
  std::vector<float> row(static_cast<size_t>(matrix.columns));
  for (int64_t r = 0; r < matrix.rows; ++r) {
    DecodeExpertRow(matrix, r, row);
    values.insert(values.end(), row.begin(), row.end());
  }
}

// All that the container holds, in the order of the script's *.expected.bin.
std::vector<float> ReadAll(const Container& container) {
  std::vector<float> values;
  for (const TrunkEntry& entry : container.manifest().trunk) {
    std::vector<float> row(static_cast<size_t>(entry.columns()));
    for (int64_t r = 0; r < entry.rows(); ++r) {
      Require(container.ReadTrunkRow(entry, r, row));
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  AlignedBuffer buffer = Require(AlignedBuffer::Allocate(container.record_bytes()));
  const std::span<uint8_t> record = buffer.bytes();
  for (const auto& [number, layer] : container.manifest().layers) {
    for (int32_t expert = 0; expert < layer.experts; ++expert) {
      Require(container.ReadRecord(number, expert, record, true));
      const ExpertRecord parsed = Require(container.ParseRecord(number, expert, record));
      Append(parsed.gate, values);
      Append(parsed.up, values);
      Append(parsed.down, values);
    }
  }
  return values;
}

BOOST_AUTO_TEST_SUITE(container_golden)

BOOST_AUTO_TEST_CASE(writer_writes_the_golden_bytes) {
  for (const Golden& golden : kGoldens) {
    const TemporaryPath folder;
    WriteGolden(golden, folder.path());
    const auto names = Require(ListFolder(kFolder + golden.name));
    BOOST_TEST(Require(ListFolder(folder.path())) == names);
    for (const std::string& name : names) {
      const auto expected = ReadFile(kFolder + golden.name + "/" + name);
      const auto written = ReadFile(folder.path() + "/" + name);
      BOOST_TEST_CONTEXT(golden.name << "/" << name) {
        BOOST_CHECK_EQUAL(written.size(), expected.size());
        const auto differ =
            std::mismatch(written.begin(), written.end(), expected.begin(), expected.end());
        BOOST_CHECK_MESSAGE(differ.first == written.end(),
                            "first difference at byte " << differ.first - written.begin());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(reader_reads_the_golden_values) {
  for (const Golden& golden : kGoldens) {
    const auto container = Require(Container::Open(kFolder + golden.name, IoMode::kAuto));
    Require(container->SetExpertDims(golden.dims));
    const std::vector<float> values = ReadAll(*container);
    const auto expected = ReadFile(kFolder + golden.name + ".expected.bin");
    BOOST_REQUIRE_EQUAL(values.size() * 4, expected.size());
    int64_t nonzero = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t bits = static_cast<uint32_t>(LoadLittle(&expected[4 * i], 4));
      BOOST_REQUIRE_MESSAGE(std::bit_cast<uint32_t>(values[i]) == bits,
                            golden.name << ": value " << i << " is " << values[i] << ", not "
                                        << std::bit_cast<float>(bits));
      nonzero += values[i] != 0;
    }
    BOOST_TEST(nonzero > static_cast<int64_t>(values.size()) / 2);
  }
}

BOOST_AUTO_TEST_CASE(golden_container_passes_verification_and_has_its_side_files) {
  const auto container = Require(Container::Open(kFolder + "vq3r", IoMode::kBuffered));
  Require(container->SetExpertDims(kGoldens[0].dims));
  Progress progress;
  Require(VerifyContainer(*container, progress));
  BOOST_REQUIRE_EQUAL(container->specials().size(), 2u);
  BOOST_TEST(container->specials()[1].text == "<|caf\u00e9\n\U0001f600|>");
  BOOST_REQUIRE(container->chat().has_value());
  BOOST_TEST((*container->chat())["open"].get<std::string>() == "<a>");
  BOOST_TEST(container->rank_file().size() == 21u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
