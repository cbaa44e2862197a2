// SPDX-License-Identifier: Apache-2.0

#include "container/writer.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <random>

#include "base/half.h"
#include "os/file.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

std::vector<uint8_t> ReadRecord(const Container& container, int32_t layer, int32_t expert) {
  std::vector<uint8_t> record(static_cast<size_t>(container.record_bytes()));
  Require(container.ReadRecord(layer, expert, record, true));
  return record;
}

// A matrix of the container equals indices, scales and books that were handed to the writer.
void CheckMatrix(const ExpertMatrix& matrix, const std::vector<uint8_t>& indices,
                 const std::vector<uint8_t>& scales, const std::vector<std::vector<float>>& books) {
  BOOST_REQUIRE_EQUAL(scales.size(), static_cast<size_t>(2 * matrix.rows));
  BOOST_CHECK(std::equal(indices.begin(), indices.end(), matrix.indices));
  BOOST_CHECK(std::equal(scales.begin(), scales.end(), matrix.scales));
  for (size_t stage = 0; stage < books.size(); ++stage)
    for (size_t i = 0; i < books[stage].size(); ++i)
      BOOST_REQUIRE_EQUAL(matrix.books[stage][i], HalfToFloat(FloatToHalf(books[stage][i])));
}

std::vector<float> DecodeAll(const ExpertMatrix& matrix) {
  std::vector<float> weights(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t r = 0; r < matrix.rows; ++r)
    DecodeExpertRow(matrix, r, std::span(weights).subspan(r * matrix.columns, matrix.columns));
  return weights;
}

BOOST_AUTO_TEST_SUITE(writer)

