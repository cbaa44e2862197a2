// SPDX-License-Identifier: Apache-2.0

#include "convert/convert.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "chat/chat_format.h"
#include "container/container.h"
#include "container/verify.h"
#include "support/temporary_folder.h"
#include "support/tiny_checkpoint.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(convert)

// Small codebooks, which train fast; the tests of codecs and of determinism take the others.
ConvertOptions Quantising() {
  ConvertOptions options;
  options.quantise_from = 256;
  options.expert_beam = 4;
  options.stages = 4;
  options.index_bits = 6;
  return options;
}

std::map<std::string, std::string> FilesOf(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

std::vector<std::string> LogOf(Progress& progress) {
  std::vector<std::string> lines;
  while (auto line = progress.NextLine()) lines.push_back(*line);
  return lines;
}

bool Mentions(const std::vector<std::string>& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

// Converts and opens what came out.
std::unique_ptr<Container> ConvertAndOpen(const TinyCheckpoint& checkpoint,
                                          const ConvertOptions& options,
                                          const TemporaryFolder& folder) {
  Progress progress;
  const std::string target = folder.PathOf("out");
  const Status status = Convert(checkpoint.path(), target, options, progress);
  BOOST_REQUIRE_MESSAGE(status.ok(), status.message());
  BOOST_TEST(progress.done() == progress.total());
  BOOST_TEST(progress.total() > 0);
  Result<std::unique_ptr<Container>> container = Container::Open(target, IoMode::kBuffered);
  BOOST_REQUIRE_MESSAGE(container.ok(), container.status().message());
  return *std::move(container);
}

std::vector<float> DecodeTrunk(const Container& container, const std::string& name) {
  const TrunkEntry* entry = container.manifest().FindTrunk(name);
  BOOST_REQUIRE_MESSAGE(entry != nullptr, name);
  std::vector<float> values(static_cast<size_t>(entry->rows() * entry->columns()));
  for (int64_t r = 0; r < entry->rows(); ++r) {
    const std::span<float> row(values.data() + r * entry->columns(),
                               static_cast<size_t>(entry->columns()));
    BOOST_REQUIRE(container.ReadTrunkRow(*entry, r, row).ok());
  }
  return values;
}

std::vector<float> DecodeMatrix(const ExpertMatrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows * matrix.columns));
  for (int64_t r = 0; r < matrix.rows; ++r) {
    DecodeExpertRow(matrix, r,
                    {values.data() + r * matrix.columns, static_cast<size_t>(matrix.columns)});
  }
  return values;
}

double RelativeError(const std::vector<float>& values, const std::vector<float>& expected) {
  BOOST_REQUIRE_EQUAL(values.size(), expected.size());
  double error = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(values[i]) - static_cast<double>(expected[i]), 2);
    squares += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(error / squares);
}

// How far the container's experts are from the checkpoint's; also checks every record.
double ExpertErrorOf(Container& container, const TinyCheckpoint& checkpoint, int64_t outer) {
  BOOST_REQUIRE(container.SetExpertDims({TinyCheckpoint::kInner, outer}).ok());
  Progress progress;
  const Status verified = VerifyContainer(container, progress);
  BOOST_TEST(verified.ok(), verified.message());
  Result<AlignedBuffer> buffer = AlignedBuffer::Allocate(container.record_bytes());
  BOOST_REQUIRE(buffer.ok());
  double worst = 0;
  for (int32_t e = 0; e < TinyCheckpoint::kExperts; ++e) {
    BOOST_REQUIRE(container.ReadRecord(1, e, buffer->bytes(), true).ok());
    const Result<ExpertRecord> record = container.ParseRecord(1, e, buffer->bytes());
    BOOST_REQUIRE(record.ok());
    const std::string name =
        checkpoint.prefix() + "model.layers.1.block_sparse_moe.experts." + std::to_string(e) + ".";
    const auto error = [&](const ExpertMatrix& matrix, const char* kind) {
      return RelativeError(DecodeMatrix(matrix), checkpoint.values().at(name + kind + ".weight"));
    };
    worst = std::max(
        {worst, error(record->gate, "w1"), error(record->up, "w3"), error(record->down, "w2")});
  }
  return worst;
}

