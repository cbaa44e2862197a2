// SPDX-License-Identifier: Apache-2.0

#include "container/writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "container/codebooks.h"
#include "container/expert_record.h"
#include "container/specials.h"

namespace waste {
namespace {

constexpr int64_t kMaxDimension = int64_t{1} << 26;
constexpr int64_t kMaxDimensions = 4;
constexpr int64_t kMaxExperts = 0x10000;

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

bool SameCodec(const ExpertCodec& a, const ExpertCodec& b) {
  return a.kind == b.kind && a.stages == b.stages && a.entries == b.entries;
}

// What every reader refuses must not be written.
Status CheckTrunkTensor(const std::string& name, const std::vector<int64_t>& shape) {
  const auto fits = [](int64_t size) { return size >= 1 && size <= kMaxDimension; };
  if (name.empty() || shape.empty() || static_cast<int64_t>(shape.size()) > kMaxDimensions ||
      !std::all_of(shape.begin(), shape.end(), fits))
    return Failure(Code::kUnsupported, "trunk tensor \"", name, "\" has ", shape.size(),
                   " dimensions; a container holds 1 to ", kMaxDimensions, ", each between 1 and ",
                   kMaxDimension);
  return Status();
}

// Names that the writer itself uses inside the folder, temporary ones included.
bool IsOwnName(std::string_view name) {
  return name == "manifest.json" || name == "trunk.bin" || name == "codebooks.bin" ||
         name.starts_with("experts-L") || name.ends_with(".tmp");
}

// The dimensions that the numbers of scales say; every other size is checked against them.
ExpertDims DimsOf(const EncodedExpert& expert) {
  return {.inner = static_cast<int64_t>(expert.gate_scales.size()) / 2,
          .outer = static_cast<int64_t>(expert.down_scales.size()) / 2};
}

std::vector<uint8_t> AssembleRecord(const EncodedExpert& expert, const ExpertLayout& layout) {
  std::vector<uint8_t> record;
  record.reserve(static_cast<size_t>(layout.record_bytes));
  record.resize(kExpertHeaderSize);
  const auto put = [&](const std::vector<uint8_t>& part, int64_t at) {
    WASTE_CHECK(static_cast<int64_t>(record.size()) == at);
    record.insert(record.end(), part.begin(), part.end());
  };
  put(expert.gate, layout.gate_at);
  put(expert.up, layout.up_at);
  put(expert.down, layout.down_at);
  put(expert.gate_scales, layout.scales_at);
  put(expert.up_scales, layout.up_scales_at());
  put(expert.down_scales, layout.down_scales_at());
  WASTE_CHECK(static_cast<int64_t>(record.size()) == layout.end);
  record.resize(static_cast<size_t>(layout.record_bytes));
  return record;
}

}  // namespace

// A bank that is being written.
struct OpenBank {
  AtomicFile file;
  int32_t layer;
  LayerEntry entry;
  ExpertLayout layout;  // of the first expert; all others must have the same
};

struct ContainerWriter::Work {
  std::string folder;     // its final name
  std::string temporary;  // where everything is written
  bool finished = false;
  Manifest manifest;
  std::optional<AtomicFile> trunk;
  std::optional<AtomicFile> codebooks;
  int64_t codebook_count = 0;
  int64_t codebook_entries = 0;
  std::optional<OpenBank> bank;

  std::string PathOf(const std::string& name) const { return JoinPath(temporary, name); }

