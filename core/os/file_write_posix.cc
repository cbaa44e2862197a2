// SPDX-License-Identifier: Apache-2.0
//
// Writing (AtomicFile) and folders. A name is durable only once the folder it stands in is flushed.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "os/file.h"
#include "os/system_error.h"

namespace waste {
namespace {

constexpr int64_t kWriteMax = int64_t{1} << 30;  // one call; systems refuse more than 2 GiB

std::string TemporaryName(const std::string& path) { return path + ".tmp"; }

int WriteFully(int descriptor, int64_t offset, std::span<const uint8_t> bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  int64_t done = 0;
  while (done < size) {
    const size_t wanted = static_cast<size_t>(std::min(size - done, kWriteMax));
    const ssize_t put = pwrite(descriptor, bytes.data() + done, wanted, offset + done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    if (put == 0) return EIO;
    done += put;
  }
  return 0;
}

int Flush(int descriptor) {
#ifdef F_FULLFSYNC  // here fsync leaves the data in the drive's cache
  if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
#endif
  int result;
  do result = fsync(descriptor);
  while (result < 0 && errno == EINTR);
  return result < 0 ? errno : 0;
}

Status FlushParent(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string above = std::filesystem::path(path).parent_path().string();
  const std::string parent = above.empty() ? "." : above;
  const int descriptor = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return SystemFailure("open folder", parent, errno);
  const int error = Flush(descriptor);
  close(descriptor);
  // Some file systems cannot flush folders; there is nothing more to do on them.
  if (error != 0 && error != EINVAL && error != ENOTSUP)
    return SystemFailure("flush folder", parent, error);
  return Status();
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  const std::string temporary = TemporaryName(path);
  // One that a killed process left, or a link somebody put there, is not written through.
  if (unlink(temporary.c_str()) < 0 && errno != ENOENT)
    return SystemFailure("remove", temporary, errno);
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return SystemFailure("create", temporary, errno);
  return AtomicFile(path, descriptor);
}

AtomicFile::AtomicFile(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(TemporaryName(path_).c_str());
}

Status AtomicFile::Append(std::span<const uint8_t> bytes) {
  WASTE_CHECK(descriptor_ >= 0);
  const int error = WriteFully(descriptor_, size_, bytes);
  if (error != 0)
    return Failure(Code::kIo, "cannot write ", bytes.size(), " bytes at ", size_, " of ",
                   TemporaryName(path_), ": ", SystemErrorText(error));
  size_ += static_cast<int64_t>(bytes.size());
  return Status();
}

Status AtomicFile::Append(std::string_view text) {
  return Append(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

Status AtomicFile::WriteAt(int64_t offset, std::span<const uint8_t> bytes) {
  WASTE_CHECK(descriptor_ >= 0);
  WASTE_CHECK(offset >= 0 && offset + static_cast<int64_t>(bytes.size()) <= size_);
  const int error = WriteFully(descriptor_, offset, bytes);
  if (error != 0)
    return Failure(Code::kIo, "cannot write ", bytes.size(), " bytes at ", offset, " of ",
                   TemporaryName(path_), ": ", SystemErrorText(error));
  return Status();
}

Status AtomicFile::Commit() {
  WASTE_CHECK(descriptor_ >= 0);
  const std::string temporary = TemporaryName(path_);
  int error = Flush(descriptor_);
  // close tells of writes that failed late, on network file systems above all.
  if (close(std::exchange(descriptor_, -1)) < 0 && error == 0 && errno != EINTR) error = errno;
  if (error == 0 && rename(temporary.c_str(), path_.c_str()) < 0) error = errno;
  if (error != 0) {
    unlink(temporary.c_str());
    return SystemFailure("write", path_, error);
  }
  return FlushParent(path_);
}

bool FileExists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<std::vector<std::string>> ListFolder(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) return SystemFailure("list", path, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

Status CreateFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0777) < 0) return SystemFailure("create folder", path, errno);
  return Status();
}

Status RenamePath(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) < 0)
    return SystemFailure("rename", from + " to " + to, errno);
  return FlushParent(to);
}

void RemoveFolder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

}  // namespace waste