BOOST_AUTO_TEST_CASE(both_families_come_out_near_what_went_in) {
  for (const bool k3 : {false, true}) {
    for (const int32_t shards : {1, 3}) {
      const TinyCheckpoint checkpoint({.k3 = k3, .bf16 = shards == 1, .shards = shards});
      const TemporaryFolder folder;
      const auto container = ConvertAndOpen(checkpoint, Quantising(), folder);
      BOOST_TEST(container->manifest().arch == (k3 ? "kimi-k3" : "kimi-linear"));
      BOOST_TEST(container->manifest().tensor_prefix == checkpoint.prefix());
      BOOST_TEST(container->rank_file().size() == TinyCheckpoint::RankFile().size());
      BOOST_TEST(container->specials().size() == (k3 ? 5u : 6u));
      for (const auto& [name, values] : checkpoint.values()) {
        if (name.find(".experts.") != std::string::npos) continue;
        BOOST_TEST_CONTEXT(name)
        BOOST_TEST(RelativeError(DecodeTrunk(*container, name), values) < 0.1);
      }
      const int64_t outer = k3 ? TinyCheckpoint::kLatent : TinyCheckpoint::kHidden;
      BOOST_TEST(ExpertErrorOf(*container, checkpoint, outer) < 0.25);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_config_is_kept_word_for_word) {
  const TinyCheckpoint checkpoint({.k3 = true});
  const TemporaryFolder folder;
  const auto container = ConvertAndOpen(checkpoint, Quantising(), folder);
  nlohmann::ordered_json expected = checkpoint.Config()["text_config"];
  expected["_outer"] = {{"architectures", {"KimiK3ForConditionalGeneration"}},
                        {"model_type", "kimi_k3"}};
  BOOST_TEST(container->manifest().config.dump() == expected.dump());
}

BOOST_AUTO_TEST_CASE(size_and_place_decide_the_format_of_a_trunk_tensor) {
  const TinyCheckpoint checkpoint({});
  const struct {
    int32_t bits;
    int64_t from;
    TrunkFormat matrix;
    TrunkFormat table;
  } cases[] = {{4, 256, TrunkFormat::kQ4G, TrunkFormat::kQ8G},
               {3, 256, TrunkFormat::kQ3G, TrunkFormat::kQ8G},
               {8, 256, TrunkFormat::kQ8G, TrunkFormat::kQ8G},
               {4, 640, TrunkFormat::kQ4G, TrunkFormat::kQ8G},  // as many as o_proj has
               {4, 641, TrunkFormat::kF32, TrunkFormat::kQ8G},
               {4, 65536, TrunkFormat::kF32, TrunkFormat::kF32}};
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.bits << " bits from " << c.from) {
      ConvertOptions options = Quantising();
      options.trunk_bits = c.bits;
      options.quantise_from = c.from;
      const TemporaryFolder folder;
      const auto container = ConvertAndOpen(checkpoint, options, folder);
      const auto has = [&](const std::string& name, TrunkFormat format) {
        const TrunkEntry* entry = container->manifest().FindTrunk(name);
        return entry != nullptr && entry->format == format;
      };
      BOOST_TEST(has("model.layers.1.self_attn.o_proj.weight", c.matrix));
      BOOST_TEST(has("model.embed_tokens.weight", c.table));
      BOOST_TEST(has("lm_head.weight", c.table));
      BOOST_TEST(has("model.norm.weight", TrunkFormat::kF32));
      BOOST_TEST(has("model.layers.0.self_attn.q_conv1d.weight", TrunkFormat::kF32));
      const TrunkEntry* conv =
          container->manifest().FindTrunk("model.layers.0.self_attn.q_conv1d.weight");
      BOOST_TEST(conv->shape == std::vector<int64_t>({16, 1, 4}));
    }
  }
}