BOOST_AUTO_TEST_CASE(every_expert_codec_survives_the_way_to_disk_and_back) {
  for (const ExpertCodec& codec : {ExpertCodec{IndexKind::kByte, 2, 256},
                                   {IndexKind::kByte, 3, 256},
                                   {IndexKind::kByte, 4, 256},
                                   {IndexKind::kByte, 6, 256},
                                   {IndexKind::kPacked6, 4, 64}}) {
    const ExpertDims dims{.inner = 72, .outer = 40};
    const TemporaryPath folder;
    std::mt19937 random(3);
    std::vector<std::vector<float>> books;
    std::vector<EncodedExpert> experts;
    const auto writer = Require(ContainerWriter::Create(folder.path()));
    for (int32_t layer : {1, 7}) {
      const int64_t base = static_cast<int64_t>(books.size());
      for (int32_t i = 0; i < 3 * codec.stages; ++i) {
        books.push_back(RandomWeights(codec.entries * kVectorSize, random));
        BOOST_TEST(Require(writer->AddCodebook(books.back())) == base + i);
      }
      Require(writer->BeginBank(layer, base, codec));
      for (int e = 0; e < 3; ++e) {
        experts.push_back(RandomExpert(codec, dims, random));
        Require(writer->AddExpert(experts.back()));
      }
      Require(writer->EndBank());
    }
    Require(writer->Finish("tiny", "", nlohmann::ordered_json::object()));

    const auto container = Require(Container::Open(folder.path(), IoMode::kBuffered));
    Require(container->SetExpertDims(dims));
    BOOST_TEST(container->manifest().codec.stages == codec.stages);
    BOOST_TEST(container->codebook_bytes() ==
               static_cast<int64_t>(books.size()) * codec.entries * 8 * (4 + 4 + 2));
    for (int32_t layer : {1, 7}) {
      for (int32_t e = 0; e < 3; ++e) {
        const EncodedExpert& expert = experts[static_cast<size_t>((layer == 7 ? 3 : 0) + e)];
        const auto record = ReadRecord(*container, layer, e);
        const ExpertRecord parsed = Require(container->ParseRecord(layer, e, record));
        const auto first = books.begin() + (layer == 7 ? 3 * codec.stages : 0);
        const auto kind_books = [&](int32_t kind) {
          return std::vector(first + kind * codec.stages, first + (kind + 1) * codec.stages);
        };
        CheckMatrix(parsed.gate, expert.gate, expert.gate_scales, kind_books(0));
        CheckMatrix(parsed.up, expert.up, expert.up_scales, kind_books(1));
        CheckMatrix(parsed.down, expert.down, expert.down_scales, kind_books(2));
        BOOST_TEST(parsed.down.rows == 40);
        BOOST_TEST(parsed.down.columns == 72);
        BOOST_TEST(DecodeAll(parsed.gate).size() == 72u * 40);  // asan watches what it reads
        BOOST_TEST(DecodeAll(parsed.down).size() == 72u * 40);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_trunk_format_survives_the_way_to_disk_and_back) {
  const TrunkFormat kFormats[] = {TrunkFormat::kF32, TrunkFormat::kF16, TrunkFormat::kQ8G,
                                  TrunkFormat::kQ4G, TrunkFormat::kQ3G};
  const std::vector<int64_t> kShapes[] = {{7}, {3, 128}, {2, 3, 130}, {2, 1, 3, 40}};
  const TemporaryPath folder;
  std::mt19937 random(4);
  struct Tensor {
    std::string name;
    TrunkFormat format;
    std::vector<int64_t> shape;
    std::vector<uint8_t> payload, scales;
  };
  std::vector<Tensor> tensors;
  const auto writer = Require(ContainerWriter::Create(folder.path()));
  for (const TrunkFormat format : kFormats) {
    for (const auto& shape : kShapes) {
      const int64_t columns = shape.back();
      int64_t rows = 1;
      for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
      Tensor tensor{"t" + std::to_string(10 + tensors.size()), format, shape, {}, {}};
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<uint8_t> payload(static_cast<size_t>(TrunkRowBytes(format, columns)));
        std::vector<uint8_t> scales(
            IsQuantised(format) ? static_cast<size_t>(2 * TrunkRowGroups(columns)) : 0);
        Require(EncodeTrunkRow(format, RandomWeights(columns, random), payload, scales));
        tensor.payload.insert(tensor.payload.end(), payload.begin(), payload.end());
        tensor.scales.insert(tensor.scales.end(), scales.begin(), scales.end());
      }
      Require(writer->AddTrunk(tensor.name, format, shape, tensor.payload, tensor.scales));
      tensors.push_back(std::move(tensor));
    }
  }
  Require(writer->Finish("tiny", "prefix.", nlohmann::ordered_json::object()));

  const auto container = Require(Container::Open(folder.path(), IoMode::kAuto));
  BOOST_TEST(container->manifest().tensor_prefix == "prefix.");
  BOOST_TEST(container->manifest().trunk.size() == tensors.size());
  BOOST_TEST(!container->manifest().has_experts);
  BOOST_TEST(!container->direct_io());
  for (const Tensor& tensor : tensors) {
    const TrunkEntry* const entry = container->manifest().FindTrunk(tensor.name);
    BOOST_REQUIRE(entry != nullptr);
    BOOST_CHECK(entry->format == tensor.format);
    BOOST_TEST(entry->shape == tensor.shape);
    std::vector<uint8_t> bytes(static_cast<size_t>(entry->bytes));
    Require(container->ReadTrunk(*entry, bytes));
    std::vector<uint8_t> expected = tensor.payload;
    expected.insert(expected.end(), tensor.scales.begin(), tensor.scales.end());
    BOOST_TEST(bytes == expected);
    const TrunkMatrix matrix{.format = tensor.format,
                             .rows = entry->rows(),
                             .columns = entry->columns(),
                             .payload = tensor.payload.data(),
                             .scales = tensor.scales.empty() ? nullptr : tensor.scales.data()};
    std::vector<float> from_disk(static_cast<size_t>(entry->columns()));
    std::vector<float> from_memory(from_disk.size());
    for (int64_t r = 0; r < entry->rows(); ++r) {
      Require(container->ReadTrunkRow(*entry, r, from_disk));
      DecodeTrunkRow(matrix, r, from_memory);
      BOOST_TEST(from_disk == from_memory);
    }
  }
}

BOOST_AUTO_TEST_CASE(side_files_are_written_verbatim) {
  TinyOptions options;
  options.rank_file = std::string("IQ== 0\n\0\xff", 9);
  options.specials = {{9, "<|end|>"}, {8, "é"}};
  options.chat = R"({"user": ["a", "b"]})";
  const TinyContainer tiny(options);
  const auto container = tiny.Open();
  BOOST_TEST(std::string(container->rank_file().begin(), container->rank_file().end()) ==
             options.rank_file);
  BOOST_REQUIRE(container->specials().size() == 2u);
  BOOST_TEST(container->specials()[0].id == 8);
  BOOST_TEST(container->specials()[0].text == "é");
  BOOST_REQUIRE(container->chat().has_value());
  BOOST_TEST(container->chat()->dump() == R"({"user":["a","b"]})");
}

BOOST_AUTO_TEST_CASE(folder_appears_only_when_it_is_finished) {
  const TemporaryPath folder;
  {
    const auto writer = Require(ContainerWriter::Create(folder.path()));
    Require(writer->AddFile("tokenizer.model", std::vector<uint8_t>{1}));
    BOOST_TEST(!FileExists(folder.path()));
    BOOST_TEST(IsFolder(folder.path() + ".tmp"));
    Require(writer->Finish("a", "", nlohmann::ordered_json::object()));
    BOOST_TEST(IsFolder(folder.path()));
    BOOST_TEST(!FileExists(folder.path() + ".tmp"));
  }
  BOOST_TEST(IsFolder(folder.path()));  // the finished writer's destructor leaves it alone
  const auto names = Require(ListFolder(folder.path()));
  BOOST_TEST(names == (std::vector<std::string>{"manifest.json", "tokenizer.model", "trunk.bin"}));
}

BOOST_AUTO_TEST_CASE(writer_destroyed_early_leaves_nothing) {
  const TemporaryPath folder;
  {
    std::mt19937 random(5);
    const auto writer = Require(ContainerWriter::Create(folder.path()));
    AddRandomTensor({"a", TrunkFormat::kF32, {3}}, random, *writer);
    AddRandomBank(0, TinyOptions(), random, *writer);
    Require(writer->AddFile("chat.json", std::vector<uint8_t>{1}));
    Require(writer->AddCodebook(RandomWeights(256 * 8, random)));
    Require(writer->BeginBank(1, 0, ExpertCodec()));
    Require(writer->AddExpert(RandomExpert(ExpertCodec(), TinyOptions().dims, random)));
  }
  BOOST_TEST(!FileExists(folder.path()));
  BOOST_TEST(!FileExists(folder.path() + ".tmp"));
}

BOOST_AUTO_TEST_CASE(what_exists_is_never_overwritten) {
  const TemporaryPath folder;
  Require(CreateFolder(folder.path()));
  BOOST_CHECK(ContainerWriter::Create(folder.path()).status().code() == Code::kArgument);
  BOOST_CHECK(ContainerWriter::Create(folder.path() + "/").status().code() == Code::kArgument);
  const TemporaryPath other;
  Require(CreateFolder(other.path() + ".tmp"));
  const Status left = ContainerWriter::Create(other.path()).status();
  BOOST_CHECK(left.code() == Code::kArgument);
  BOOST_CHECK(left.message().find(other.path() + ".tmp: ") == 0);
  BOOST_TEST(IsFolder(other.path() + ".tmp"));

  const TemporaryPath late;
  const auto writer = Require(ContainerWriter::Create(late.path()));
  Require(CreateFolder(late.path()));  // somebody else was faster
  BOOST_CHECK(writer->Finish("a", "", nlohmann::ordered_json::object()).code() == Code::kArgument);
}

BOOST_AUTO_TEST_CASE(folder_that_cannot_be_made_is_an_io_error) {
  const TemporaryPath folder;
  BOOST_CHECK(ContainerWriter::Create(folder.path() + "/a/b").status().code() == Code::kIo);
}

BOOST_AUTO_TEST_CASE(what_readers_refuse_is_not_written) {
  const TemporaryPath folder;
  std::mt19937 random(6);
  const auto writer = Require(ContainerWriter::Create(folder.path()));
  const std::vector<uint8_t> four(4);
  Require(writer->AddTrunk("b", TrunkFormat::kF32, {1}, four, {}));
  const auto trunk = [&](const std::string& name, std::vector<int64_t> shape) {
    return writer->AddTrunk(name, TrunkFormat::kF32, std::move(shape), four, {}).code();
  };
  BOOST_CHECK(trunk("b", {1}) == Code::kArgument);
  BOOST_CHECK(trunk("a", {1}) == Code::kArgument);
  BOOST_CHECK(trunk("c", {}) == Code::kUnsupported);
  BOOST_CHECK(trunk("c", {1, 1, 1, 1, 1}) == Code::kUnsupported);
  BOOST_CHECK(trunk("c", {0}) == Code::kUnsupported);
  BOOST_CHECK(trunk("c", {(int64_t{1} << 26) + 1}) == Code::kUnsupported);
  BOOST_CHECK(trunk("", {1}) == Code::kUnsupported);

  const auto file = [&](const std::string& name) { return writer->AddFile(name, four).code(); };
  Require(writer->AddFile("a.json", four));
  for (const char* name : {"", ".", "..", "a/b", "../a", "trunk.bin", "codebooks.bin", "a.json",
                           "manifest.json", "experts-L1.bin", "trunk.bin.tmp"})
    BOOST_TEST_CONTEXT(name) { BOOST_CHECK(file(name) == Code::kArgument); }

  for (int i = 0; i < 9; ++i) Require(writer->AddCodebook(RandomWeights(256 * 8, random)));
  BOOST_CHECK(writer->BeginBank(1, 1, ExpertCodec()).code() == Code::kArgument);
  BOOST_CHECK(writer->BeginBank(1, -1, ExpertCodec()).code() == Code::kArgument);
  Require(writer->BeginBank(1, 0, ExpertCodec()));
  EncodedExpert odd;  // 4 x 4
  odd.gate_scales.resize(8);
  odd.up_scales.resize(8);
  odd.down_scales.resize(8);
  BOOST_CHECK(writer->AddExpert(odd).code() == Code::kUnsupported);
  Require(writer->AddExpert(RandomExpert(ExpertCodec(), {8, 8}, random)));
  Require(writer->EndBank());
  BOOST_CHECK(writer->BeginBank(1, 0, ExpertCodec()).code() == Code::kArgument);

  // A config whose layers are not all there would make a container that nobody can open.
  const auto config = nlohmann::ordered_json::parse(
      R"({"first_k_dense_replace": 1, "num_hidden_layers": 3, "num_experts": 1})");
  const Status missing = writer->Finish("a", "", config);
  BOOST_CHECK(missing.code() == Code::kCorrupt);
  BOOST_CHECK(missing.message().find("layer 2 has experts") != std::string::npos);
  BOOST_TEST(!FileExists(folder.path()));
}

BOOST_AUTO_TEST_CASE(same_input_gives_the_same_bytes) {
  const TinyContainer first, second;
  const auto names = Require(ListFolder(first.path()));
  BOOST_TEST(names == Require(ListFolder(second.path())));
  for (const std::string& name : names)
    BOOST_TEST(Require(ReadWholeFile(first.PathOf(name), 1 << 24)) ==
               Require(ReadWholeFile(second.PathOf(name), 1 << 24)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
