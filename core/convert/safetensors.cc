// SPDX-License-Identifier: Apache-2.0

#include "convert/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/half.h"
#include "container/json_text.h"
#include "convert/large_json.h"

namespace waste {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr int64_t kMaxIndexBytes = int64_t{1} << 28;
constexpr int64_t kReadPiece = int64_t{1} << 20;  // bytes of one read

struct ElementType {
  const char* name;
  int64_t bytes;
};

constexpr std::array<ElementType, 17> kElementTypes = {{{"F32", 4},
                                                        {"F16", 2},
                                                        {"BF16", 2},
                                                        {"F64", 8},
                                                        {"F8_E4M3", 1},
                                                        {"F8_E5M2", 1},
                                                        {"F8_E8M0", 1},
                                                        {"I64", 8},
                                                        {"U64", 8},
                                                        {"I32", 4},
                                                        {"U32", 4},
                                                        {"I16", 2},
                                                        {"U16", 2},
                                                        {"I8", 1},
                                                        {"U8", 1},
                                                        {"BOOL", 1},
                                                        {"C64", 8}}};

int64_t ElementBytes(const std::string& type) {
  for (const ElementType& known : kElementTypes) {
    if (type == known.name) return known.bytes;
  }
  return 0;
}

// Fills in shape and number of elements.
Status ParseShape(const nlohmann::json& shape, const std::string& where, SourceTensor& tensor) {
  if (!shape.is_array()) return Failure(Code::kFormat, where, ": shape is no list");
  tensor.elements = 1;
  for (const nlohmann::json& size : shape) {
    const std::optional<int64_t> number = LargeJsonSize(size);
    if (!number) return Failure(Code::kFormat, where, ": shape holds something that is no size");
    if (*number == 0) return Failure(Code::kCorrupt, where, ": empty, one of its sizes is 0");
    const std::optional<int64_t> elements = CheckedMultiply(tensor.elements, *number);
    if (!elements) return Failure(Code::kCorrupt, where, ": its shape has more than 2^63 elements");
    tensor.elements = *elements;
    tensor.shape.push_back(*number);
  }
  return Status();
}

// Checks the range of a tensor against its shape and against the `data_bytes` after the header.
Status ParseOffsets(const nlohmann::json& offsets, const std::string& where, int64_t data_begin,
                    int64_t data_bytes, SourceTensor& tensor) {
  if (!offsets.is_array() || offsets.size() != 2)
    return Failure(Code::kFormat, where, ": data_offsets is no pair");
  const std::optional<int64_t> begin = LargeJsonSize(offsets[0]);
  const std::optional<int64_t> end = LargeJsonSize(offsets[1]);
  if (!begin || !end) return Failure(Code::kFormat, where, ": data_offsets are no offsets");
  if (*begin > *end || *end > data_bytes) {
    return Failure(Code::kCorrupt, where, ": lies at ", *begin, "..", *end, " of ", data_bytes,
                   " bytes of data; is the file cut short?");
  }
  const std::optional<int64_t> needed = CheckedMultiply(tensor.elements, ElementBytes(tensor.type));
  if (!needed || *needed != *end - *begin) {
    return Failure(Code::kCorrupt, where, ": ", tensor.elements, " elements of ", tensor.type,
                   " do not fill the ", *end - *begin, " bytes of its offsets");
  }
  tensor.offset = data_begin + *begin;
  return Status();
}

Result<SourceTensor> ParseTensor(const std::string& name, const nlohmann::json& entry,
                                 const File& file, int64_t data_begin) {
  const std::string where = file.path() + ": tensor " + Quote(name);
  const nlohmann::json* type = LargeJsonMember(entry, "dtype");
  const nlohmann::json* shape = LargeJsonMember(entry, "shape");
  const nlohmann::json* offsets = LargeJsonMember(entry, "data_offsets");
  if (type == nullptr || !type->is_string() || shape == nullptr || offsets == nullptr)
    return Failure(Code::kFormat, where, ": needs dtype, shape and data_offsets");
  SourceTensor tensor;
  tensor.name = name;
  tensor.type = type->get<std::string>();
  tensor.file = &file;
  if (ElementBytes(tensor.type) == 0)
    return Failure(Code::kUnsupported, where, ": unknown element type ", Quote(tensor.type));
  WASTE_TRY(ParseShape(*shape, where, tensor));
  WASTE_TRY(ParseOffsets(*offsets, where, data_begin, file.size() - data_begin, tensor));
  return tensor;
}

Status CheckOverlaps(const File& file, const std::vector<SourceTensor>& tensors) {
  std::vector<const SourceTensor*> sorted;
  for (const SourceTensor& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const SourceTensor* a, const SourceTensor* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const SourceTensor& before = *sorted[i - 1];
    if (before.offset + before.elements * ElementBytes(before.type) > sorted[i]->offset) {
      return Failure(Code::kCorrupt, file.path(), ": tensors ", Quote(before.name), " and ",
                     Quote(sorted[i]->name), " overlap");
    }
  }
  return Status();
}

// What the index says: tensor name to shard name.
Result<std::map<std::string, std::string>> ReadIndex(const std::string& path) {
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxIndexBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  WASTE_ASSIGN(const nlohmann::json index, ParseLargeJson(text, path));
  const nlohmann::json* map = LargeJsonMember(index, "weight_map");
  if (map == nullptr || !map->is_object() || map->empty())
    return Failure(Code::kFormat, path, ": has no weight_map");
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string())
      return Failure(Code::kFormat, path, ": the shard of ", Quote(name), " is no name");
    const std::string file = shard.get<std::string>();
    if (file.empty() || file[0] == '.' ||
        file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      return Failure(Code::kFormat, path, ": ", Quote(file), " is no plain file name");
    shards[name] = file;
  }
  return shards;
}

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Result<std::vector<SourceTensor>> ReadSafetensorsHeader(const File& file) {
  constexpr int64_t kLengthBytes = 8;
  if (file.size() < kLengthBytes)
    return Failure(Code::kFormat, file.path(), ": ", file.size(), " bytes are no safetensors file");
  std::array<uint8_t, kLengthBytes> length;
  WASTE_TRY(file.ReadAt(0, length));
  const uint64_t header_bytes = LoadLittle(length.data(), kLengthBytes);
  if (header_bytes > static_cast<uint64_t>(kMaxSafetensorsHeader) ||
      static_cast<int64_t>(header_bytes) > file.size() - kLengthBytes) {
    return Failure(Code::kFormat, file.path(), ": a header of ", header_bytes,
                   " bytes in a file of ", file.size(),
                   " is no safetensors header, or the file is cut short");
  }
  std::string text(static_cast<size_t>(header_bytes), '\0');
  WASTE_TRY(file.ReadAt(kLengthBytes, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  WASTE_ASSIGN(const nlohmann::json header, ParseLargeJson(text, file.path()));

  std::vector<SourceTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    WASTE_ASSIGN(SourceTensor tensor,
                 ParseTensor(name, entry, file, kLengthBytes + static_cast<int64_t>(header_bytes)));
    tensors.push_back(std::move(tensor));
  }
  WASTE_TRY(CheckOverlaps(file, tensors));
  return tensors;
}

Status Checkpoint::AddFile(const std::string& path) {
  WASTE_ASSIGN(std::unique_ptr<File> file, OpenFile(path, IoMode::kBuffered));
  WASTE_ASSIGN(std::vector<SourceTensor> tensors, ReadSafetensorsHeader(*file));
  for (SourceTensor& tensor : tensors) {
    const auto [other, is_new] = tensors_.emplace(tensor.name, tensor);
    if (!is_new) {
      return Failure(Code::kCorrupt, path, ": tensor ", Quote(tensor.name), " stands also in ",
                     other->second.file->path());
    }
  }
  files_.push_back(std::move(file));
  return Status();
}

Result<Checkpoint> Checkpoint::Open(const std::string& folder) {
  if (!IsFolder(folder)) return Failure(Code::kIo, folder, ": no such folder");
  Checkpoint checkpoint;
  const std::string index_path = JoinPath(folder, kIndexFile);
  if (FileExists(JoinPath(folder, kSingleFile))) {
    WASTE_TRY(checkpoint.AddFile(JoinPath(folder, kSingleFile)));
    return checkpoint;
  }
  if (!FileExists(index_path)) {
    WASTE_ASSIGN(const std::vector<std::string> names, ListFolder(folder));
    for (const std::string& name : names) {
      if (EndsWith(name, ".safetensors")) WASTE_TRY(checkpoint.AddFile(JoinPath(folder, name)));
    }
    if (checkpoint.files_.empty())
      return Failure(Code::kFormat, folder, ": holds no *.safetensors; is this a checkpoint?");
    return checkpoint;
  }
  WASTE_ASSIGN(const auto shards, ReadIndex(index_path));
  std::set<std::string> files;
  for (const auto& [name, file] : shards) files.insert(file);
  for (const std::string& file : files) {
    const std::string path = JoinPath(folder, file);
    if (!FileExists(path))
      return Failure(Code::kIo, path, ": named by ", kIndexFile, ", and not there");
    WASTE_TRY(checkpoint.AddFile(path));
  }
  for (const auto& [name, file] : shards) {
    const auto found = checkpoint.tensors_.find(name);
    if (found == checkpoint.tensors_.end() || found->second.file->path() != JoinPath(folder, file))
      return Failure(Code::kCorrupt, index_path, ": tensor ", Quote(name), " is not in ", file);
  }
  return checkpoint;
}

Status CheckReadable(const SourceTensor& tensor) {
  if (tensor.type == "F32" || tensor.type == "F16" || tensor.type == "BF16") return Status();
  return Failure(Code::kUnsupported, tensor.file->path(), ": tensor ", Quote(tensor.name), " is ",
                 tensor.type, "; this version converts F32, F16 and BF16, not packed weights");
}

Status ReadElements(const SourceTensor& tensor, int64_t begin, std::span<float> out) {
  const int64_t element_bytes = ElementBytes(tensor.type);
  const int64_t piece = kReadPiece / element_bytes;  // elements
  const int64_t count = static_cast<int64_t>(out.size());
  std::vector<uint8_t> bytes(static_cast<size_t>(std::min(piece, count) * element_bytes));
  for (int64_t done = 0; done < count; done += piece) {
    const int64_t now = std::min(piece, count - done);
    const std::span<uint8_t> part(bytes.data(), static_cast<size_t>(now * element_bytes));
    WASTE_TRY(tensor.file->ReadAt(tensor.offset + (begin + done) * element_bytes, part));
    float* to = out.data() + done;
    if (tensor.type == "BF16") {
      for (int64_t i = 0; i < now; ++i) to[i] = Bfloat16ToFloat(LoadU16(part.data() + 2 * i));
    } else if (tensor.type == "F16") {
      for (int64_t i = 0; i < now; ++i) to[i] = HalfToFloat(LoadU16(part.data() + 2 * i));
    } else {
      for (int64_t i = 0; i < now; ++i) {
        to[i] = std::bit_cast<float>(static_cast<uint32_t>(LoadLittle(part.data() + 4 * i, 4)));
      }
    }
  }
  return Status();
}

}  // namespace waste
