// SPDX-License-Identifier: Apache-2.0

#include "convert/safetensors.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/tiny_checkpoint.h"

namespace waste {
namespace {

BOOST_AUTO_TEST_SUITE(safetensors)

// A file of one F32 tensor "a" [2, 3] at 0..24, its header changed by the test.
std::string OneTensor(const std::string& entry, const std::string& data = std::string(24, '\0')) {
  return SafetensorsText::WithHeader("{\"a\":" + entry + "}", data);
}

Code OpenCode(const std::string& text) {
  const TemporaryFolder folder;
  folder.Write("model.safetensors", text);
  const Result<Checkpoint> checkpoint = Checkpoint::Open(folder.path());
  if (!checkpoint.ok()) {
    BOOST_TEST(checkpoint.status().message().find("model.safetensors") != std::string::npos,
               checkpoint.status().message());
  }
  return checkpoint.ok() ? Code::kOk : checkpoint.status().code();
}

BOOST_AUTO_TEST_CASE(elements_of_every_type_are_read_from_any_place) {
  const TemporaryFolder folder;
  SafetensorsText file;
  file.Add("f32", "F32", {4}, AsF32({1.5f, -2, 0.25f, 1e-40f}));
  file.Add("bf16", "BF16", {2, 2}, AsBf16({1, -0.5f, 3, 0}));
  file.Add("f16", "F16", {3}, std::string("\x00\x3c\x00\xc0\x01\x00", 6));
  file.Add("scalar", "F32", {}, AsF32({7}));
  folder.Write("model.safetensors", file.Text());
  const Result<Checkpoint> checkpoint = Checkpoint::Open(folder.path());
  BOOST_REQUIRE(checkpoint.ok());
  const auto read = [&](const std::string& name, int64_t begin, size_t count) {
    std::vector<float> out(count);
    BOOST_TEST(ReadElements(checkpoint->tensors().at(name), begin, out).ok());
    return out;
  };
  BOOST_TEST(read("f32", 0, 4) == std::vector<float>({1.5f, -2, 0.25f, 1e-40f}));
  BOOST_TEST(read("f32", 2, 1) == std::vector<float>({0.25f}));
  BOOST_TEST(read("bf16", 1, 3) == std::vector<float>({-0.5f, 3, 0}));
  BOOST_TEST(read("f16", 0, 3) == std::vector<float>({1, -2, 0x1p-24f}));
  BOOST_TEST(read("scalar", 0, 1) == std::vector<float>({7}));
}

BOOST_AUTO_TEST_CASE(a_range_longer_than_one_read_is_whole) {
  const TemporaryFolder folder;
  std::vector<float> values(700'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  SafetensorsText file;
  file.Add("a", "F32", {700'000}, AsF32(values));
  folder.Write("model.safetensors", file.Text());
  const Result<Checkpoint> checkpoint = Checkpoint::Open(folder.path());
  BOOST_REQUIRE(checkpoint.ok());
  std::vector<float> out(values.size());
  BOOST_REQUIRE(ReadElements(checkpoint->tensors().at("a"), 0, out).ok());
  BOOST_CHECK(out == values);
}

struct HeaderCase {
  const char* what;
  std::string text;
  Code code;
};

void CheckOpenCodes(const std::vector<HeaderCase>& cases) {
  for (const HeaderCase& c : cases) {
    BOOST_TEST_CONTEXT(c.what)
    BOOST_TEST(static_cast<int>(OpenCode(c.text)) == static_cast<int>(c.code));
  }
}

BOOST_AUTO_TEST_CASE(a_file_whose_header_is_no_json_object_inside_it_is_refused) {
  CheckOpenCodes({
      {"empty file", "", Code::kFormat},
      {"seven bytes", "1234567", Code::kFormat},
      {"header beyond the file", std::string("\xff\0\0\0\0\0\0\0{}", 10), Code::kFormat},
      {"header of 2^63", std::string("\0\0\0\0\0\0\0\x80{}", 10), Code::kFormat},
      {"header of 2^64-1", std::string(8, '\xff') + "{}", Code::kFormat},
      {"not JSON", SafetensorsText::WithHeader("{a:1}", ""), Code::kFormat},
      {"a list", SafetensorsText::WithHeader("[]", ""), Code::kFormat},
      {"a NUL", SafetensorsText::WithHeader(std::string("{\"a\0\":1}", 8), ""), Code::kFormat},
      {"deep", SafetensorsText::WithHeader(std::string(100'000, '['), ""), Code::kFormat},
      {"a key twice",
       SafetensorsText::WithHeader(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                   R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                                   "x"),
       Code::kFormat},
  });
}

BOOST_AUTO_TEST_CASE(a_tensor_that_contradicts_itself_or_the_file_is_refused) {
  CheckOpenCodes({
      {"sound", OneTensor(R"({"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})"), Code::kOk},
      {"no entry", OneTensor("1"), Code::kFormat},
      {"no dtype", OneTensor(R"({"shape":[2,3],"data_offsets":[0,24]})"), Code::kFormat},
      {"dtype is a number", OneTensor(R"({"dtype":1,"shape":[6],"data_offsets":[0,24]})"),
       Code::kFormat},
      {"unknown dtype", OneTensor(R"({"dtype":"F3","shape":[6],"data_offsets":[0,24]})"),
       Code::kUnsupported},
      {"shape is a string", OneTensor(R"({"dtype":"F32","shape":"6","data_offsets":[0,24]})"),
       Code::kFormat},
      {"negative size", OneTensor(R"({"dtype":"F32","shape":[-6],"data_offsets":[0,24]})"),
       Code::kFormat},
      {"fraction", OneTensor(R"({"dtype":"F32","shape":[6.0],"data_offsets":[0,24]})"),
       Code::kFormat},
      {"size 0", OneTensor(R"({"dtype":"F32","shape":[0,6],"data_offsets":[0,0]})"),
       Code::kCorrupt},
      {"product that wraps to 6",
       OneTensor(R"({"dtype":"F32","shape":[4294967296,4294967296,6],"data_offsets":[0,24]})"),
       Code::kCorrupt},
      {"bytes that wrap",
       OneTensor(R"({"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]})"),
       Code::kCorrupt},
      {"one element too many", OneTensor(R"({"dtype":"F32","shape":[7],"data_offsets":[0,24]})"),
       Code::kCorrupt},
      {"one byte too few", OneTensor(R"({"dtype":"F32","shape":[6],"data_offsets":[0,23]})"),
       Code::kCorrupt},
      {"beyond the file", OneTensor(R"({"dtype":"F32","shape":[6],"data_offsets":[4,28]})"),
       Code::kCorrupt},
      {"backwards", OneTensor(R"({"dtype":"F32","shape":[6],"data_offsets":[24,0]})"),
       Code::kCorrupt},
      {"three offsets", OneTensor(R"({"dtype":"F32","shape":[6],"data_offsets":[0,24,24]})"),
       Code::kFormat},
      {"offset of 2^64-1",
       OneTensor(R"({"dtype":"F32","shape":[6],"data_offsets":[18446744073709551615,24]})"),
       Code::kFormat},
      {"cut short",
       OneTensor(R"({"dtype":"F32","shape":[6],"data_offsets":[0,24]})", std::string(23, '\0')),
       Code::kCorrupt},
      {"overlap",
       SafetensorsText::WithHeader(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                                   "1234567"),
       Code::kCorrupt},
      {"a gap is allowed",
       SafetensorsText::WithHeader(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                                   R"("b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})",
                                   "1234567"),
       Code::kOk},
  });
}

BOOST_AUTO_TEST_CASE(element_types_of_packed_releases_are_refused_with_the_tensor_named) {
  for (const char* type : {"U8", "F8_E4M3", "F64", "I32"}) {
    SourceTensor tensor;
    const TemporaryFolder folder;
    SafetensorsText file;
    file.Add("x.weight_packed", type, {1},
             std::string(type[0] == 'I'   ? 4
                         : type[1] == '6' ? 8
                                          : 1,
                         'x'));
    folder.Write("model.safetensors", file.Text());
    const Result<Checkpoint> checkpoint = Checkpoint::Open(folder.path());
    BOOST_REQUIRE(checkpoint.ok());
    const Status status = CheckReadable(checkpoint->tensors().at("x.weight_packed"));
    BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kUnsupported));
    BOOST_TEST(status.message().find("x.weight_packed") != std::string::npos);
  }
}

// Two shards with one tensor each, and the index given.
Status OpenShards(const std::string& index, const std::string& second_tensor = "b") {
  const TemporaryFolder folder;
  for (const std::string name : {"one", "two"}) {
    SafetensorsText file;
    file.Add(name == "one" ? "a" : second_tensor, "U8", {1}, "x");
    folder.Write(name + ".safetensors", file.Text());
  }
  if (!index.empty()) folder.Write("model.safetensors.index.json", index);
  Result<Checkpoint> checkpoint = Checkpoint::Open(folder.path());
  return checkpoint.ok() ? Status() : std::move(checkpoint).status();
}

BOOST_AUTO_TEST_CASE(shards_are_what_the_index_says) {
  const struct {
    const char* what;
    const char* index;
    Code code;
    const char* named;
  } cases[] = {
      {"sound", R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})", Code::kOk, ""},
      {"no index: all files", "", Code::kOk, ""},
      {"missing shard", R"({"weight_map":{"a":"one.safetensors","b":"3.safetensors"}})", Code::kIo,
       "3.safetensors"},
      {"tensor elsewhere", R"({"weight_map":{"a":"two.safetensors","b":"one.safetensors"}})",
       Code::kCorrupt, "\"a\""},
      {"tensor nowhere",
       R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"}})",
       Code::kCorrupt, "\"c\""},
      {"no map", R"({"metadata":{}})", Code::kFormat, "weight_map"},
      {"a number", R"({"weight_map":{"a":1}})", Code::kFormat, "\"a\""},
      {"out of the folder", R"({"weight_map":{"a":"../one.safetensors"}})", Code::kFormat,
       "plain file name"},
      {"not JSON", "{", Code::kFormat, "index.json"},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.what) {
      const Status status = OpenShards(c.index);
      BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(c.code), status.message());
      BOOST_TEST(status.message().find(c.named) != std::string::npos, status.message());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_in_two_shards_is_refused) {
  const Status status = OpenShards("", "a");
  BOOST_TEST(static_cast<int>(status.code()) == static_cast<int>(Code::kCorrupt));
  BOOST_TEST(status.message().find("one.safetensors") != std::string::npos);
  BOOST_TEST(status.message().find("two.safetensors") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_none_or_has_no_tensors_is_refused) {
  const TemporaryFolder folder;
  BOOST_TEST(static_cast<int>(Checkpoint::Open(folder.path()).status().code()) ==
             static_cast<int>(Code::kFormat));
  BOOST_TEST(static_cast<int>(Checkpoint::Open(folder.PathOf("none")).status().code()) ==
             static_cast<int>(Code::kIo));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
