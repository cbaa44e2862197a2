// SPDX-License-Identifier: Apache-2.0

#include "container/manifest.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/checked.h"
#include "container/expert_record.h"
#include "container/json_text.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFormatVersion = 0;
constexpr int64_t kMaxDimension = int64_t{1} << 26;
constexpr int64_t kMaxDimensions = 4;
constexpr int64_t kMaxLayer = 0xFFFF;  // records hold layer and expert in 16 bits
constexpr int64_t kMaxExperts = 0x10000;
constexpr int64_t kMaxFileBytes = int64_t{1} << 60;

// An object of the manifest with the words that name it in messages.
struct Section {
  const Json& object;
  std::string where;  // "PATH: layer 3"

  template <typename... Parts>
  Status Fail(Code code, const Parts&... parts) const {
    return Failure(code, where, ": ", parts...);
  }

  Result<const Json*> Member(const char* key) const {
    const Json* const value = JsonMember(object, key);
    if (value == nullptr) return Fail(Code::kFormat, "there is no \"", key, "\"");
    return value;
  }

  Result<int64_t> Integer(const char* key, int64_t least, int64_t most) const {
    WASTE_ASSIGN(const Json* const value, Member(key));
    if (!value->is_number_integer()) return Fail(Code::kFormat, "\"", key, "\" is no integer");
    const std::optional<int64_t> number = JsonInteger(*value);
    if (!number || *number < least || *number > most)
      return Fail(Code::kCorrupt, "\"", key, "\" is ", value->dump(), ", not between ", least,
                  " and ", most);
    return *number;
  }

  Result<int64_t> IntegerOr(const char* key, int64_t absent, int64_t least, int64_t most) const {
    if (JsonMember(object, key) == nullptr) return absent;
    return Integer(key, least, most);
  }

  Result<std::string> String(const char* key) const {
    WASTE_ASSIGN(const Json* const value, Member(key));
    if (!value->is_string()) return Fail(Code::kFormat, "\"", key, "\" is no string");
    return value->get<std::string>();
  }
};

// --- trunk ---

Result<std::vector<int64_t>> ParseShape(const Section& entry) {
  WASTE_ASSIGN(const Json* const list, entry.Member("shape"));
  if (!list->is_array()) return entry.Fail(Code::kFormat, "\"shape\" is no list");
  if (list->empty() || static_cast<int64_t>(list->size()) > kMaxDimensions)
    return entry.Fail(Code::kCorrupt, "its shape has ", list->size(), " dimensions, not 1 to ",
                      kMaxDimensions);
  std::vector<int64_t> shape;
  for (const Json& dimension : *list) {
    if (!dimension.is_number_integer())
      return entry.Fail(Code::kFormat, "\"shape\" holds something that is no integer");
    const int64_t size = JsonInteger(dimension).value_or(-1);
    if (size < 1 || size > kMaxDimension)
      return entry.Fail(Code::kCorrupt, "its shape has the dimension ", dimension.dump(),
                        ", not between 1 and ", kMaxDimension);
    shape.push_back(size);
  }
  return shape;
}

// Rows of a shape whose dimensions are at most 2^26, or nothing if the product leaves int64_t.
std::optional<int64_t> CountRows(const std::vector<int64_t>& shape) {
  std::optional<int64_t> rows = 1;
  for (size_t i = 0; i + 1 < shape.size() && rows; ++i) rows = CheckedMultiply(*rows, shape[i]);
  return rows;
}

// `bytes` must be what the shape needs, and the scales must follow the payload at once: a tensor
// that needs more than its range spans would be read past it.
Status ParseRange(const Section& in, TrunkEntry& entry) {
  const std::optional<int64_t> rows = CountRows(entry.shape);
  const bool quantised = IsQuantised(entry.format);
  const int64_t row_bytes = TrunkRowBytes(entry.format, entry.columns());
  const int64_t row_scale_bytes = quantised ? 2 * TrunkRowGroups(entry.columns()) : 0;
  const auto payload = rows ? CheckedMultiply(*rows, row_bytes) : std::nullopt;
  const auto scales = rows ? CheckedMultiply(*rows, row_scale_bytes) : std::nullopt;
  const auto needed = payload && scales ? CheckedAdd(*payload, *scales) : std::nullopt;
  if (!needed || *needed > kMaxFileBytes)
    return in.Fail(Code::kCorrupt, "its shape needs more bytes than any file has");
  WASTE_ASSIGN(entry.offset, in.Integer("off", 0, kMaxFileBytes));
  WASTE_ASSIGN(entry.bytes, in.Integer("bytes", 1, kMaxFileBytes));
  if (entry.bytes != *needed)
    return in.Fail(Code::kCorrupt, "its shape needs ", *needed, " bytes as ",
                   TrunkFormatName(entry.format), ", \"bytes\" says ", entry.bytes);
  entry.scale_offset = -1;
  if (!quantised) return Status();
  WASTE_ASSIGN(const int64_t group, in.Integer("group", 1, kMaxDimension));
  if (group != kTrunkGroup)
    return in.Fail(Code::kUnsupported, "groups of ", group, "; this version reads groups of ",
                   kTrunkGroup);
  WASTE_ASSIGN(entry.scale_offset, in.Integer("scale_off", 0, kMaxFileBytes));
  if (entry.scale_offset != entry.offset + *payload)
    return in.Fail(Code::kCorrupt, "its scales start at ", entry.scale_offset,
                   ", but its payload ends at ", entry.offset + *payload);
  return Status();
}