  ~Work() {
    if (finished) return;
    // Files first: an AtomicFile removes its own.
    bank.reset();
    codebooks.reset();
    trunk.reset();
    RemoveFolder(temporary);
  }
};

ContainerWriter::ContainerWriter(std::unique_ptr<Work> work) : work_(std::move(work)) {}
ContainerWriter::~ContainerWriter() = default;

Result<std::unique_ptr<ContainerWriter>> ContainerWriter::Create(const std::string& folder) {
  std::string name = folder;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  if (FileExists(name))
    return Failure(Code::kArgument, name, ": exists already; name another folder or remove it");
  const std::string temporary = name + ".tmp";
  if (FileExists(temporary))
    return Failure(
        Code::kArgument, temporary,
        ": left by a conversion that was killed, or one is running; remove it if none is");
  WASTE_TRY(CreateFolder(temporary));
  auto work = std::make_unique<Work>();
  work->folder = name;
  work->temporary = temporary;
  WASTE_ASSIGN(AtomicFile trunk, AtomicFile::Create(work->PathOf("trunk.bin")));
  work->trunk.emplace(std::move(trunk));
  return std::unique_ptr<ContainerWriter>(new ContainerWriter(std::move(work)));
}

Status ContainerWriter::AddTrunk(const std::string& name, TrunkFormat format,
                                 std::vector<int64_t> shape, std::span<const uint8_t> payload,
                                 std::span<const uint8_t> scales) {
  WASTE_TRY(CheckTrunkTensor(name, shape));
  std::vector<TrunkEntry>& trunk = work_->manifest.trunk;
  if (!trunk.empty() && name <= trunk.back().name)
    return Failure(Code::kArgument, "trunk tensor \"", name, "\" comes after \"", trunk.back().name,
                   "\"; they must come in ascending order, each once");
  TrunkEntry entry;
  entry.name = name;
  entry.format = format;
  entry.shape = std::move(shape);
  entry.offset = work_->trunk->size();
  entry.bytes = static_cast<int64_t>(payload.size() + scales.size());
  const int64_t payload_bytes = static_cast<int64_t>(payload.size());
  entry.scale_offset = IsQuantised(format) ? entry.offset + payload_bytes : -1;
  const int64_t groups = IsQuantised(format) ? TrunkRowGroups(entry.columns()) : 0;
  WASTE_CHECK(payload_bytes == entry.rows() * TrunkRowBytes(format, entry.columns()));
  WASTE_CHECK(static_cast<int64_t>(scales.size()) == entry.rows() * groups * 2);

  WASTE_TRY(work_->trunk->Append(payload));
  WASTE_TRY(work_->trunk->Append(scales));
  trunk.push_back(std::move(entry));
  return Status();
}

Result<int64_t> ContainerWriter::AddCodebook(std::span<const float> entries) {
  const int64_t count = static_cast<int64_t>(entries.size()) / kVectorSize;
  WASTE_CHECK(static_cast<int64_t>(entries.size()) == count * kVectorSize);
  WASTE_CHECK(work_->codebook_count == 0 || count == work_->codebook_entries);
  if (work_->codebook_count == kMaxCodebooks)
    return Failure(Code::kUnsupported, "more than ", kMaxCodebooks, " codebooks");
  WASTE_ASSIGN(const std::vector<uint8_t> record, EncodeCodebook(work_->codebook_count, entries));
  if (!work_->codebooks) {
    WASTE_ASSIGN(AtomicFile file, AtomicFile::Create(work_->PathOf("codebooks.bin")));
    work_->codebooks.emplace(std::move(file));
    work_->codebook_entries = count;
  }
  WASTE_TRY(work_->codebooks->Append(record));
  return work_->codebook_count++;
}

Status ContainerWriter::BeginBank(int32_t layer, int64_t codebook_base, const ExpertCodec& codec) {
  Manifest& manifest = work_->manifest;
  WASTE_CHECK(!work_->bank && layer == (layer & 0xFFFF));
  WASTE_CHECK(!manifest.has_experts || SameCodec(manifest.codec, codec));
  WASTE_CHECK(codec.entries == work_->codebook_entries);
  if (manifest.layers.contains(layer))
    return Failure(Code::kArgument, "layer ", layer, " has its bank already");
  if (codebook_base < 0 || codebook_base > 0xFFFF ||
      codebook_base + 3 * codec.stages > work_->codebook_count)
    return Failure(Code::kArgument, "layer ", layer, ": ", 3 * codec.stages, " codebooks from ",
                   codebook_base, " on, of ", work_->codebook_count);
  LayerEntry entry{.file = "experts-L" + std::to_string(layer) + ".bin",
                   .experts = 0,
                   .bytes = 0,
                   .codebook_base = codebook_base};
  WASTE_ASSIGN(AtomicFile file, AtomicFile::Create(work_->PathOf(entry.file)));
  work_->bank.emplace(
      OpenBank{.file = std::move(file), .layer = layer, .entry = std::move(entry), .layout = {}});
  manifest.has_experts = true;
  manifest.codec = codec;
  return Status();
}

Status ContainerWriter::AddExpert(const EncodedExpert& expert) {
  WASTE_CHECK(work_->bank.has_value());
  OpenBank& bank = *work_->bank;
  const ExpertDims dims = DimsOf(expert);
  const auto layout = MakeExpertLayout(work_->manifest.codec, dims);
  if (!layout || bank.entry.experts == kMaxExperts)
    return Failure(Code::kUnsupported, "layer ", bank.layer, ", expert ", bank.entry.experts, ": ",
                   dims.inner, " x ", dims.outer, "; a container holds up to ", kMaxExperts,
                   " experts a layer, of dimensions that are multiples of 8, below 4 GiB each");
  WASTE_CHECK(bank.entry.experts == 0 || layout->end == bank.layout.end);
  bank.layout = *layout;
  std::vector<uint8_t> record = AssembleRecord(expert, *layout);
  WriteExpertHeader(bank.layer, static_cast<int32_t>(bank.entry.experts), bank.entry.codebook_base,
                    *layout, record);
  WASTE_TRY(bank.file.Append(record));
  ++bank.entry.experts;
  bank.entry.bytes += layout->record_bytes;
  return Status();
}

Status ContainerWriter::EndBank() {
  WASTE_CHECK(work_->bank && work_->bank->entry.experts > 0);
  WASTE_TRY(work_->bank->file.Commit());
  work_->manifest.layers.emplace(work_->bank->layer, std::move(work_->bank->entry));
  work_->bank.reset();
  return Status();
}

Status ContainerWriter::AddFile(const std::string& name, std::span<const uint8_t> bytes) {
  const std::string path = work_->PathOf(name);
  if (!IsPlainFileName(name) || IsOwnName(name) || FileExists(path))
    return Failure(Code::kArgument, "\"", name, "\" cannot be a side file's name");
  WASTE_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  WASTE_TRY(file.Append(bytes));
  return file.Commit();
}

Status ContainerWriter::AddSpecials(const std::vector<SpecialToken>& specials) {
  return AddFile("specials.json", AsBytes(PrintSpecials(specials)));
}

Status ContainerWriter::Finish(const std::string& arch, const std::string& tensor_prefix,
                               const nlohmann::ordered_json& config) {
  WASTE_CHECK(!work_->bank && !work_->finished);
  if (FileExists(work_->folder))
    return Failure(Code::kArgument, work_->folder, ": appeared while the container was written");
  WASTE_TRY(work_->trunk->Commit());
  if (work_->codebooks) WASTE_TRY(work_->codebooks->Commit());
  Manifest& manifest = work_->manifest;
  manifest.arch = arch;
  manifest.tensor_prefix = tensor_prefix;
  manifest.config = config;
  WASTE_TRY(AddManifest());
  WASTE_TRY(RenamePath(work_->temporary, work_->folder));
  work_->finished = true;
  return Status();
}

// Parsing what was printed costs little, and finds what would make a container that none can open.
Status ContainerWriter::AddManifest() {
  const std::string text = PrintManifest(work_->manifest);
  const auto parsed = ParseManifest(text, work_->PathOf("manifest.json"));
  if (!parsed.ok()) return parsed.status();
  WASTE_ASSIGN(AtomicFile file, AtomicFile::Create(work_->PathOf("manifest.json")));
  WASTE_TRY(file.Append(std::string_view(text)));
  return file.Commit();
}

}  // namespace waste