BOOST_AUTO_TEST_CASE(every_expert_codec_is_written_and_more_stages_lose_less) {
  const TinyCheckpoint checkpoint({});
  const struct {
    int32_t stages;
    int32_t index_bits;
    double most;
  } cases[] = {{2, 8, 0.4}, {3, 8, 0.15}, {4, 8, 0.1}, {6, 8, 0.1}, {4, 6, 0.4}};
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.stages << " stages of " << c.index_bits << " bits") {
      ConvertOptions options = Quantising();
      options.stages = c.stages;
      options.index_bits = c.index_bits;
      const TemporaryFolder folder;
      const auto container = ConvertAndOpen(checkpoint, options, folder);
      BOOST_TEST(ExpertErrorOf(*container, checkpoint, TinyCheckpoint::kHidden) < c.most);
    }
  }
}

BOOST_AUTO_TEST_CASE(bytes_are_the_same_for_every_number_of_threads_and_isa) {
  const TinyCheckpoint checkpoint({.k3 = true, .shards = 2});
  const TemporaryFolder folder;
  std::map<std::string, std::string> first;
  const struct {
    int32_t threads;
    Isa isa;
  } cases[] = {{1, Isa::kBest}, {2, Isa::kBest}, {3, Isa::kBest}, {2, Isa::kScalar}};
  for (const auto& c : cases) {
    ConvertOptions options = Quantising();
    options.stages = 3;
    options.index_bits = 8;
    options.threads = c.threads;
    options.isa = c.isa;
    const std::string target = folder.PathOf(std::to_string(c.threads) + IsaName(c.isa));
    Progress progress;
    BOOST_REQUIRE(Convert(checkpoint.path(), target, options, progress).ok());
    const auto files = FilesOf(target);
    BOOST_TEST(files.contains("manifest.json"));
    if (first.empty()) first = files;
    BOOST_CHECK(files == first);
  }
}

BOOST_AUTO_TEST_CASE(deep_seek_names_give_the_container_of_kimi_names) {
  const TinyCheckpoint kimi({}), deep_seek({.deep_seek_names = true});
  const TemporaryFolder a, b;
  ConvertAndOpen(kimi, Quantising(), a);
  const auto container = ConvertAndOpen(deep_seek, Quantising(), b);
  BOOST_TEST(container->manifest().config["num_experts"] == 3);
  auto one = FilesOf(a.PathOf("out")), two = FilesOf(b.PathOf("out"));
  BOOST_TEST(one["trunk.bin"] == two["trunk.bin"]);
  BOOST_TEST(one["experts-L1.bin"] == two["experts-L1.bin"]);
}

