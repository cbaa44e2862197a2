// SPDX-License-Identifier: Apache-2.0

#include "atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "failure.h"

namespace waste_cli {
namespace {

Failure Refused(const std::string& path, const std::string& reason) {
  return Failure("IO", path + ": cannot be written: " + reason);
}

// Writes all bytes to the disk itself, or returns errno.
int WriteFully(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(descriptor, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return fsync(descriptor) == 0 ? 0 : errno;
}

}  // namespace

void CheckWritable(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw Refused(path, "it is there, and is no regular file");
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder.push_back('.');
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Refused(path, "its folder: " + std::string(std::strerror(errno)));
}

void WriteAtomically(const std::string& path, std::string_view bytes) {
  CheckWritable(path);
  const std::string beside = path + ".tmp" + std::to_string(getpid());
  const int descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) throw Refused(path, std::strerror(errno));
  int error = WriteFully(descriptor, bytes);
  if (close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  unlink(beside.c_str());
  throw Refused(path, std::strerror(error));
}

}  // namespace waste_cli
