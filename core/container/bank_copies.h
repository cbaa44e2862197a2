// SPDX-License-Identifier: Apache-2.0
//
// The bank of one layer, on each drive that has a copy of it. A record is read from the copy whose
// drive is done first, and from another one where that fails or what comes is damaged: then the
// reader goes on as if nothing had happened, and one line of the log says what did. The copies hold
// the same bytes, so which one is read changes speed, never results. Any thread.

#ifndef WASTE_CORE_CONTAINER_BANK_COPIES_H_
#define WASTE_CORE_CONTAINER_BANK_COPIES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log_lines.h"
#include "base/status.h"
#include "container/drive_set.h"
#include "container/manifest.h"
#include "os/file.h"

namespace waste {

// The folders that banks may lie in, one a drive, and what is known of the drives.
struct BankFolders {
  explicit BankFolders(std::vector<std::string> folders)
      : paths(std::move(folders)), drives(static_cast<int32_t>(paths.size())) {}

  const std::vector<std::string> paths;  // the container's own first
  DriveSet drives;
  LogLines notices;
};

class BankCopies {
 public:
  struct Copy {
    int32_t drive;
    std::unique_ptr<File> file;
  };
  // Whether what was read from `file` can be used.
  using Check = std::function<Status(const File& file)>;

  // At least one copy. `folders` outlives them.
  BankCopies(int32_t layer, std::vector<Copy> copies, BankFolders& folders);

  int64_t count() const { return std::ssize(copies_); }
  const File& file(int64_t copy) const { return *copies_[copy].file; }

  // Reads the record of `expert` into `out`, which is the size of one. Errors, of all copies if
  // there are several: kIo if the system refused one, else what `check` says.
  Status Read(int32_t expert, std::span<uint8_t> out, const Check& check) const;
  // The same from one copy, whatever is known of it.
  Status ReadCopy(int64_t copy, int32_t expert, std::span<uint8_t> out, const Check& check) const;

 private:
  struct Refusal {
    int64_t copy;
    Status status;
  };

  int64_t Begin(uint32_t tried, int64_t bytes) const;
  Status ReadAt(int64_t copy, int32_t expert, std::span<uint8_t> out) const;
  void Remember(const std::vector<Refusal>& refusals) const;

  const int32_t layer_;
  const std::vector<Copy> copies_;  // by drive, ascending
  BankFolders& folders_;
  mutable std::atomic<uint32_t> damaged_{0};  // bit c: copy c
};

// The copies of a bank in the folders. Errors: kIo (none can be opened, with every folder that was
// tried), kCorrupt (one is not `entry.bytes` long). A copy that cannot be opened is a notice where
// there is another.
Result<std::vector<BankCopies::Copy>> OpenBankCopies(int32_t layer, const LayerEntry& entry,
                                                     IoMode mode, const FileOpener& open,
                                                     BankFolders& folders);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_BANK_COPIES_H_