Result<TrunkEntry> ParseTrunkEntry(const Json& object, int64_t number, const std::string& path) {
  Section in{object, path + ": trunk tensor " + std::to_string(number)};
  TrunkEntry entry;
  WASTE_ASSIGN(entry.name, in.String("name"));
  if (entry.name.empty()) return in.Fail(Code::kCorrupt, "its name is empty");
  in.where = path + ": trunk tensor " + Quote(entry.name);
  WASTE_ASSIGN(const int64_t format, in.Integer("fmt", 0, INT32_MAX));
  if (!IsTrunkFormat(format))
    return in.Fail(Code::kUnsupported, "format ", format, "; this version reads 0, 1, 2, 3 and 7");
  entry.format = static_cast<TrunkFormat>(format);
  WASTE_ASSIGN(entry.shape, ParseShape(in));
  WASTE_TRY(ParseRange(in, entry));
  return entry;
}

Status CheckNamesAreUnique(const std::vector<TrunkEntry>& trunk, const std::string& path) {
  std::unordered_set<std::string_view> names;
  for (const TrunkEntry& entry : trunk)
    if (!names.insert(entry.name).second)
      return Failure(Code::kCorrupt, path, ": trunk tensor ", Quote(entry.name), " stands twice");
  return Status();
}

Status CheckNothingOverlaps(const std::vector<TrunkEntry>& trunk, const std::string& path) {
  std::vector<const TrunkEntry*> by_offset;
  for (const TrunkEntry& entry : trunk) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TrunkEntry* a, const TrunkEntry* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TrunkEntry& before = *by_offset[i - 1];
    if (before.offset + before.bytes > by_offset[i]->offset)
      return Failure(Code::kCorrupt, path, ": trunk tensors ", Quote(before.name), " and ",
                     Quote(by_offset[i]->name), " overlap at byte ", by_offset[i]->offset);
  }
  return Status();
}

Result<std::vector<TrunkEntry>> ParseTrunk(const Section& manifest, const std::string& path) {
  WASTE_ASSIGN(const Json* const list, manifest.Member("trunk"));
  if (!list->is_array()) return manifest.Fail(Code::kFormat, "\"trunk\" is no list");
  std::vector<TrunkEntry> trunk;
  for (const Json& object : *list) {
    WASTE_ASSIGN(TrunkEntry entry,
                 ParseTrunkEntry(object, static_cast<int64_t>(trunk.size()), path));
    trunk.push_back(std::move(entry));
  }
  WASTE_TRY(CheckNamesAreUnique(trunk, path));
  WASTE_TRY(CheckNothingOverlaps(trunk, path));
  return trunk;
}

// --- experts ---

Result<ExpertCodec> ParseCodec(const Section& in) {
  WASTE_ASSIGN(const std::string format, in.String("fmt"));
  WASTE_ASSIGN(const int64_t bits, in.IntegerOr("index_bits", 8, 1, 64));
  WASTE_ASSIGN(const int64_t stages, in.Integer("stages", 1, 64));
  WASTE_ASSIGN(const int64_t entries, in.Integer("entries", 1, 1 << 16));
  WASTE_ASSIGN(const int64_t vector_size, in.Integer("vec_dim", 1, 1 << 16));
  WASTE_ASSIGN(const int64_t block, in.IntegerOr("index_block", kIndexBlock, 1, 1 << 16));

  if (format != "VQ3R" && format != "VQ2R" && format != "VQ4P")
    return in.Fail(Code::kUnsupported, "format ", Quote(format),
                   "; this version reads VQ3R, VQ2R and VQ4P");
  if (vector_size != kVectorSize || block != kIndexBlock)
    return in.Fail(Code::kUnsupported, "vectors of ", vector_size, " in blocks of ", block,
                   " rows; this version reads vectors of ", kVectorSize, " in blocks of ",
                   kIndexBlock);
  const bool packed = format == "VQ4P";
  if (bits != (packed ? 6 : 8))
    return in.Fail(Code::kCorrupt, format, " with indices of ", bits, " bits");
  const bool known_stages =
      packed ? stages == 4 : stages == 2 || stages == 3 || stages == 4 || stages == 6;
  if (!known_stages || entries != int64_t{1} << bits)
    return in.Fail(
        Code::kUnsupported, format, " with ", stages, " stages of ", entries,
        " entries; this version reads 2, 3, 4 or 6 stages of 256, and VQ4P with 4 of 64");
  return ExpertCodec{.kind = packed ? IndexKind::kPacked6 : IndexKind::kByte,
                     .stages = static_cast<int32_t>(stages),
                     .entries = static_cast<int32_t>(entries)};
}