BOOST_AUTO_TEST_CASE(vision_tensors_are_left_out_and_that_is_said) {
  const TinyCheckpoint checkpoint({.k3 = true, .vision = true});
  const TemporaryFolder folder;
  Progress progress;
  BOOST_REQUIRE(Convert(checkpoint.path(), folder.PathOf("out"), Quantising(), progress).ok());
  const std::vector<std::string> log = LogOf(progress);
  BOOST_TEST(Mentions(log, "left out 2 vision tensors"));
  BOOST_TEST(Mentions(log, "experts: relative error"));
  const auto files = FilesOf(folder.PathOf("out"));
  BOOST_TEST(files.at("manifest.json").find("vision_tower") == std::string::npos);
  BOOST_TEST(files.at("manifest.json").find("mm_projector") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_chat_table_is_one_that_readers_take) {
  for (const bool k3 : {false, true}) {
    const TinyCheckpoint checkpoint({.k3 = k3});
    const TemporaryFolder folder;
    const auto container = ConvertAndOpen(checkpoint, Quantising(), folder);
    BOOST_REQUIRE(container->chat().has_value());
    std::vector<std::pair<int32_t, std::string>> specials;
    for (const SpecialToken& token : container->specials())
      specials.emplace_back(token.id, token.text);
    const auto tokenizer = Tokenizer::Create(container->rank_file(), specials, "tokenizer.model");
    BOOST_REQUIRE(tokenizer.ok());
    const auto format = MakeTableFormat(**tokenizer, *container->chat(), "chat.json");
    BOOST_REQUIRE_MESSAGE(format.ok(), format.status().message());
    std::vector<int32_t> tokens;
    BOOST_REQUIRE((*format)->AppendMessage(Role::kUser, "hi", false, tokens).ok());
    (*format)->AppendOpening(false, tokens);
    std::string text;
    for (const int32_t token : tokens) text += (*tokenizer)->Bytes(token);
    BOOST_TEST(text == (k3 ? "<|open|>message role=\"user\"<|sep|>hi<|close|>message<|sep|>"
                             "<|end_of_msg|><|open|>message role=\"assistant\"<|sep|>"
                             "<|open|>response<|sep|>"
                           : "<|im_user|>user<|im_middle|>hi<|im_end|>"
                             "<|im_assistant|>assistant<|im_middle|>"));
  }
}

BOOST_AUTO_TEST_CASE(a_chat_template_is_copied_and_other_files_are_not) {
  TinyCheckpoint checkpoint({});
  checkpoint.Write("chat_template.jinja", "{{ x }}");
  checkpoint.Write("README.md", "?");
  const TemporaryFolder folder;
  ConvertAndOpen(checkpoint, Quantising(), folder);
  const auto files = FilesOf(folder.PathOf("out"));
  BOOST_TEST(files.at("chat_template.jinja") == "{{ x }}");
  BOOST_TEST(!files.contains("README.md"));
}

BOOST_AUTO_TEST_CASE(the_source_is_left_as_it_was) {
  const TinyCheckpoint checkpoint({.shards = 2});
  const auto before = FilesOf(checkpoint.path());
  const TemporaryFolder folder;
  ConvertAndOpen(checkpoint, Quantising(), folder);
  BOOST_CHECK(FilesOf(checkpoint.path()) == before);
}

// Converts, expecting this failure and nothing left behind.
void CheckFails(const TinyCheckpoint& checkpoint, const ConvertOptions& options, Code code,
                const std::string& named) {
  const TemporaryFolder folder;
  Progress progress;
  const Status status = Convert(checkpoint.path(), folder.PathOf("out"), options, progress);
  BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(code), status.message());
  BOOST_TEST(status.message().find(named) != std::string::npos, status.message());
  BOOST_TEST(FilesOf(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
  const TinyCheckpoint checkpoint({});
  const struct {
    std::function<void(ConvertOptions&)> set;
    const char* named;
  } cases[] = {
      {[](ConvertOptions& o) { o.threads = 0; }, "threads"},
      {[](ConvertOptions& o) { o.stages = 5; }, "stages"},
      {[](ConvertOptions& o) { o.index_bits = 7; }, "index_bits"},
      {[](ConvertOptions& o) { o.stages = 3; }, "stages 4"},
      {[](ConvertOptions& o) { o.trunk_bits = 2; }, "trunk_bits"},
      {[](ConvertOptions& o) { o.expert_beam = 0; }, "expert_beam"},
      {[](ConvertOptions& o) { o.expert_beam = 65; }, "expert_beam"},
      {[](ConvertOptions& o) { o.quantise_from = -1; }, "quantise_from"},
  };
  for (const auto& c : cases) {
    ConvertOptions options = Quantising();
    c.set(options);
    CheckFails(checkpoint, options, Code::kArgument, c.named);
  }
}

BOOST_AUTO_TEST_CASE(a_target_that_exists_is_refused_and_untouched) {
  const TinyCheckpoint checkpoint({});
  const TemporaryFolder folder;
  folder.Write("out", "mine");
  Progress progress;
  const Status status = Convert(checkpoint.path(), folder.PathOf("out"), Quantising(), progress);
  BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kArgument));
  BOOST_TEST(FilesOf(folder.path()).at("out") == "mine");
}

BOOST_AUTO_TEST_CASE(a_cancelled_conversion_leaves_nothing) {
  const TinyCheckpoint checkpoint({});
  const TemporaryFolder folder;
  Progress progress;
  progress.Cancel();
  const Status status = Convert(checkpoint.path(), folder.PathOf("out"), Quantising(), progress);
  BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kCancelled));
  BOOST_TEST(FilesOf(folder.path()).empty());
}

