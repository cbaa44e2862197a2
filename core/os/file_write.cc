// SPDX-License-Identifier: Apache-2.0
//
// AtomicFile over the calls of each system, and what of paths is the same on all of them.

#include <filesystem>
#include <utility>

#include "base/check.h"
#include "os/file.h"
#include "os/file_calls.h"
#include "os/system_error.h"

namespace waste {
namespace {

std::string TemporaryName(const std::string& path) { return path + ".tmp"; }

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  const std::string temporary = TemporaryName(path);
  // One that a killed process left, or a link somebody put there, is not written through.
  if (const int error = RemoveFile(temporary); error != 0)
    return SystemFailure("remove", temporary, error);
  int descriptor = -1;
  if (const int error = CreateNewFile(temporary, descriptor); error != 0)
    return SystemFailure("create", temporary, error);
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
  CloseFile(descriptor_);
  RemoveFile(TemporaryName(path_));
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
  int error = FlushFile(descriptor_);
  // Closing tells of writes that failed late, on network file systems above all.
  const int close_error = CloseFile(std::exchange(descriptor_, -1));
  if (error == 0) error = close_error;
  if (error == 0) error = RenameOver(temporary, path_);
  if (error != 0) {
    RemoveFile(temporary);
    return SystemFailure("write", path_, error);
  }
  return FlushParent(path_);
}

Status RenamePath(const std::string& from, const std::string& to) {
  if (const int error = RenameOver(from, to); error != 0)
    return SystemFailure("rename", from + " to " + to, error);
  return FlushParent(to);
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/' &&
      path.back() != static_cast<char>(std::filesystem::path::preferred_separator))
    path += '/';
  return path.append(name);
}

}  // namespace waste
