// SPDX-License-Identifier: Apache-2.0

#include "container/container.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "base/check.h"
#include "container/drive_folders.h"
#include "container/json_text.h"

namespace waste {
namespace {

constexpr int64_t kScaleBytes = 2;  // an f16

constexpr int64_t kMaxJsonBytes = int64_t{64} << 20;      // of one JSON file
constexpr int64_t kMaxRankFileBytes = int64_t{64} << 20;  // Kimi's has 2.8 MB

std::string_view AsText(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Manifest> ReadManifest(const std::string& folder) {
  if (!IsFolder(folder))
    return Failure(Code::kIo, folder, ": no such folder; a container is a folder with a ",
                   "manifest.json");
  const std::string path = JoinPath(folder, "manifest.json");
  if (!FileExists(path))
    return Failure(Code::kIo, path,
                   ": no such file; the folder is no container, or its conversion ",
                   "did not finish");
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxJsonBytes));
  return ParseManifest(AsText(bytes), path);
}

Result<std::unique_ptr<File>> OpenTrunk(const std::string& path, const Manifest& manifest,
                                        const FileOpener& open) {
  WASTE_ASSIGN(std::unique_ptr<File> trunk, open(path, IoMode::kBuffered));
  for (const TrunkEntry& entry : manifest.trunk)
    if (entry.offset + entry.bytes > trunk->size())
      return Failure(Code::kCorrupt, path, ": trunk tensor ", Quote(entry.name), " ends at byte ",
                     entry.offset + entry.bytes, ", the file has ", trunk->size(),
                     "; it is cut short, copy it again");
  return trunk;
}

Result<std::vector<uint8_t>> ReadCodebookFile(const std::string& path, int64_t entries,
                                              const FileOpener& open) {
  WASTE_ASSIGN(const std::unique_ptr<File> file, open(path, IoMode::kBuffered));
  const int64_t most = kMaxCodebooks * CodebookRecordBytes(entries);
  if (file->size() > most)
    return Failure(Code::kCorrupt, path, ": ", file->size(), " bytes, more than the ", most,
                   " of all books that records can name");
  std::vector<uint8_t> bytes(static_cast<size_t>(file->size()));
  WASTE_TRY(file->ReadAt(0, bytes));
  return bytes;
}

// The file's bytes, or none if there is no such file.
Result<std::vector<uint8_t>> ReadOptionalFile(const std::string& path, int64_t max_bytes) {
  if (!FileExists(path)) return std::vector<uint8_t>();
  return ReadWholeFile(path, max_bytes);
}

// Reads once more what could not be read or was found damaged: after a drive's or a bus's reset, or
// when bytes were hurt on their way, that helps; damage on the medium comes back.
template <typename Attempt>
Status TryTwice(const Attempt& attempt) {
  Status status = attempt();
  return status.ok() ? status : attempt();
}

}  // namespace

Result<std::unique_ptr<Container>> Container::Open(const std::string& folder, IoMode mode,
                                                   const FileOpener& open) {
  Container container;
  container.folder_ = folder;
  container.mode_ = mode;
  WASTE_ASSIGN(container.manifest_, ReadManifest(folder));
  WASTE_TRY(container.OpenFiles(mode, open));
  WASTE_TRY(container.ReadSideFiles());
  return std::make_unique<Container>(std::move(container));
}

Status Container::OpenFiles(IoMode mode, const FileOpener& open) {
  WASTE_ASSIGN(trunk_, OpenTrunk(JoinPath(folder_, "trunk.bin"), manifest_, open));
  WASTE_TRY(OpenBanks(mode, open));
  if (!manifest_.has_experts) return Status();
  const std::string path = JoinPath(folder_, "codebooks.bin");
  WASTE_ASSIGN(const std::vector<uint8_t> bytes,
               ReadCodebookFile(path, manifest_.codec.entries, open));
  codebook_file_bytes_ = static_cast<int64_t>(bytes.size());
  WASTE_ASSIGN(codebooks_, ParseCodebooks(bytes, manifest_.codec.entries, path));
  return Status();
}

