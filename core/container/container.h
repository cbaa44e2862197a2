// SPDX-License-Identifier: Apache-2.0
//
// A container opened for reading: manifest parsed, every file's size checked against it, codebooks
// checked and decoded, side files read. Trunk tensors and expert records are read on demand, each
// validated before it is handed out. Banks may lie on several drives, in copies. Holds descriptors
// and codebooks, no weights. Reading is for any thread.

#ifndef WASTE_CORE_CONTAINER_CONTAINER_H_
#define WASTE_CORE_CONTAINER_CONTAINER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/status.h"
#include "container/bank_copies.h"
#include "container/codebooks.h"
#include "container/expert_record.h"
#include "container/manifest.h"
#include "container/specials.h"
#include "os/file.h"

namespace waste {

// One expert, as views into a record of bytes that somebody else owns.
struct ExpertRecord {
  ExpertMatrix gate;  // [inner, outer]
  ExpertMatrix up;    // [inner, outer]
  ExpertMatrix down;  // [outer, inner]
};

class Container {
 public:
  // Errors: kIo (no such folder or file, named), and those of ParseManifest and ReadDriveFolders,
  // all naming the file and the numbers.
  static Result<std::unique_ptr<Container>> Open(const std::string& folder, IoMode mode,
                                                 const FileOpener& open = OpenFile);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  // The folders that banks may lie in: the container's own, and those of drives.json.
  const std::vector<std::string>& bank_folders() const { return folders_->paths; }
  // The next line that tells of a drive or a copy that reading went around, each said once.
  std::optional<std::string> NextNotice() const { return folders_->notices.Next(); }
  int64_t total_bytes() const;     // of trunk, codebooks and banks, copies counted once
  int64_t codebook_bytes() const;  // in memory, as f32
  bool direct_io() const;          // whether every copy was opened for direct reads

  const std::vector<uint8_t>& rank_file() const { return rank_file_; }         // tokenizer.model
  const std::vector<SpecialToken>& specials() const { return specials_; }      // sorted by id
  const std::optional<nlohmann::ordered_json>& chat() const { return chat_; }  // chat.json

  // What cannot be read, or is found damaged, is read once more before that is an error.

  // Reads a tensor's payload and scales (entry.bytes) into `out`, from its offset on. Errors name
  // the tensor: kIo, kCorrupt.
  Status ReadTrunk(const TrunkEntry& entry, std::span<uint8_t> out) const;
  // The part of them that starts `from` bytes after the tensor's offset.
  Status ReadTrunkPart(const TrunkEntry& entry, int64_t from, std::span<uint8_t> out) const;
  // Tells the page cache that this part is kept in memory now, unless the container was opened for
  // buffered reads: then the cache is wanted, and the next open reads from it.
  void ForgetTrunkPart(const TrunkEntry& entry, int64_t from, int64_t size) const;
  // One row of a tensor, decoded: out is [columns]. `scratch` holds TrunkRowScratch(entry) bytes;
  // the form without it allocates. Errors: kArgument (there is no such row), kIo.
  Status ReadTrunkRow(const TrunkEntry& entry, int64_t row, std::span<uint8_t> scratch,
                      std::span<float> out) const;
  Status ReadTrunkRow(const TrunkEntry& entry, int64_t row, std::span<float> out) const;
  static int64_t TrunkRowScratch(const TrunkEntry& entry);  // payload and scales of one row

  // Tells the reader what shape experts have; must be called before records are read. Errors:
  // kCorrupt if some bank's records are not what this shape and the codec need, or if copies of one
  // bank come from different conversions.
  Status SetExpertDims(const ExpertDims& dims);
  int64_t record_bytes() const;  // the largest of all banks; a multiple of 4096
  const ExpertLayout& expert_layout() const { return layout_; }  // after SetExpertDims

  // Errors: kArgument (no such layer or expert), naming the bank.
  Status CheckExpert(int32_t layer, int32_t expert) const;
  // Reads the record of one expert, from whichever copy comes soonest; `out` is page-aligned and
  // holds record_bytes() of its layer. With `verify`, its crc is checked too. A copy that fails is
  // passed over where there is another. Errors name bank and expert: kArgument (no such layer or
  // expert), kIo, kCorrupt, kFormat, kUnsupported.
  Status ReadRecord(int32_t layer, int32_t expert, std::span<uint8_t> out, bool verify) const;
  // For those who check copies: how many there are of a layer's bank (the layer exists), the file
  // of one, and its record with the crc checked. Errors: those of ReadRecord.
  int64_t copy_count(int32_t layer) const { return banks_.at(layer).count(); }
  const std::string& CopyPath(int32_t layer, int64_t copy) const;
  Status ReadCopy(int32_t layer, int32_t expert, int64_t copy, std::span<uint8_t> out) const;
  // Views into a record that ReadRecord has filled. Cheap; validates again, since memory may not be
  // trusted to be what it was.
  Result<ExpertRecord> ParseRecord(int32_t layer, int32_t expert,
                                   std::span<const uint8_t> record) const;

 private:
  Container() = default;

  Status OpenFiles(IoMode mode, const FileOpener& open);
  Status OpenBanks(IoMode mode, const FileOpener& open);
  Status ReadSideFiles();
  Status ReadRecordOnce(int32_t layer, int32_t expert, std::span<uint8_t> out, bool verify) const;
  Status CompareCopies(int32_t layer) const;
  Result<ExpertHeader> ParseHeader(int32_t layer, int32_t expert, std::span<const uint8_t> record,
                                   const std::string& path) const;
  Status CheckRecord(int32_t layer, int32_t expert, std::span<const uint8_t> record, bool verify,
                     const std::string& path) const;

  std::string folder_;
  IoMode mode_ = IoMode::kAuto;
  Manifest manifest_;
  ExpertLayout layout_;
  std::unique_ptr<File> trunk_;
  std::unique_ptr<BankFolders> folders_;
  std::map<int32_t, BankCopies> banks_;  // by layer; they point into folders_
  Codebooks codebooks_;
  int64_t codebook_file_bytes_ = 0;
  std::vector<uint8_t> rank_file_;
  std::vector<SpecialToken> specials_;
  std::optional<nlohmann::ordered_json> chat_;
};

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_CONTAINER_H_