BOOST_AUTO_TEST_CASE(a_conversion_cancelled_half_way_leaves_nothing) {
  const TinyCheckpoint checkpoint({});
  ConvertOptions options = Quantising();
  options.threads = 2;
  options.stages = 6;
  options.index_bits = 8;
  bool was_half_way = false;
  // When the other thread gets to run is the system's affair: try until it was in time.
  for (int attempt = 0; attempt < 20 && !was_half_way; ++attempt) {
    const TemporaryFolder folder;
    Progress progress;
    std::thread canceller([&] {
      while (progress.done() == 0) std::this_thread::yield();
      progress.Cancel();
    });
    const Status status = Convert(checkpoint.path(), folder.PathOf("out"), options, progress);
    canceller.join();
    if (status.ok()) continue;
    BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kCancelled));
    BOOST_TEST(FilesOf(folder.path()).empty());
    was_half_way = progress.done() < progress.total();
  }
  BOOST_TEST(was_half_way);
}

// A checkpoint with one more file of tensors.
void AddShard(TinyCheckpoint& checkpoint, const std::string& name, const std::string& type,
              const std::vector<int64_t>& shape, const std::string& bytes) {
  std::filesystem::rename(checkpoint.PathOf("model.safetensors"),
                          checkpoint.PathOf("first.safetensors"));
  SafetensorsText file;
  file.Add(name, type, shape, bytes);
  checkpoint.Write("second.safetensors", file.Text());
}

BOOST_AUTO_TEST_CASE(tensors_that_do_not_fit_the_config_are_refused_by_name) {
  const std::string experts = "model.layers.1.block_sparse_moe.experts.";
  const struct {
    std::string name;
    std::string type;
    std::vector<int64_t> shape;
    std::string bytes;
    Code code;
    std::string named;
  } cases[] = {
      {experts + "3.w1.weight",
       "F32",
       {24, 40},
       std::string(24 * 40 * 4, '\0'),
       Code::kCorrupt,
       "experts up to 3"},
      {experts + "0.w1.weight_packed", "U8", {4}, "1234", Code::kUnsupported, "weight_packed"},
      {experts + "gate_up_proj", "F32", {1}, "1234", Code::kUnsupported, "gate_up_proj"},
      {"model.layers.0.block_sparse_moe.experts.0.w1.weight",
       "F32",
       {1},
       "1234",
       Code::kCorrupt,
       "layer 0"},
      {"model.layers.1.mlp.gate.weight", "F32", {1}, "1234", Code::kCorrupt, "mlp.gate.weight"},
      {"model.x.weight", "F8_E4M3", {4}, "1234", Code::kUnsupported, "model.x.weight"},
      {"model.x.weight", "F32", {1, 1, 1, 1, 1}, "1234", Code::kUnsupported, "model.x.weight"},
      {"model.x.weight", "F32", {2}, AsF32({1, INFINITY}), Code::kUnsupported, "model.x.weight"},
      {"model.x.weight", "F32", {2, 1}, AsF32({1, NAN}), Code::kUnsupported, "row 1"},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.name << " " << c.type) {
      TinyCheckpoint checkpoint({});
      AddShard(checkpoint, c.name, c.type, c.shape, c.bytes);
      CheckFails(checkpoint, Quantising(), c.code, c.named);
    }
  }
}

BOOST_AUTO_TEST_CASE(experts_beyond_the_models_layers_are_left_out_and_that_is_said) {
  TinyCheckpoint checkpoint({});
  AddShard(checkpoint, "model.layers.2.block_sparse_moe.experts.0.w1.weight", "F32", {1}, "1234");
  const TemporaryFolder folder;
  Progress progress;
  BOOST_REQUIRE(Convert(checkpoint.path(), folder.PathOf("out"), Quantising(), progress).ok());
  BOOST_TEST(Mentions(LogOf(progress), "left out 1 expert tensors"));
}