// The number that a key of "layers" spells, in the one way to spell it.
std::optional<int32_t> ParseLayerNumber(const std::string& key) {
  int32_t layer = -1;
  const char* const end = key.data() + key.size();
  const auto parsed = std::from_chars(key.data(), end, layer);
  if (parsed.ec != std::errc() || parsed.ptr != end || layer < 0 || layer > kMaxLayer ||
      std::to_string(layer) != key)
    return std::nullopt;
  return layer;
}

Result<LayerEntry> ParseLayer(const Section& in) {
  LayerEntry layer;
  WASTE_ASSIGN(layer.file, in.String("file"));
  if (!IsPlainFileName(layer.file))
    return in.Fail(Code::kCorrupt, "the bank ", Quote(layer.file),
                   " is no plain file name; refusing to leave the container's folder");
  WASTE_ASSIGN(layer.experts, in.Integer("experts", 1, kMaxExperts));
  WASTE_ASSIGN(layer.bytes, in.Integer("bytes", 1, kMaxFileBytes));
  WASTE_ASSIGN(layer.codebook_base, in.Integer("codebook_base", 0, INT32_MAX));
  if (layer.bytes % layer.experts != 0 || layer.record_bytes() % kExpertAlignment != 0)
    return in.Fail(Code::kCorrupt, layer.bytes, " bytes are no ", layer.experts,
                   " records of a multiple of ", kExpertAlignment, " bytes");
  return layer;
}

Result<std::map<int32_t, LayerEntry>> ParseLayers(const Section& manifest,
                                                  const std::string& path) {
  std::map<int32_t, LayerEntry> layers;
  const Json* const object = JsonMember(manifest.object, "layers");
  if (object == nullptr) return layers;
  if (!object->is_object()) return manifest.Fail(Code::kFormat, "\"layers\" is no object");
  std::set<std::string> files;
  for (const auto& [key, value] : object->items()) {
    const std::optional<int32_t> number = ParseLayerNumber(key);
    if (!number)
      return manifest.Fail(Code::kCorrupt, "\"layers\" lists ", Quote(key),
                           ", which is no number from 0 to ", kMaxLayer);
    WASTE_ASSIGN(LayerEntry layer, ParseLayer({value, path + ": layer " + key}));
    if (!files.insert(layer.file).second)
      return manifest.Fail(Code::kCorrupt, "layer ", key, " shares the bank ", Quote(layer.file),
                           " with another layer");
    layers.emplace(*number, std::move(layer));
  }
  return layers;
}

// The config may say less than this reads: what it must say is the model's to check.
Status CheckLayersAgainstConfig(const Manifest& manifest, const std::string& path) {
  const auto config_number = [&](const char* key) {
    const Json* const value = JsonMember(manifest.config, key);
    return value == nullptr ? std::nullopt : JsonInteger(*value);
  };
  const auto experts = config_number("num_experts");
  for (const auto& [number, layer] : manifest.layers)
    if (experts && layer.experts != *experts)
      return Failure(Code::kCorrupt, path, ": layer ", number, " has ", layer.experts,
                     " experts, the config says ", *experts);
  const auto first = config_number("first_k_dense_replace");
  const auto count = config_number("num_hidden_layers");
  if (!first || !count) return Status();
  if (*first < 0 || *count > kMaxLayer + 1)
    return Failure(Code::kCorrupt, path, ": experts from layer ", *first, " on, of ", *count,
                   " layers");
  for (int64_t number = *first; number < *count; ++number)
    if (!manifest.layers.contains(static_cast<int32_t>(number)))
      return Failure(Code::kCorrupt, path, ": layer ", number,
                     " has experts, but \"layers\" does not list it; convert the model again");
  return Status();
}

