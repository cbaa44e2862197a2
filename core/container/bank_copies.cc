// SPDX-License-Identifier: Apache-2.0

#include "container/bank_copies.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "container/json_text.h"

namespace waste {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr const char* kAvoided = "; that folder is read from only where no other has the bank";

// All folders, for a message.
std::string ListOf(const std::vector<std::string>& folders) {
  std::string list;
  for (const std::string& folder : folders) list += (list.empty() ? "" : ", ") + folder;
  return list;
}

Result<std::unique_ptr<File>> OpenCopy(const std::string& path, int32_t layer,
                                       const LayerEntry& entry, IoMode mode,
                                       const FileOpener& open) {
  WASTE_ASSIGN(std::unique_ptr<File> bank, open(path, mode));
  if (bank->size() != entry.bytes)
    return Failure(Code::kCorrupt, path, ": the bank of layer ", layer, " has ", bank->size(),
                   " bytes, the manifest says ", entry.bytes, "; copy it again");
  return bank;
}

}  // namespace

Result<std::vector<BankCopies::Copy>> OpenBankCopies(int32_t layer, const LayerEntry& entry,
                                                     IoMode mode, const FileOpener& open,
                                                     BankFolders& folders) {
  const bool is_alone = folders.paths.size() == 1;  // what is not there is an error of its own then
  std::vector<BankCopies::Copy> copies;
  std::vector<std::pair<int32_t, Status>> refused;
  for (int32_t drive = 0; drive < folders.drives.count(); ++drive) {
    const std::string path = JoinPath(folders.paths[drive], entry.file);
    if (!is_alone && !FileExists(path)) continue;
    auto bank = OpenCopy(path, layer, entry, mode, open);
    if (bank.ok()) {
      copies.push_back({drive, *std::move(bank)});
    } else if (is_alone || bank.status().code() != Code::kIo) {
      return std::move(bank).status();
    } else {
      refused.emplace_back(drive, std::move(bank).status());
    }
  }
  if (copies.empty()) {
    std::string reasons;
    for (const auto& [drive, status] : refused) reasons += "; " + status.message();
    return Failure(Code::kIo, "layer ", layer, ": its bank ", entry.file,
                   " can be read in none of these folders: ", ListOf(folders.paths), reasons,
                   "; copy it into one of them, or name in drives.json the folder that has it");
  }
  for (const auto& [drive, status] : refused)
    if (folders.drives.Avoid(drive)) folders.notices.Add(status.message() + kAvoided);
  return copies;
}

BankCopies::BankCopies(int32_t layer, std::vector<Copy> copies, BankFolders& folders)
    : layer_(layer), copies_(std::move(copies)), folders_(folders) {
  WASTE_CHECK(!copies_.empty() && folders.drives.count() <= DriveSet::kMaxDrives);
}

// Begins a read on the drive of a copy that was not tried yet; sound ones come first.
int64_t BankCopies::Begin(uint32_t tried, int64_t bytes) const {
  const uint32_t damaged = damaged_.load(std::memory_order_relaxed);
  DriveSet::Drives sound = 0;
  DriveSet::Drives left = 0;
  for (int64_t copy = 0; copy < count(); ++copy) {
    const DriveSet::Drives drive = DriveSet::Drives{1} << copies_[copy].drive;
    if ((tried >> copy & 1) == 0) left |= drive;
    if (((tried | damaged) >> copy & 1) == 0) sound |= drive;
  }
  const int32_t chosen = folders_.drives.Begin(sound != 0 ? sound : left, bytes, NowNs());
  int64_t copy = 0;
  while (copies_[copy].drive != chosen) ++copy;
  return copy;
}

Status BankCopies::ReadAt(int64_t copy, int32_t expert, std::span<uint8_t> out) const {
  const Status read = file(copy).ReadAt(expert * std::ssize(out), out);
  return read.ok()
             ? read
             : Failure(read.code(), "bank ", layer_, ", expert ", expert, ": ", read.message());
}

Status BankCopies::ReadCopy(int64_t copy, int32_t expert, std::span<uint8_t> out,
                            const Check& check) const {
  WASTE_TRY(ReadAt(copy, expert, out));
  return check(file(copy));
}

Status BankCopies::Read(int32_t expert, std::span<uint8_t> out, const Check& check) const {
  std::vector<Refusal> refusals;
  for (uint32_t tried = 0; std::ssize(refusals) < count();) {
    const int64_t copy = Begin(tried, std::ssize(out));
    Status status = ReadAt(copy, expert, out);
    folders_.drives.End(copies_[copy].drive, std::ssize(out), NowNs(), status.ok());
    if (status.ok()) status = check(file(copy));
    if (status.ok()) {
      Remember(refusals);
      return status;
    }
    tried |= uint32_t{1} << copy;
    refusals.push_back({copy, std::move(status)});
  }
  if (count() == 1) return refusals[0].status;
  Code code = refusals[0].status.code();
  std::string messages;
  for (const Refusal& refusal : refusals) {
    if (refusal.status.code() == Code::kIo) code = Code::kIo;
    messages += (messages.empty() ? "" : "; and its copy: ") + refusal.status.message();
  }
  return Failure(code, messages);
}

// Another copy had the record, so these need not be asked again, and each is told of once.
void BankCopies::Remember(const std::vector<Refusal>& refusals) const {
  for (const auto& [copy, status] : refusals) {
    if (status.code() == Code::kIo) {
      if (folders_.drives.Avoid(copies_[copy].drive))
        folders_.notices.Add(status.message() + kAvoided);
      continue;
    }
    const uint32_t bit = uint32_t{1} << copy;
    if ((damaged_.fetch_or(bit, std::memory_order_relaxed) & bit) == 0)
      folders_.notices.Add(status.message() + "; the bank's other copy is read instead");
  }
}

}  // namespace waste
