// SPDX-License-Identifier: Apache-2.0
//
// A small container with random weights, written by ContainerWriter into a folder of its own that
// is removed with the object. The same options give the same bytes. For tests of all that reads
// containers; what the bytes should be is tested elsewhere (tests/golden). Throws when it cannot be
// written: a test without its container is a failed test.

#ifndef WASTE_TESTS_SUPPORT_TINY_CONTAINER_H_
#define WASTE_TESTS_SUPPORT_TINY_CONTAINER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/half.h"
#include "container/container.h"
#include "container/writer.h"
#include "quant/expert_format.h"
#include "quant/trunk_format.h"

namespace waste {

inline void Require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

template <typename T>
T Require(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return *std::move(result);
}

// A path in the system's temporary folder that nobody else has; whatever is there in the end is
// removed, and so is PATH.tmp.
class TemporaryPath {
 public:
  TemporaryPath() {
    static std::atomic<int64_t> next{0};
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string name = "waste-test-" + std::to_string(std::random_device()()) + "-" +
                             std::to_string(now) + "-" + std::to_string(next++);
    path_ = (std::filesystem::temp_directory_path() / name).string();
  }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  ~TemporaryPath() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    std::filesystem::remove_all(path_ + ".tmp", ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Uniform in [-1, 1), the same on every machine (the standard's distributions are not).
inline float RandomWeight(std::mt19937& random) {
  return static_cast<float>(static_cast<int32_t>(random() >> 8) - (1 << 23)) * 0x1p-23f;
}

inline std::vector<float> RandomWeights(int64_t count, std::mt19937& random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = RandomWeight(random);
  return values;
}

// One matrix [rows, columns] with random indices; rows of padding are zero, as a writer leaves
// them.
inline std::vector<uint8_t> RandomIndices(const ExpertCodec& codec, int64_t rows, int64_t columns,
                                          std::mt19937& random) {
  std::vector<uint8_t> indices(static_cast<size_t>(ExpertIndexBytes(codec, rows, columns)));
  std::vector<uint8_t> stage_indices(static_cast<size_t>(codec.stages));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < columns / kVectorSize; ++v) {
      for (uint8_t& index : stage_indices)
        index = static_cast<uint8_t>(random() % static_cast<uint32_t>(codec.entries));
      StoreExpertIndices(codec, columns, r, v, stage_indices, indices);
    }
  }
  return indices;
}

inline std::vector<uint8_t> RandomScales(int64_t count, std::mt19937& random) {
  ByteWriter scales;
  for (int64_t i = 0; i < count; ++i) scales.U16(FloatToHalf(0.02f + 0.01f * RandomWeight(random)));
  return std::move(scales).Take();
}

inline EncodedExpert RandomExpert(const ExpertCodec& codec, const ExpertDims& dims,
                                  std::mt19937& random) {
  EncodedExpert expert;
  expert.gate = RandomIndices(codec, dims.inner, dims.outer, random);
  expert.up = RandomIndices(codec, dims.inner, dims.outer, random);
  expert.down = RandomIndices(codec, dims.outer, dims.inner, random);
  expert.gate_scales = RandomScales(dims.inner, random);
  expert.up_scales = RandomScales(dims.inner, random);
  expert.down_scales = RandomScales(dims.outer, random);
  return expert;
}

struct TinyTensor {
  std::string name;
  TrunkFormat format = TrunkFormat::kF32;
  std::vector<int64_t> shape;
};

struct TinyOptions {
  uint32_t seed = 1;
  int32_t first_layer = 1;  // banks are layers first_layer, first_layer + 1, ...
  int32_t layers = 2;       // banks; 0 for a container without experts
  int32_t experts = 4;      // of each
  ExpertDims dims{.inner = 72, .outer = 40};
  ExpertCodec codec = {};
  std::vector<TinyTensor> trunk = {{"model.norm.weight", TrunkFormat::kF32, {40}}};  // ascending
  std::string arch = "tiny";
  nlohmann::ordered_json config = nlohmann::ordered_json::object();
  std::string rank_file = "IQ== 0\n";  // empty: none is written
  std::vector<SpecialToken> specials = {{1, "[BOS]"}};
  std::string chat = {};  // chat.json's text; empty: none is written
};

inline void AddRandomTensor(const TinyTensor& tensor, std::mt19937& random,
                            ContainerWriter& writer) {
  const int64_t columns = tensor.shape.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  const int64_t row_bytes = TrunkRowBytes(tensor.format, columns);
  const int64_t scale_bytes = IsQuantised(tensor.format) ? 2 * TrunkRowGroups(columns) : 0;
  std::vector<uint8_t> payload(static_cast<size_t>(rows * row_bytes));
  std::vector<uint8_t> scales(static_cast<size_t>(rows * scale_bytes));
  for (int64_t r = 0; r < rows; ++r)
    Require(EncodeTrunkRow(tensor.format, RandomWeights(columns, random),
                           std::span(payload).subspan(r * row_bytes, row_bytes),
                           std::span(scales).subspan(r * scale_bytes, scale_bytes)));
  Require(writer.AddTrunk(tensor.name, tensor.format, tensor.shape, payload, scales));
}

inline void AddRandomBank(int32_t layer, const TinyOptions& options, std::mt19937& random,
                          ContainerWriter& writer) {
  int64_t base = -1;
  for (int32_t book = 0; book < 3 * options.codec.stages; ++book) {
    const int64_t number =
        Require(writer.AddCodebook(RandomWeights(options.codec.entries * kVectorSize, random)));
    if (book == 0) base = number;
  }
  Require(writer.BeginBank(layer, base, options.codec));
  for (int32_t expert = 0; expert < options.experts; ++expert)
    Require(writer.AddExpert(RandomExpert(options.codec, options.dims, random)));
  Require(writer.EndBank());
}

class TinyContainer {
 public:
  explicit TinyContainer(TinyOptions options = {}) : options_(std::move(options)) {
    std::mt19937 random(options_.seed);
    const auto writer = Require(ContainerWriter::Create(path()));
    for (const TinyTensor& tensor : options_.trunk) AddRandomTensor(tensor, random, *writer);
    for (int32_t i = 0; i < options_.layers; ++i)
      AddRandomBank(options_.first_layer + i, options_, random, *writer);
    const auto add_text = [&](const std::string& name, const std::string& text) {
      if (text.empty()) return;
      Require(writer->AddFile(name, std::vector<uint8_t>(text.begin(), text.end())));
    };
    add_text("tokenizer.model", options_.rank_file);
    add_text("chat.json", options_.chat);
    if (!options_.specials.empty()) Require(writer->AddSpecials(options_.specials));
    Require(writer->Finish(options_.arch, "", options_.config));
  }

  const std::string& path() const { return folder_.path(); }
  std::string PathOf(const std::string& name) const { return path() + "/" + name; }
  const TinyOptions& options() const { return options_; }

  // Opened, and told its experts' shape.
  std::unique_ptr<Container> Open(IoMode mode = IoMode::kBuffered,
                                  const FileOpener& open = OpenFile) const {
    auto container = Require(Container::Open(path(), mode, open));
    Require(container->SetExpertDims(options_.dims));
    return container;
  }

 private:
  TinyOptions options_;
  TemporaryPath folder_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_TINY_CONTAINER_H_