Status Container::OpenBanks(IoMode mode, const FileOpener& open) {
  WASTE_ASSIGN(std::vector<std::string> paths, ReadDriveFolders(folder_));
  folders_ = std::make_unique<BankFolders>(std::move(paths));
  if (!manifest_.has_experts) return Status();
  for (const std::string& path : folders_->paths)
    if (!IsFolder(path))
      folders_->notices.Add(JoinPath(folder_, "drives.json") + ": there is no folder " + path +
                            " now; banks are read from the other folders");
  for (const auto& [layer, entry] : manifest_.layers) {
    WASTE_ASSIGN(std::vector<BankCopies::Copy> copies,
                 OpenBankCopies(layer, entry, mode, open, *folders_));
    banks_.try_emplace(layer, layer, std::move(copies), *folders_);
  }
  return Status();
}

// A container without a tokenizer or a chat format is sound: it can still evaluate token ids.
Status Container::ReadSideFiles() {
  WASTE_ASSIGN(rank_file_,
               ReadOptionalFile(JoinPath(folder_, "tokenizer.model"), kMaxRankFileBytes));
  const std::string specials_path = JoinPath(folder_, "specials.json");
  if (FileExists(specials_path)) {
    WASTE_ASSIGN(const std::vector<uint8_t> text, ReadWholeFile(specials_path, kMaxJsonBytes));
    WASTE_ASSIGN(specials_, ParseSpecials(AsText(text), specials_path));
  }
  const std::string chat_path = JoinPath(folder_, "chat.json");
  if (FileExists(chat_path)) {
    WASTE_ASSIGN(const std::vector<uint8_t> text, ReadWholeFile(chat_path, kMaxJsonBytes));
    WASTE_ASSIGN(chat_, ParseJsonText(AsText(text), chat_path));
    if (!chat_->is_object()) return Failure(Code::kFormat, chat_path, ": no object");
  }
  return Status();
}

int64_t Container::total_bytes() const {
  int64_t total = trunk_->size() + codebook_file_bytes_;
  for (const auto& [layer, bank] : banks_) total += bank.file(0).size();
  return total;
}

int64_t Container::codebook_bytes() const {
  int64_t bytes = std::ssize(codebooks_.values) * static_cast<int64_t>(sizeof(float));
  for (const OwnedBookForms& forms : codebooks_.forms) bytes += forms.bytes();
  return bytes;
}

bool Container::direct_io() const {
  for (const auto& [layer, bank] : banks_)
    for (int64_t copy = 0; copy < bank.count(); ++copy)
      if (!bank.file(copy).direct()) return false;
  return !banks_.empty();
}

Status Container::ReadTrunk(const TrunkEntry& entry, std::span<uint8_t> out) const {
  WASTE_CHECK(static_cast<int64_t>(out.size()) == entry.bytes);
  return ReadTrunkPart(entry, 0, out);
}

Status Container::ReadTrunkPart(const TrunkEntry& entry, int64_t from,
                                std::span<uint8_t> out) const {
  WASTE_CHECK(from >= 0 && from + static_cast<int64_t>(out.size()) <= entry.bytes);
  const Status read = TryTwice([&] { return trunk_->ReadAt(entry.offset + from, out); });
  if (read.ok()) return read;
  return Failure(read.code(), "trunk tensor ", Quote(entry.name), ": ", read.message());
}

void Container::ForgetTrunkPart(const TrunkEntry& entry, int64_t from, int64_t size) const {
  if (mode_ != IoMode::kBuffered) trunk_->Forget(entry.offset + from, size);
}

int64_t Container::TrunkRowScratch(const TrunkEntry& entry) {
  const int64_t scales =
      IsQuantised(entry.format) ? kScaleBytes * TrunkRowGroups(entry.columns()) : 0;
  return TrunkRowBytes(entry.format, entry.columns()) + scales;
}

Status Container::ReadTrunkRow(const TrunkEntry& entry, int64_t row, std::span<float> out) const {
  std::vector<uint8_t> scratch(static_cast<size_t>(TrunkRowScratch(entry)));
  return ReadTrunkRow(entry, row, scratch, out);
}

