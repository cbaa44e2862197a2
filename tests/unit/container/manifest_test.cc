// SPDX-License-Identifier: Apache-2.0

#include "container/manifest.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "container/json_text.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

// A Kimi-Linear-like manifest, abridged to two MoE layers; its numbers are those of the format's
// page.
constexpr const char* kText = R"({"format_version":0,"arch":"kimi-linear","tensor_prefix":"",
"config":{"num_hidden_layers":3,"hidden_size":2304,"num_experts":256,"num_experts_per_token":8,
 "moe_intermediate_size":1024,"first_k_dense_replace":1,"rms_norm_eps":1e-05},
"expert_quant":{"fmt":"VQ3R","stages":3,"vec_dim":8,"entries":256,"index_block":64,"index_bits":8,
 "bits_per_weight":3.0},
"layers":{"1":{"file":"experts-L1.bin","experts":256,"bytes":682622976,"codebook_base":0},
 "2":{"file":"experts-L2.bin","experts":256,"bytes":682622976,"codebook_base":9}},
"trunk":[
 {"name":"lm_head.weight","fmt":2,"off":0,"shape":[163840,2304],"group":128,"scale_off":377487360,
  "bytes":383385600},
 {"name":"model.norm.weight","fmt":0,"off":383385600,"shape":[2304],"bytes":9216}]})";

Json Good() { return Json::parse(kText); }

Status StatusOf(const std::string& text) {
  return ParseManifest(text, "model/manifest.json").status();
}

// What a change to the good manifest must lead to.
struct Case {
  const char* pointer;  // what is replaced, or added
  const char* value;    // JSON; null pointer: removed
  Code code;
  const char* words;  // in the message
};

