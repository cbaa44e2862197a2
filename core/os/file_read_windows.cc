// SPDX-License-Identifier: Apache-2.0
//
// Reading: ReadFile at offsets on handles opened for overlapped reads, because the system lets only
// one read at a time through any other handle. Direct where a real read past the cache succeeds;
// what is then read through the cache all the same is opened as sequential, whose pages the cache
// gives up first.

#include <windows.h>

#include <algorithm>
#include <utility>

#include "base/aligned_buffer.h"
#include "os/file.h"
#include "os/system_error.h"
#include "os/whole_read.h"
#include "os/windows_path.h"

namespace waste {
namespace {

class Handle {
 public:
  explicit Handle(HANDLE handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, INVALID_HANDLE_VALUE)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != INVALID_HANDLE_VALUE && handle_ != nullptr) CloseHandle(handle_);
  }
  HANDLE get() const { return handle_; }
  bool ok() const { return handle_ != INVALID_HANDLE_VALUE && handle_ != nullptr; }

 private:
  HANDLE handle_;
};

int64_t ReadSomeOf(HANDLE file, int64_t offset, std::span<uint8_t> out) {
  // Its own event: other threads wait for reads of the same handle.
  const Handle event(CreateEventW(nullptr, TRUE, FALSE, nullptr));
  if (!event.ok()) return -int64_t{GetLastError()};
  OVERLAPPED at = {};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  at.hEvent = event.get();
  DWORD got = 0;
  BOOL done = ReadFile(file, out.data(), static_cast<DWORD>(out.size()), nullptr, &at);
  if (done || GetLastError() == ERROR_IO_PENDING) done = GetOverlappedResult(file, &at, &got, TRUE);
  if (done) return got;
  const DWORD error = GetLastError();
  return error == ERROR_HANDLE_EOF ? 0 : -int64_t{error};
}

class WindowsFile : public File {
 public:
  WindowsFile(std::string path, Handle handle, int64_t size, bool direct)
      : path_(std::move(path)), handle_(std::move(handle)), size_(size), direct_(direct) {}

  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    return ReadWhole(path_, size_, direct_, offset, out,
                     [this](int64_t at, std::span<uint8_t> part) {
                       return ReadSomeOf(handle_.get(), at, part);
                     });
  }

  int64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }
  bool direct() const override { return direct_; }

 private:
  const std::string path_;
  const Handle handle_;
  const int64_t size_;
  const bool direct_;
};

// Others may write, rename and remove the file meanwhile, as elsewhere.
Handle OpenToRead(const std::string& path, DWORD flags) {
  return Handle(CreateFileW(WidePath(path).c_str(), GENERIC_READ,
                            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                            OPEN_EXISTING, FILE_FLAG_OVERLAPPED | flags, nullptr));
}

// Sectors may be larger than a block, and some file systems take the flag and refuse the reads,
// hence one real read.
Handle OpenDirect(const std::string& path) {
  Handle handle = OpenToRead(path, FILE_FLAG_NO_BUFFERING);
  if (!handle.ok()) return handle;
  const auto read = [&](int64_t at, std::span<uint8_t> part) {
    return ReadSomeOf(handle.get(), at, part);
  };
  auto block = AlignedBuffer::Allocate(kDirectBlock);
  if (!block.ok() || ReadAvailable(0, block->bytes(), true, read) != kDirectBlock)
    return Handle(INVALID_HANDLE_VALUE);
  return handle;
}

bool IsSameFile(const BY_HANDLE_FILE_INFORMATION& a, const BY_HANDLE_FILE_INFORMATION& b) {
  return a.dwVolumeSerialNumber == b.dwVolumeSerialNumber && a.nFileIndexHigh == b.nFileIndexHigh &&
         a.nFileIndexLow == b.nFileIndexLow;
}

}  // namespace

Result<std::unique_ptr<File>> OpenFile(const std::string& path, IoMode mode) {
  if (IsFolder(path)) return Failure(Code::kIo, "cannot open ", path, ": it is no file");
  Handle handle = OpenToRead(path, 0);
  if (!handle.ok()) return SystemFailure("open", path, static_cast<int>(GetLastError()));
  if (GetFileType(handle.get()) != FILE_TYPE_DISK)
    return Failure(Code::kIo, "cannot open ", path, ": it is no file");
  BY_HANDLE_FILE_INFORMATION info;
  if (!GetFileInformationByHandle(handle.get(), &info))
    return SystemFailure("open", path, static_cast<int>(GetLastError()));
  const int64_t size = int64_t{info.nFileSizeHigh} << 32 | info.nFileSizeLow;
  bool direct = false;
  // The last bytes of a file that is no multiple of a block could not be asked for directly.
  if (mode != IoMode::kBuffered && size > 0 && size % kDirectBlock == 0) {
    Handle other = OpenDirect(path);
    direct = other.ok();
    if (!direct) other = OpenToRead(path, FILE_FLAG_SEQUENTIAL_SCAN);
    BY_HANDLE_FILE_INFORMATION same;
    const bool sound =
        other.ok() && GetFileInformationByHandle(other.get(), &same) && IsSameFile(info, same);
    direct = direct && sound;
    if (sound) handle = std::move(other);
  }
  return std::unique_ptr<File>(
      std::make_unique<WindowsFile>(path, std::move(handle), size, direct));
}

}  // namespace waste
