// SPDX-License-Identifier: Apache-2.0
//
// Reading: pread, with direct I/O where the file system really does it. What cannot be read
// directly although that was asked for is read through the page cache and dropped from it again, so
// that experts are not kept twice and do not push out what others have cached.

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/aligned_buffer.h"
#include "os/file.h"
#include "os/system_error.h"
#include "os/whole_read.h"

namespace waste {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

int64_t ReadSomeOf(int descriptor, int64_t offset, std::span<uint8_t> out) {
  const ssize_t got = pread(descriptor, out.data(), out.size(), offset);
  if (got >= 0) return got;
  return errno == EINTR ? kReadInterrupted : -int64_t{errno};
}

class PosixFile : public File {
 public:
  PosixFile(std::string path, Descriptor descriptor, int64_t size, bool direct, bool drop)
      : path_(std::move(path)),
        descriptor_(std::move(descriptor)),
        size_(size),
        direct_(direct),
        drop_(drop) {}

  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    WASTE_TRY(
        ReadWhole(path_, size_, direct_, offset, out, [this](int64_t at, std::span<uint8_t> part) {
          return ReadSomeOf(descriptor_.number(), at, part);
        }));
    if (drop_) Forget(offset, static_cast<int64_t>(out.size()));
    return Status();
  }

  int64_t size() const override { return size_; }
  const std::string& path() const override { return path_; }
  bool direct() const override { return direct_; }
  void Forget([[maybe_unused]] int64_t offset, [[maybe_unused]] int64_t size) const override {
#ifdef POSIX_FADV_DONTNEED
    posix_fadvise(descriptor_.number(), offset, size, POSIX_FADV_DONTNEED);
#endif
  }

 private:
  const std::string path_;
  const Descriptor descriptor_;
  const int64_t size_;
  const bool direct_;
  const bool drop_;  // from the page cache, what has been read
};

int OpenToRead(const std::string& path, int flags) {
  int number;
  // O_NONBLOCK: a pipe somebody put in place of a file must not hang us; files do not mind it.
  do number = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  while (number < 0 && errno == EINTR);
  return number;
}

// Some file systems take the flag and refuse the reads, hence one real read.
Descriptor OpenDirect(const std::string& path) {
#if defined(O_DIRECT)
  Descriptor descriptor(OpenToRead(path, O_DIRECT));
#elif defined(F_NOCACHE)
  Descriptor descriptor(OpenToRead(path, 0));
  if (descriptor.number() >= 0 && fcntl(descriptor.number(), F_NOCACHE, 1) < 0)
    return Descriptor(-1);
#else
  Descriptor descriptor(-1);
#endif
  if (descriptor.number() < 0) return descriptor;
  const auto read = [&](int64_t at, std::span<uint8_t> part) {
    return ReadSomeOf(descriptor.number(), at, part);
  };
  auto block = AlignedBuffer::Allocate(kDirectBlock);
  if (!block.ok() || ReadAvailable(0, block->bytes(), true, read) != kDirectBlock)
    return Descriptor(-1);
  return descriptor;
}

}  // namespace

Result<std::unique_ptr<File>> OpenFile(const std::string& path, IoMode mode) {
  Descriptor descriptor(OpenToRead(path, 0));
  if (descriptor.number() < 0) return SystemFailure("open", path, errno);
  struct stat info;
  if (fstat(descriptor.number(), &info) < 0) return SystemFailure("open", path, errno);
  if (!S_ISREG(info.st_mode)) return Failure(Code::kIo, "cannot open ", path, ": it is no file");
  const int64_t size = info.st_size;
  bool direct = false;
  // The last bytes of a file that is no multiple of a block could not be asked for directly.
  const bool try_direct = mode != IoMode::kBuffered && size > 0 && size % kDirectBlock == 0;
  if (try_direct) {
    Descriptor other = OpenDirect(path);
    struct stat same;
    direct = other.number() >= 0 && fstat(other.number(), &same) == 0 &&
             same.st_ino == info.st_ino && same.st_dev == info.st_dev;
    if (direct) descriptor = std::move(other);
  }
  return std::unique_ptr<File>(std::make_unique<PosixFile>(path, std::move(descriptor), size,
                                                           direct, try_direct && !direct));
}

}  // namespace waste