void CheckCase(const Case& c) {
  Json changed = Good();
  const Json::json_pointer pointer(c.pointer);
  if (c.value != nullptr) {
    changed[pointer] = Json::parse(c.value);
  } else {
    changed.at(pointer.parent_pointer()).erase(pointer.back());
  }
  const Status status = StatusOf(changed.dump());
  BOOST_TEST_CONTEXT(c.pointer << " = " << (c.value ? c.value : "(removed)") << ": "
                               << status.message()) {
    BOOST_CHECK(status.code() == c.code);
    BOOST_CHECK(status.message().find("model/manifest.json: ") == 0);
    BOOST_CHECK(status.message().find(c.words) != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE(manifest)

BOOST_AUTO_TEST_CASE(good_manifest_is_read_field_by_field) {
  const auto manifest = ParseManifest(kText, "m");
  BOOST_REQUIRE_MESSAGE(manifest.ok(), manifest.status().message());
  BOOST_TEST(manifest->arch == "kimi-linear");
  BOOST_TEST(manifest->tensor_prefix == "");
  BOOST_TEST(manifest->config["hidden_size"].get<int>() == 2304);
  BOOST_TEST(manifest->has_experts);
  BOOST_CHECK(manifest->codec.kind == IndexKind::kByte);
  BOOST_TEST(manifest->codec.stages == 3);
  BOOST_TEST(manifest->codec.entries == 256);
  BOOST_TEST(manifest->layers.size() == 2u);
  BOOST_TEST(manifest->layers.at(2).file == "experts-L2.bin");
  BOOST_TEST(manifest->layers.at(2).experts == 256);
  BOOST_TEST(manifest->layers.at(2).codebook_base == 9);
  BOOST_TEST(manifest->layers.at(2).record_bytes() == 2666496);  // Kimi-Linear's, of the page
  const TrunkEntry* const head = manifest->FindTrunk("lm_head.weight");
  BOOST_REQUIRE(head != nullptr);
  BOOST_CHECK(head->format == TrunkFormat::kQ8G);
  BOOST_TEST(head->rows() == 163840);
  BOOST_TEST(head->columns() == 2304);
  BOOST_TEST(head->offset == 0);
  BOOST_TEST(head->scale_offset == 377487360);
  BOOST_TEST(head->bytes == 383385600);
  const TrunkEntry* const norm = manifest->FindTrunk("model.norm.weight");
  BOOST_REQUIRE(norm != nullptr);
  BOOST_TEST(norm->rows() == 1);
  BOOST_TEST(norm->scale_offset == -1);
  BOOST_CHECK(manifest->FindTrunk("model.norm") == nullptr);
  BOOST_CHECK(manifest->FindTrunk("") == nullptr);
}

BOOST_AUTO_TEST_CASE(what_must_be_there_is_asked_for) {
  const Case kCases[] = {
      {"/format_version", nullptr, Code::kFormat, "no \"format_version\""},
      {"/arch", nullptr, Code::kFormat, "no \"arch\""},
      {"/tensor_prefix", nullptr, Code::kFormat, "no \"tensor_prefix\""},
      {"/config", nullptr, Code::kFormat, "no \"config\""},
      {"/expert_quant", nullptr, Code::kFormat, "no \"expert_quant\""},
      {"/trunk", nullptr, Code::kFormat, "no \"trunk\""},
      {"/expert_quant/fmt", nullptr, Code::kFormat, "expert_quant: there is no \"fmt\""},
      {"/expert_quant/stages", nullptr, Code::kFormat, "no \"stages\""},
      {"/expert_quant/vec_dim", nullptr, Code::kFormat, "no \"vec_dim\""},
      {"/expert_quant/entries", nullptr, Code::kFormat, "no \"entries\""},
      {"/layers/1/file", nullptr, Code::kFormat, "layer 1: there is no \"file\""},
      {"/layers/1/experts", nullptr, Code::kFormat, "no \"experts\""},
      {"/layers/1/bytes", nullptr, Code::kFormat, "no \"bytes\""},
      {"/layers/1/codebook_base", nullptr, Code::kFormat, "no \"codebook_base\""},
      {"/layers/2", nullptr, Code::kCorrupt, "layer 2 has experts, but"},
      {"/trunk/0/name", nullptr, Code::kFormat, "trunk tensor 0: there is no \"name\""},
      {"/trunk/0/fmt", nullptr, Code::kFormat, "\"lm_head.weight\": there is no \"fmt\""},
      {"/trunk/0/off", nullptr, Code::kFormat, "no \"off\""},
      {"/trunk/0/shape", nullptr, Code::kFormat, "no \"shape\""},
      {"/trunk/0/group", nullptr, Code::kFormat, "no \"group\""},
      {"/trunk/0/scale_off", nullptr, Code::kFormat, "no \"scale_off\""},
      {"/trunk/0/bytes", nullptr, Code::kFormat, "no \"bytes\""},
  };
  for (const Case& c : kCases) CheckCase(c);
}

BOOST_AUTO_TEST_CASE(wrong_types_are_format_errors) {
  const char* const kPointers[] = {"/format_version",
                                   "/arch",
                                   "/tensor_prefix",
                                   "/config",
                                   "/trunk",
                                   "/layers",
                                   "/layers/1",
                                   "/layers/1/file",
                                   "/layers/1/experts",
                                   "/layers/1/bytes",
                                   "/expert_quant",
                                   "/layers/1/codebook_base",
                                   "/expert_quant/fmt",
                                   "/trunk/0",
                                   "/expert_quant/stages",
                                   "/expert_quant/vec_dim",
                                   "/trunk/0/name",
                                   "/expert_quant/entries",
                                   "/expert_quant/index_bits",
                                   "/trunk/0/fmt",
                                   "/expert_quant/index_block",
                                   "/trunk/0/off",
                                   "/trunk/0/shape",
                                   "/trunk/0/shape/1",
                                   "/trunk/0/group",
                                   "/trunk/0/bytes",
                                   "/trunk/0/scale_off"};
  for (const char* pointer : kPointers)
    for (const char* value : {"null", "true", "1.5"})
      CheckCase({pointer, value, Code::kFormat, ""});
  for (const char* root : {"[]", "null", "7", "\"manifest\"", "[{}]"})
    BOOST_CHECK(StatusOf(root).code() == Code::kFormat);
  BOOST_CHECK(StatusOf("{").code() == Code::kFormat);
  BOOST_CHECK(StatusOf(std::string(kText) + std::string("\0", 1)).code() == Code::kFormat);
}

BOOST_AUTO_TEST_CASE(newer_versions_are_told_from_damage) {
  CheckCase({"/format_version", "1", Code::kVersion, "container format 1"});
  CheckCase({"/format_version", "18446744073709551615", Code::kVersion, "container format"});
  CheckCase({"/format_version", "-1", Code::kFormat, "-1"});
}

BOOST_AUTO_TEST_CASE(trunk_numbers_that_contradict_each_other_are_refused) {
  const Case kCases[] = {
      {"/trunk/0/fmt", "4", Code::kUnsupported, "format 4"},
      {"/trunk/0/fmt", "5", Code::kUnsupported, "format 5"},
      {"/trunk/0/fmt", "6", Code::kUnsupported, "format 6"},
      {"/trunk/0/fmt", "8", Code::kUnsupported, "format 8"},
      {"/trunk/0/fmt", "258", Code::kUnsupported, "format 258"},  // 2 in its low byte
      {"/trunk/0/fmt", "4294967298", Code::kCorrupt, "\"fmt\" is 4294967298"},
      {"/trunk/0/fmt", "-1", Code::kCorrupt, "\"fmt\" is -1"},
      {"/trunk/0/fmt", "3", Code::kCorrupt, "as Q4G"},
      {"/trunk/0/group", "0", Code::kCorrupt, "\"group\" is 0"},
      {"/trunk/0/group", "-128", Code::kCorrupt, "\"group\" is -128"},
      {"/trunk/0/group", "64", Code::kUnsupported, "groups of 64"},
      {"/trunk/0/shape", "[]", Code::kCorrupt, "0 dimensions"},
      {"/trunk/0/shape", "[1,1,1,163840,2304]", Code::kCorrupt, "5 dimensions"},
      {"/trunk/0/shape", "[0,2304]", Code::kCorrupt, "dimension 0"},
      {"/trunk/0/shape", "[163840,0]", Code::kCorrupt, "dimension 0"},
      {"/trunk/0/shape", "[-163840,2304]", Code::kCorrupt, "dimension -163840"},
      {"/trunk/0/shape", "[67108865,2304]", Code::kCorrupt, "dimension 67108865"},
      {"/trunk/0/shape", "[18446744073709551615,1]", Code::kCorrupt, "dimension 184467440737095"},
      // Products that leave 64 bits, or would wrap to something small.
      {"/trunk/0/shape", "[67108864,67108864,67108864,67108864]", Code::kCorrupt, "any file"},
      {"/trunk/0/shape", "[67108864,67108864,4096,1]", Code::kCorrupt, "any file"},
      {"/trunk/0/shape", "[67108864,67108864,128]", Code::kCorrupt, "needs 585467951558164480"},
      {"/trunk/0/shape", "[163841,2304]", Code::kCorrupt, "\"bytes\" says 383385600"},
      {"/trunk/0/shape", "[163840,2305]", Code::kCorrupt, "\"bytes\" says"},
      {"/trunk/0/bytes", "383385599", Code::kCorrupt, "needs 383385600"},
      {"/trunk/0/bytes", "0", Code::kCorrupt, "\"bytes\" is 0"},
      {"/trunk/0/bytes", "-1", Code::kCorrupt, "\"bytes\" is -1"},
      {"/trunk/0/off", "-1", Code::kCorrupt, "\"off\" is -1"},
      {"/trunk/0/off", "9223372036854775807", Code::kCorrupt, "\"off\" is 9223372036854775807"},
      {"/trunk/0/off", "9223372036854775808", Code::kCorrupt, "\"off\" is 9223372036854775808"},
      {"/trunk/0/off", "1", Code::kCorrupt, "its payload ends at 377487361"},
      {"/trunk/0/scale_off", "377487359", Code::kCorrupt, "its payload ends at 377487360"},
      {"/trunk/0/scale_off", "383385600", Code::kCorrupt, "its payload ends at"},
      {"/trunk/0/scale_off", "-1", Code::kCorrupt, "\"scale_off\" is -1"},
      {"/trunk/0/name", "\"\"", Code::kCorrupt, "name is empty"},
      {"/trunk/0/name", "\"model.norm.weight\"", Code::kCorrupt, "stands twice"},
      {"/trunk/1/off", "383385599", Code::kCorrupt, "overlap at byte 383385599"},
      {"/trunk/1/off", "0", Code::kCorrupt, "overlap"},
      {"/trunk/1/bytes", "9212", Code::kCorrupt, "needs 9216 bytes as F32"},
  };
  for (const Case& c : kCases) CheckCase(c);
}

BOOST_AUTO_TEST_CASE(expert_numbers_that_contradict_each_other_are_refused) {
  const Case kCases[] = {
      {"/layers/1/file", "\"\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"/etc/passwd\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"../experts-L1.bin\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"..\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"a/b\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"a\\\\b\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"c:b\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"a\\u0000b\"", Code::kCorrupt, "no plain file name"},
      {"/layers/1/file", "\"experts-L2.bin\"", Code::kCorrupt, "shares the bank"},
      {"/layers/1/experts", "0", Code::kCorrupt, "\"experts\" is 0"},
      {"/layers/1/experts", "-256", Code::kCorrupt, "\"experts\" is -256"},
      {"/layers/1/experts", "65537", Code::kCorrupt, "\"experts\" is 65537"},
      {"/layers/1/experts", "128", Code::kCorrupt, "128 experts, the config says 256"},
      {"/layers/1/experts", "11", Code::kCorrupt, "are no 11 records"},
      {"/layers/1/bytes", "0", Code::kCorrupt, "\"bytes\" is 0"},
      {"/layers/1/bytes", "682622975", Code::kCorrupt, "are no 256 records"},
      {"/layers/1/bytes", "682622720", Code::kCorrupt, "are no 256 records"},  // not of pages
      {"/layers/1/bytes", "9223372036854775807", Code::kCorrupt, "\"bytes\" is"},
      {"/layers/1/codebook_base", "-1", Code::kCorrupt, "\"codebook_base\" is -1"},
      {"/layers/01", R"({"file":"b","experts":1,"bytes":4096,"codebook_base":0})", Code::kCorrupt,
       "lists \"01\""},
      {"/layers/-1", R"({"file":"b","experts":1,"bytes":4096,"codebook_base":0})", Code::kCorrupt,
       "lists \"-1\""},
      {"/layers/65536", R"({"file":"b","experts":1,"bytes":4096,"codebook_base":0})",
       Code::kCorrupt, "lists \"65536\""},
      {"/layers/one", R"({"file":"b","experts":1,"bytes":4096,"codebook_base":0})", Code::kCorrupt,
       "lists \"one\""},
      {"/config/first_k_dense_replace", "0", Code::kCorrupt, "layer 0 has experts, but"},
      {"/config/first_k_dense_replace", "-1", Code::kCorrupt, "from layer -1 on"},
      {"/config/num_hidden_layers", "4", Code::kCorrupt, "layer 3 has experts, but"},
      {"/config/num_hidden_layers", "9223372036854775807", Code::kCorrupt, "layers"},
      {"/expert_quant/fmt", "\"VQ5R\"", Code::kUnsupported, "\"VQ5R\""},
      {"/expert_quant/fmt", "\"VQ4P\"", Code::kCorrupt, "VQ4P with indices of 8 bits"},
      {"/expert_quant/index_bits", "6", Code::kCorrupt, "VQ3R with indices of 6 bits"},
      {"/expert_quant/stages", "0", Code::kCorrupt, "\"stages\" is 0"},
      {"/expert_quant/stages", "1", Code::kUnsupported, "1 stages"},
      {"/expert_quant/stages", "5", Code::kUnsupported, "5 stages"},
      {"/expert_quant/stages", "7", Code::kUnsupported, "7 stages"},
      {"/expert_quant/stages", "1000000", Code::kCorrupt, "\"stages\" is 1000000"},
      {"/expert_quant/entries", "128", Code::kUnsupported, "128 entries"},
      {"/expert_quant/entries", "0", Code::kCorrupt, "\"entries\" is 0"},
      {"/expert_quant/vec_dim", "4", Code::kUnsupported, "vectors of 4"},
      {"/expert_quant/vec_dim", "0", Code::kCorrupt, "\"vec_dim\" is 0"},
      {"/expert_quant/index_block", "32", Code::kUnsupported, "blocks of 32"},
      {"/expert_quant/index_block", "0", Code::kCorrupt, "\"index_block\" is 0"},
  };
  for (const Case& c : kCases) CheckCase(c);
}

BOOST_AUTO_TEST_CASE(every_codec_of_the_format_is_accepted) {
  struct {
    const char* text;
    IndexKind kind;
    int32_t stages;
    int32_t entries;
  } const kCases[] = {
      {R"({"fmt":"VQ3R","stages":2,"vec_dim":8,"entries":256})", IndexKind::kByte, 2, 256},
      {R"({"fmt":"VQ2R","stages":2,"vec_dim":8,"entries":256,"index_bits":8})", IndexKind::kByte, 2,
       256},
      {R"({"fmt":"VQ3R","stages":4,"vec_dim":8,"entries":256})", IndexKind::kByte, 4, 256},
      {R"({"fmt":"VQ3R","stages":6,"vec_dim":8,"entries":256})", IndexKind::kByte, 6, 256},
      {R"({"fmt":"VQ4P","stages":4,"vec_dim":8,"entries":64,"index_block":64,"index_bits":6})",
       IndexKind::kPacked6, 4, 64},
  };
  for (const auto& c : kCases) {
    Json changed = Good();
    changed["expert_quant"] = Json::parse(c.text);
    const auto manifest = ParseManifest(changed.dump(), "m");
    BOOST_TEST_CONTEXT(c.text << manifest.status().message()) {
      BOOST_REQUIRE(manifest.ok());
      BOOST_CHECK(manifest->codec.kind == c.kind);
      BOOST_TEST(manifest->codec.stages == c.stages);
      BOOST_TEST(manifest->codec.entries == c.entries);
    }
  }
}

BOOST_AUTO_TEST_CASE(container_without_experts_is_sound) {
  Json dense = Good();
  dense.erase("layers");
  dense.erase("expert_quant");
  const auto manifest = ParseManifest(dense.dump(), "m");
  BOOST_REQUIRE_MESSAGE(manifest.ok(), manifest.status().message());
  BOOST_TEST(!manifest->has_experts);
}

BOOST_AUTO_TEST_CASE(unknown_keys_are_ignored) {
  Json changed = Good();
  changed["made_by"] = "somebody";
  changed["trunk"][0]["note"] = {1, 2};
  changed["layers"]["1"]["note"] = nullptr;
  BOOST_CHECK(StatusOf(changed.dump()).ok());
}

BOOST_AUTO_TEST_CASE(hostile_names_stay_short_in_messages) {
  Json changed = Good();
  changed["trunk"][0]["name"] = std::string(1 << 20, 'x');
  changed["trunk"][0]["fmt"] = 9;
  BOOST_TEST(StatusOf(changed.dump()).message().size() < 500u);
  changed["trunk"][0]["name"] = "\n\x1b[31m";
  BOOST_TEST(StatusOf(changed.dump()).message().find('\x1b') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(printed_manifest_is_the_text_that_python_prints) {
  const auto manifest = ParseManifest(kText, "m");
  BOOST_REQUIRE(manifest.ok());
  // Python 3.11: json.dump(json.loads(kText), file, indent=1)
  const std::string expected = R"({
 "format_version": 0,
 "arch": "kimi-linear",
 "tensor_prefix": "",
 "config": {
  "num_hidden_layers": 3,
  "hidden_size": 2304,
  "num_experts": 256,
  "num_experts_per_token": 8,
  "moe_intermediate_size": 1024,
  "first_k_dense_replace": 1,
  "rms_norm_eps": 1e-05
 },
 "expert_quant": {
  "fmt": "VQ3R",
  "stages": 3,
  "vec_dim": 8,
  "entries": 256,
  "index_block": 64,
  "index_bits": 8,
  "bits_per_weight": 3.0
 },
 "layers": {
  "1": {
   "file": "experts-L1.bin",
   "experts": 256,
   "bytes": 682622976,
   "codebook_base": 0
  },
  "2": {
   "file": "experts-L2.bin",
   "experts": 256,
   "bytes": 682622976,
   "codebook_base": 9
  }
 },
 "trunk": [
  {
   "name": "lm_head.weight",
   "fmt": 2,
   "off": 0,
   "shape": [
    163840,
    2304
   ],
   "group": 128,
   "scale_off": 377487360,
   "bytes": 383385600
  },
  {
   "name": "model.norm.weight",
   "fmt": 0,
   "off": 383385600,
   "shape": [
    2304
   ],
   "bytes": 9216
  }
 ]
})";
  BOOST_TEST(PrintManifest(*manifest) == expected);
}

BOOST_AUTO_TEST_CASE(mutated_text_never_gives_ranges_outside_their_bounds) {
  std::mt19937 random(1);
  const std::string good = Good().dump();
  const std::string alphabet = "0123456789-{}[]\",:.eE ";
  int64_t accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = good;
    for (uint64_t k = random() % 4 + 1; k > 0; --k) {
      const size_t at = random() % text.size();
      const uint64_t what = random() % 4;
      if (what == 0) text[at] = static_cast<char>(random());
      if (what == 1) text[at] = alphabet[random() % alphabet.size()];
      if (what == 2) text.erase(at, random() % 8 + 1);
      if (what == 3) text.insert(at, text.substr(random() % text.size(), random() % 8));
    }
    const auto manifest = ParseManifest(text, "m");
    if (!manifest.ok()) {
      BOOST_REQUIRE(!manifest.status().message().empty());
      continue;
    }
    ++accepted;
    for (const TrunkEntry& entry : manifest->trunk) {
      BOOST_REQUIRE(entry.offset >= 0 && entry.bytes > 0 && entry.rows() > 0);
      BOOST_REQUIRE(entry.offset + entry.bytes > entry.offset);
      BOOST_REQUIRE(entry.rows() * TrunkRowBytes(entry.format, entry.columns()) <= entry.bytes);
    }
    for (const auto& [number, layer] : manifest->layers) {
      BOOST_REQUIRE(IsPlainFileName(layer.file));
      BOOST_REQUIRE(layer.experts > 0 && layer.record_bytes() % 4096 == 0);
    }
  }
  BOOST_TEST(accepted > 100);  // or the loop would test the JSON parser only
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
