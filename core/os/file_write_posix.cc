// SPDX-License-Identifier: Apache-2.0
//
// Writing and folders. A name is durable only once the folder it stands in is flushed.

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "os/file.h"
#include "os/file_calls.h"
#include "os/system_error.h"

namespace waste {
namespace {

constexpr int64_t kWriteMax = int64_t{1} << 30;  // one call; systems refuse more than 2 GiB

}  // namespace

int CreateNewFile(const std::string& path, int& descriptor) {
  descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return descriptor < 0 ? errno : 0;
}

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

int FlushFile(int descriptor) {
#ifdef F_FULLFSYNC  // here fsync leaves the data in the drive's cache
  if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
#endif
  int result;
  do result = fsync(descriptor);
  while (result < 0 && errno == EINTR);
  return result < 0 ? errno : 0;
}

int CloseFile(int descriptor) { return close(descriptor) < 0 && errno != EINTR ? errno : 0; }

int RenameOver(const std::string& from, const std::string& to) {
  return rename(from.c_str(), to.c_str()) < 0 ? errno : 0;
}

int RemoveFile(const std::string& path) {
  return unlink(path.c_str()) < 0 && errno != ENOENT ? errno : 0;
}

Status FlushParent(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string above = std::filesystem::path(path).parent_path().string();
  const std::string parent = above.empty() ? "." : above;
  const int descriptor = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return SystemFailure("open folder", parent, errno);
  const int error = FlushFile(descriptor);
  close(descriptor);
  // Some file systems cannot flush folders; there is nothing more to do on them.
  if (error != 0 && error != EINVAL && error != ENOTSUP)
    return SystemFailure("flush folder", parent, error);
  return Status();
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

void RemoveFolder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace waste