// Overwrites a tensor's values in the one file of a checkpoint of F32.
void SetValue(TinyCheckpoint& checkpoint, const std::string& name, float value) {
  const std::string path = checkpoint.PathOf("model.safetensors");
  std::string text = FilesOf(checkpoint.path()).at("model.safetensors");
  uint64_t header_bytes = 0;
  for (size_t i = 8; i-- > 0;) header_bytes = header_bytes << 8 | static_cast<uint8_t>(text[i]);
  const auto header = nlohmann::json::parse(text.substr(8, header_bytes));
  const uint64_t begin = header[name]["data_offsets"][0].get<uint64_t>();
  text.replace(8 + header_bytes + begin, 4, AsF32({value}));
  checkpoint.Write("model.safetensors", text);
}

BOOST_AUTO_TEST_CASE(weights_that_no_scale_can_hold_are_refused_by_name) {
  const std::string expert = "model.layers.1.block_sparse_moe.experts.1.w2.weight";
  for (const auto& [value, named] :
       {std::pair<float, std::string>{65505, "65504"}, {-INFINITY, "finite"}, {NAN, "finite"}}) {
    TinyCheckpoint checkpoint({.bf16 = false});
    SetValue(checkpoint, expert, value);
    CheckFails(checkpoint, Quantising(), Code::kUnsupported, named);
    CheckFails(checkpoint, Quantising(), Code::kUnsupported, expert);
  }
}

BOOST_AUTO_TEST_CASE(a_missing_expert_or_end_of_the_model_is_named) {
  const struct {
    std::string name;
    std::string renamed;  // as long
    std::string named;
  } cases[] = {
      {"experts.2.w2.weight", "experts.9.w2.weight", "w2 of expert 2 of layer 1"},
      {"experts.0.w1.weight", "experts.9.w1.weight", "w1 of expert 0 of layer 1"},
      {"lm_head.weight", "xx_head.weight", "lm_head.weight"},
      {"model.norm.weight", "model.xxxx.weight", "model.norm.weight"},
  };
  for (const auto& c : cases) {
    TinyCheckpoint checkpoint({});
    std::string text = FilesOf(checkpoint.path()).at("model.safetensors");
    text.replace(text.find(c.name), c.name.size(), c.renamed);
    checkpoint.Write("model.safetensors", text);
    CheckFails(checkpoint, Quantising(), Code::kCorrupt, c.named);
  }
}

BOOST_AUTO_TEST_CASE(a_config_that_no_reader_takes_is_refused) {
  const struct {
    const char* key;
    nlohmann::ordered_json value;
    Code code;
  } cases[] = {
      {"hidden_size", nullptr, Code::kFormat},       {"hidden_size", 48, Code::kCorrupt},
      {"moe_intermediate_size", 20, Code::kCorrupt}, {"num_experts", 4, Code::kCorrupt},
      {"mla_use_nope", false, Code::kUnsupported},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.key) {
      TinyCheckpoint checkpoint({});
      nlohmann::ordered_json config = checkpoint.Config();
      config[c.key] = c.value;
      if (c.value.is_null()) config.erase(c.key);
      checkpoint.Write("config.json", config.dump());
      CheckFails(checkpoint, Quantising(), c.code, "");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_without_a_usable_tokenizer_is_refused) {
  TinyCheckpoint none({});
  std::filesystem::remove(none.PathOf("tiktoken.model"));
  CheckFails(none, Quantising(), Code::kIo, "no tokenizer");
  TinyCheckpoint damaged({});
  damaged.Write("tiktoken.model", "AA== 0\nAA== 1\n");
  CheckFails(damaged, Quantising(), Code::kFormat, "tiktoken.model");
  TinyCheckpoint clash({});
  clash.Write("tokenizer_config.json", R"({"added_tokens_decoder":{"5":{"content":"x"}}})");
  CheckFails(clash, Quantising(), Code::kCorrupt, "tiktoken.model");
  TinyCheckpoint no_id({});
  no_id.Write("tokenizer_config.json", R"({"added_tokens_decoder":{"x":{"content":"x"}}})");
  CheckFails(no_id, Quantising(), Code::kFormat, "tokenizer_config.json");
  TinyCheckpoint json({});
  std::filesystem::remove(json.PathOf("tiktoken.model"));
  json.Write("tokenizer.json", R"({"model":{"type":"Unigram"}})");
  CheckFails(json, Quantising(), Code::kUnsupported, "tokenizer.json");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
