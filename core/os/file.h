// SPDX-License-Identifier: Apache-2.0
//
// Files that are read at offsets, and nothing else: no cursor, so any number of threads may read
// one File at once. EINTR and short reads are handled inside; what comes back is the whole range or
// a Status that names the file, the offset and the size. Tests put a FakeFile (tests/support)
// behind the same interface.

#ifndef WASTE_CORE_OS_FILE_H_
#define WASTE_CORE_OS_FILE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace waste {

enum class IoMode : int32_t { kAuto = 0, kDirect = 1, kBuffered = 2 };

class File {
 public:
  virtual ~File() = default;

  // Fills `out` from `offset` on. Errors: kIo (refused, or the medium is gone), kCorrupt (the file
  // ends inside the range).
  virtual Status ReadAt(int64_t offset, std::span<uint8_t> out) const = 0;
  virtual int64_t size() const = 0;
  virtual const std::string& path() const = 0;
  // Whether reads bypass the page cache, as probed by one real read when it was opened. Then
  // offset, size and address of every read must be multiples of 4096.
  virtual bool direct() const { return false; }
  // Lets the page cache drop a range that was read and is kept elsewhere. Only a hint.
  virtual void Forget(int64_t /*offset*/, int64_t /*size*/) const {}
};

// Opens for reading. kDirect and kAuto try direct I/O on one real 4,096-byte read and fall back to
// buffered reads (direct() tells). Errors: kIo, with the system's reason.
Result<std::unique_ptr<File>> OpenFile(const std::string& path, IoMode mode);

// OpenFile, or what tests put in its place.
using FileOpener =
    std::function<Result<std::unique_ptr<File>>(const std::string& path, IoMode mode)>;

// A whole small file. Errors: kIo; kFormat if it is larger than `max_bytes`.
Result<std::vector<uint8_t>> ReadWholeFile(const std::string& path, int64_t max_bytes);

// A file that appears under its name only when Commit succeeds: written beside it as NAME.tmp,
// flushed to the medium, renamed. Destroyed without Commit, it leaves nothing behind. One thread.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  Status Append(std::span<const uint8_t> bytes);
  Status Append(std::string_view text);
  // Overwrites bytes that were appended before.
  Status WriteAt(int64_t offset, std::span<const uint8_t> bytes);
  int64_t size() const { return size_; }
  Status Commit();

 private:
  AtomicFile(std::string path, int descriptor);
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

bool FileExists(const std::string& path);  // a file or folder of that name, whatever it is
bool IsFolder(const std::string& path);
// Names (not paths) in a folder, sorted. Errors: kIo.
Result<std::vector<std::string>> ListFolder(const std::string& path);
Status CreateFolder(const std::string& path);                       // kIo if it exists
Status RenamePath(const std::string& from, const std::string& to);  // and flushes the parent folder
void RemoveFolder(const std::string& path);                         // with all in it; best effort
std::string JoinPath(std::string_view folder, std::string_view name);

}  // namespace waste

#endif  // WASTE_CORE_OS_FILE_H_