Status Container::ReadTrunkRow(const TrunkEntry& entry, int64_t row, std::span<uint8_t> scratch,
                               std::span<float> out) const {
  WASTE_CHECK(static_cast<int64_t>(out.size()) == entry.columns());
  WASTE_CHECK(static_cast<int64_t>(scratch.size()) >= TrunkRowScratch(entry));
  if (row < 0 || row >= entry.rows())
    return Failure(Code::kArgument, trunk_->path(), ": trunk tensor ", Quote(entry.name), " has ",
                   entry.rows(), " rows, asked for row ", row);
  const int64_t row_bytes = TrunkRowBytes(entry.format, entry.columns());
  const auto payload = scratch.first(static_cast<size_t>(row_bytes));
  WASTE_TRY(ReadTrunkPart(entry, row * row_bytes, payload));

  std::span<uint8_t> scales;
  if (IsQuantised(entry.format)) {
    const int64_t scale_bytes = kScaleBytes * TrunkRowGroups(entry.columns());
    scales = scratch.subspan(payload.size(), static_cast<size_t>(scale_bytes));
    const int64_t scales_at = entry.scale_offset - entry.offset;
    WASTE_TRY(ReadTrunkPart(entry, scales_at + row * scale_bytes, scales));
  }
  const TrunkMatrix matrix{.format = entry.format,
                           .rows = 1,
                           .columns = entry.columns(),
                           .payload = payload.data(),
                           .scales = scales.empty() ? nullptr : scales.data()};
  DecodeTrunkRow(matrix, 0, out);
  return Status();
}

Status Container::SetExpertDims(const ExpertDims& dims) {
  if (!manifest_.has_experts) return Status();
  const std::optional<ExpertLayout> layout = MakeExpertLayout(manifest_.codec, dims);
  if (!layout)
    return Failure(Code::kCorrupt, folder_, ": experts of ", dims.inner, " x ", dims.outer,
                   " are not possible; both must be multiples of 8, the record below 4 GiB");
  for (const auto& [number, layer] : manifest_.layers)
    if (layer.record_bytes() != layout->record_bytes)
      return Failure(Code::kCorrupt, JoinPath(folder_, layer.file), ": records of ",
                     layer.record_bytes(), " bytes; experts of ", dims.inner, " x ", dims.outer,
                     " need ", layout->record_bytes, "; the bank is of another model");
  layout_ = *layout;
  for (const auto& [number, bank] : banks_) WASTE_TRY(CompareCopies(number));
  return Status();
}

// A header holds the crc of its record, so banks of different conversions differ in the first one.
// Copies that fail or are damaged are for ReadRecord to go around.
Status Container::CompareCopies(int32_t layer) const {
  const BankCopies& bank = banks_.at(layer);
  if (bank.count() == 1) return Status();
  WASTE_ASSIGN(AlignedBuffer record, AlignedBuffer::Allocate(layout_.record_bytes));
  const std::span<uint8_t> page = record.bytes().first(kExpertAlignment);
  std::array<uint8_t, kExpertHeaderSize> header;
  int64_t first = -1;
  for (int64_t copy = 0; copy < bank.count(); ++copy) {
    if (!bank.file(copy).ReadAt(0, page).ok()) continue;
    if (first >= 0 && std::equal(header.begin(), header.end(), page.begin())) continue;
    if (!ReadCopy(layer, 0, copy, record.bytes()).ok()) continue;
    if (first >= 0)
      return Failure(Code::kCorrupt, CopyPath(layer, first), " and ", CopyPath(layer, copy),
                     ": both are sound, and hold different experts; they come from different "
                     "conversions: delete the one that is not of this container");
    std::copy_n(page.begin(), kExpertHeaderSize, header.begin());
    first = copy;
  }
  return Status();
}

int64_t Container::record_bytes() const {
  int64_t most = 0;
  for (const auto& [number, layer] : manifest_.layers) most = std::max(most, layer.record_bytes());
  return most;
}

// Adds the bank's path to what ParseExpertHeader says.
Result<ExpertHeader> Container::ParseHeader(int32_t layer, int32_t expert,
                                            std::span<const uint8_t> record,
                                            const std::string& path) const {
  WASTE_CHECK(layout_.record_bytes > 0);  // SetExpertDims was called
  auto header = ParseExpertHeader(record, layer, expert, layout_, codebooks_.count());
  if (!header.ok()) return Failure(header.status().code(), path, ": ", header.status().message());
  const int64_t gap = codebooks_.FindGap(header->first_codebook, 3 * layout_.codec.stages);
  if (gap >= 0)
    return Failure(Code::kCorrupt, path, ": bank ", layer, ", expert ", expert,
                   ": it needs codebook ", gap, ", which is empty in codebooks.bin");
  return header;
}

