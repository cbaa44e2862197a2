// SPDX-License-Identifier: Apache-2.0

#include "drive_limit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>
#include <vector>

#include "page_memory.h"
#include "rate.h"

namespace waste_cli {
namespace {

int OpenToRead(const std::filesystem::path& path, int flags) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
}

// A bank that is open for reads past the page cache, or for others that are dropped from it again.
struct Bank {
  explicit Bank(const std::filesystem::path& path) {
    struct stat status = {};
    if (stat(path.c_str(), &status) == 0) bytes = status.st_size;
    OpenDirectly(path);
    direct = descriptor >= 0;
    if (!direct) descriptor = OpenToRead(path, 0);
  }
  Bank(Bank&& other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)),
        bytes(other.bytes),
        direct(other.direct),
        refusal(std::move(other.refusal)) {}
  Bank& operator=(Bank&&) = delete;
  ~Bank() {
    if (descriptor >= 0) close(descriptor);
  }

  // Some file systems take the flag and refuse the reads, hence one real read.
  void OpenDirectly(const std::filesystem::path& path) {
#if defined(O_DIRECT)
    if (bytes % kPage != 0) {
      refusal = path.filename().string() + " is no multiple of 4096 bytes";
      return;
    }
    descriptor = OpenToRead(path, O_DIRECT);
    const Memory block = AllocatePages(kPage);
    if (descriptor >= 0 && pread(descriptor, block.get(), kPage, 0) == kPage) return;
    refusal = std::strerror(errno);
#elif defined(F_NOCACHE)
    descriptor = OpenToRead(path, 0);
    if (descriptor >= 0 && fcntl(descriptor, F_NOCACHE, 1) == 0) return;
    refusal = std::strerror(errno);
#endif
    if (descriptor >= 0) close(std::exchange(descriptor, -1));
  }

  double Read(uint8_t* out, int64_t size, int64_t offset) const {
    const ssize_t got = pread(descriptor, out, static_cast<size_t>(size), offset);
#if defined(POSIX_FADV_DONTNEED)
    if (!direct) posix_fadvise(descriptor, offset, size, POSIX_FADV_DONTNEED);
#endif
    return static_cast<double>(std::max<ssize_t>(got, 0));
  }

  int descriptor = -1;
  int64_t bytes = 0;
  bool direct = false;
  std::string refusal;
};

std::vector<Bank> OpenBanks(const std::string& container, int64_t record_bytes) {
  std::vector<Bank> banks;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(container, none)) {
    if (!entry.path().filename().string().starts_with("experts-L")) continue;
    banks.emplace_back(entry.path());
    if (banks.back().bytes < record_bytes) banks.pop_back();
  }
  return banks;
}

}  // namespace

DriveLimit MeasureDrive(const std::string& container, int64_t record_bytes, int32_t readers) {
  const std::vector<Bank> banks = OpenBanks(container, record_bytes);
  if (banks.empty() || record_bytes <= 0) return {};
  std::vector<Memory> records;
  std::vector<std::minstd_rand> random;
  for (int32_t reader = 0; reader < readers; ++reader) {
    records.push_back(AllocatePages(record_bytes));
    random.emplace_back(reader + 1);
  }
  DriveLimit limit;
  limit.direct = true;
  limit.bytes_s = Rate(readers, kRateSeconds, [&](int32_t reader) {
    auto& draw = random[static_cast<size_t>(reader)];
    const Bank& bank = banks[draw() % banks.size()];
    const int64_t record = static_cast<int64_t>(draw()) % (bank.bytes / record_bytes);
    return bank.Read(records[static_cast<size_t>(reader)].get(), record_bytes,
                     record * record_bytes);
  });
  for (const Bank& bank : banks) {
    if (bank.direct) continue;
    limit.direct = false;
    limit.refusal = bank.refusal;
  }
  return limit;
}

}  // namespace waste_cli