Status ParseExperts(const Section& in, const std::string& path, Manifest& manifest) {
  WASTE_ASSIGN(manifest.layers, ParseLayers(in, path));
  manifest.has_experts = !manifest.layers.empty();
  if (manifest.has_experts || JsonMember(in.object, "expert_quant") != nullptr) {
    WASTE_ASSIGN(const Json* const codec, in.Member("expert_quant"));
    WASTE_ASSIGN(manifest.codec, ParseCodec({*codec, path + ": expert_quant"}));
  }
  return manifest.has_experts ? CheckLayersAgainstConfig(manifest, path) : Status();
}

Status CheckVersion(const Section& in) {
  WASTE_ASSIGN(const Json* const version, in.Member("format_version"));
  if (!version->is_number_integer())
    return in.Fail(Code::kFormat, "\"format_version\" is no integer");
  const int64_t number = JsonInteger(*version).value_or(INT64_MAX);
  if (number < 0) return in.Fail(Code::kFormat, "\"format_version\" is ", number);
  if (number == kFormatVersion) return Status();
  return in.Fail(Code::kVersion, "container format ", version->dump(),
                 "; this version reads format ", kFormatVersion);
}

// --- printing ---

Json CodecObject(const ExpertCodec& codec) {
  const bool packed = codec.kind == IndexKind::kPacked6;
  const int32_t index_bits = packed ? 6 : 8;
  return Json{{"fmt", packed ? "VQ4P" : "VQ3R"},
              {"stages", codec.stages},
              {"vec_dim", kVectorSize},
              {"entries", codec.entries},
              {"index_block", kIndexBlock},
              {"index_bits", index_bits},
              {"bits_per_weight", codec.stages * index_bits / static_cast<double>(kVectorSize)}};
}

Json TrunkObject(const TrunkEntry& entry) {
  Json object{{"name", entry.name},
              {"fmt", static_cast<int32_t>(entry.format)},
              {"off", entry.offset},
              {"shape", entry.shape}};
  if (IsQuantised(entry.format)) {
    object["group"] = kTrunkGroup;
    object["scale_off"] = entry.scale_offset;
  }
  object["bytes"] = entry.bytes;
  return object;
}

}  // namespace

int64_t TrunkEntry::rows() const {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

const TrunkEntry* Manifest::FindTrunk(std::string_view name) const {
  const auto found = std::find_if(trunk.begin(), trunk.end(),
                                  [&](const TrunkEntry& entry) { return entry.name == name; });
  return found == trunk.end() ? nullptr : &*found;
}

Result<Manifest> ParseManifest(std::string_view text, const std::string& path) {
  WASTE_ASSIGN(const Json root, ParseJsonText(text, path));
  const Section in{root, path};
  if (!root.is_object()) return in.Fail(Code::kFormat, "no object; this is no manifest");
  WASTE_TRY(CheckVersion(in));
  Manifest manifest;
  WASTE_ASSIGN(manifest.arch, in.String("arch"));
  WASTE_ASSIGN(manifest.tensor_prefix, in.String("tensor_prefix"));
  WASTE_ASSIGN(const Json* const config, in.Member("config"));
  if (!config->is_object()) return in.Fail(Code::kFormat, "\"config\" is no object");
  manifest.config = *config;
  WASTE_TRY(ParseExperts(in, path, manifest));
  WASTE_ASSIGN(manifest.trunk, ParseTrunk(in, path));
  return manifest;
}

std::string PrintManifest(const Manifest& manifest) {
  Json root{{"format_version", kFormatVersion},
            {"arch", manifest.arch},
            {"tensor_prefix", manifest.tensor_prefix},
            {"config", manifest.config}};
  if (manifest.has_experts) root["expert_quant"] = CodecObject(manifest.codec);
  Json& layers = root["layers"] = Json::object();
  for (const auto& [number, layer] : manifest.layers)
    layers[std::to_string(number)] = Json{{"file", layer.file},
                                          {"experts", layer.experts},
                                          {"bytes", layer.bytes},
                                          {"codebook_base", layer.codebook_base}};
  Json& trunk = root["trunk"] = Json::array();
  for (const TrunkEntry& entry : manifest.trunk) trunk.push_back(TrunkObject(entry));
  return PrintJsonText(root);
}

bool IsPlainFileName(std::string_view name) {
  if (name.empty() || name.size() > 255 || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(), [](char c) {
    return c == '/' || c == '\\' || c == ':' || static_cast<uint8_t>(c) < 0x20 || c == 0x7F;
  });
}

}  // namespace waste