Status Container::CheckRecord(int32_t layer, int32_t expert, std::span<const uint8_t> record,
                              bool verify, const std::string& path) const {
  WASTE_ASSIGN(const ExpertHeader header, ParseHeader(layer, expert, record, path));
  if (!verify) return Status();
  const Status crc = CheckExpertCrc(record, layer, expert, layout_, header);
  return crc.ok() ? crc : Failure(crc.code(), path, ": ", crc.message());
}

Status Container::CheckExpert(int32_t layer, int32_t expert) const {
  const auto entry = manifest_.layers.find(layer);
  if (entry == manifest_.layers.end())
    return Failure(Code::kArgument, folder_, ": layer ", layer, " has no experts");
  if (expert < 0 || expert >= entry->second.experts)
    return Failure(Code::kArgument, JoinPath(folder_, entry->second.file), ": bank ", layer,
                   " has ", entry->second.experts, " experts, asked for expert ", expert);
  return Status();
}

Status Container::ReadRecord(int32_t layer, int32_t expert, std::span<uint8_t> out,
                             bool verify) const {
  WASTE_TRY(CheckExpert(layer, expert));
  return TryTwice([&] { return ReadRecordOnce(layer, expert, out, verify); });
}

Status Container::ReadRecordOnce(int32_t layer, int32_t expert, std::span<uint8_t> out,
                                 bool verify) const {
  const int64_t size = manifest_.layers.at(layer).record_bytes();
  WASTE_CHECK(static_cast<int64_t>(out.size()) >= size);
  const std::span<uint8_t> record = out.first(size);
  const auto check = [&](const File& file) {
    return CheckRecord(layer, expert, record, verify, file.path());
  };
  return banks_.at(layer).Read(expert, record, std::ref(check));  // by reference: no allocation
}

const std::string& Container::CopyPath(int32_t layer, int64_t copy) const {
  return banks_.at(layer).file(copy).path();
}

Status Container::ReadCopy(int32_t layer, int32_t expert, int64_t copy,
                           std::span<uint8_t> out) const {
  WASTE_TRY(CheckExpert(layer, expert));
  const std::span<uint8_t> record = out.first(manifest_.layers.at(layer).record_bytes());
  const auto check = [&](const File& file) {
    return CheckRecord(layer, expert, record, true, file.path());
  };
  return banks_.at(layer).ReadCopy(copy, expert, record, std::ref(check));
}

Result<ExpertRecord> Container::ParseRecord(int32_t layer, int32_t expert,
                                            std::span<const uint8_t> record) const {
  const auto bank = banks_.find(layer);
  if (bank == banks_.end())
    return Failure(Code::kArgument, folder_, ": layer ", layer, " has no experts");
  const auto size = static_cast<size_t>(layout_.record_bytes);
  WASTE_ASSIGN(const ExpertHeader header,
               ParseHeader(layer, expert, record.first(std::min(size, record.size())),
                           bank->second.file(0).path()));
  const auto matrix = [&](int64_t kind, int64_t rows, int64_t columns, int64_t indices_at,
                          int64_t scales_at) {
    ExpertMatrix view{.codec = layout_.codec,
                      .rows = rows,
                      .columns = columns,
                      .indices = record.data() + indices_at,
                      .scales = record.data() + scales_at};
    const int64_t stages = layout_.codec.stages;
    for (int64_t stage = 0; stage < stages; ++stage) {
      const int64_t number = header.first_codebook + kind * stages + stage;
      view.books[stage] = codebooks_.book(number);
      view.forms[stage] = codebooks_.book_forms(number);
    }
    return view;
  };
  const ExpertDims& dims = layout_.dims;
  return ExpertRecord{
      .gate = matrix(0, dims.inner, dims.outer, layout_.gate_at, layout_.scales_at),
      .up = matrix(1, dims.inner, dims.outer, layout_.up_at, layout_.up_scales_at()),
      .down = matrix(2, dims.outer, dims.inner, layout_.down_at, layout_.down_scales_at())};
}

}  // namespace waste
