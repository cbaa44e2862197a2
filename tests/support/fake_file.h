// SPDX-License-Identifier: Apache-2.0
//
// A File over bytes in memory on which things go wrong as a test orders: reads that fail, a medium
// that is pulled out, bytes that are gone or changed, reads that take time. The test keeps the
// faults and may change them while the file is in use, from any thread; a seed gives the same
// faults for the same order of reads.

#ifndef WASTE_TESTS_SUPPORT_FAKE_FILE_H_
#define WASTE_TESTS_SUPPORT_FAKE_FILE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "container/container.h"
#include "os/file.h"

namespace waste {

struct FileFaults {
  static constexpr int64_t kNever = INT64_MAX;

  std::atomic<int64_t> reads{0};             // begun so far; the first one is number 0
  std::atomic<int64_t> fail_read{kNever};    // this read fails with kIo
  std::atomic<int64_t> fail_from{kNever};    // so do this one and all later ones
  std::atomic<uint64_t> seed{0};             // picks which reads fail by chance
  std::atomic<int32_t> failures_of_1000{0};  // how many do
  std::atomic<int64_t> end{kNever};          // bytes from here on went after the file was opened
  std::atomic<int64_t> flipped_bit{kNever};  // bit 8 * offset + n reads as its opposite
  std::atomic<int64_t> delay_us{0};          // each read takes at least this long

  bool Fails(int64_t read) const {
    if (read == fail_read || read >= fail_from) return true;
    return Mix(seed + static_cast<uint64_t>(read)) % 1000 <
           static_cast<uint64_t>(failures_of_1000.load());
  }

 private:
  static uint64_t Mix(uint64_t x) {
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    return x ^ x >> 32;
  }
};

class FakeFile : public File {
 public:
  FakeFile(std::string path, std::vector<uint8_t> bytes, std::shared_ptr<FileFaults> faults,
           bool direct = false)
      : path_(std::move(path)),
        bytes_(std::move(bytes)),
        faults_(std::move(faults)),
        direct_(direct) {}

  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    const int64_t read = faults_->reads++;
    if (const int64_t delay = faults_->delay_us; delay > 0)
      std::this_thread::sleep_for(std::chrono::microseconds(delay));
    const int64_t wanted = static_cast<int64_t>(out.size());
    if (faults_->Fails(read))
      return Failure(Code::kIo, path_, ": cannot read ", wanted, " bytes at ", offset,
                     ": read number ", read, " fails");
    const int64_t end = std::min(size(), faults_->end.load());
    if (offset < 0 || offset > end || wanted > end - offset)
      return Failure(Code::kCorrupt, path_, ": ", wanted, " bytes at ", offset,
                     " are not all in its ", end, " bytes");
    if (wanted > 0) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    const int64_t flipped = faults_->flipped_bit;
    if (flipped / 8 >= offset && flipped / 8 < offset + wanted)
      out[flipped / 8 - offset] ^= static_cast<uint8_t>(1u << flipped % 8);
    return Status();
  }

  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  const std::string& path() const override { return path_; }
  bool direct() const override { return direct_; }

 private:
  std::string path_;
  std::vector<uint8_t> bytes_;
  std::shared_ptr<FileFaults> faults_;
  bool direct_;
};

// Opens files as OpenFile does, except those that were named: they are fakes.
class FakeOpener {
 public:
  // Files called `name`, in whatever folder, have the bytes of the real one, and these faults.
  std::shared_ptr<FileFaults> Fake(const std::string& name) {
    auto faults = std::make_shared<FileFaults>();
    fakes_[name] = {faults, std::nullopt};
    return faults;
  }
  // They have these bytes, and need not exist.
  std::shared_ptr<FileFaults> Fake(const std::string& name, std::vector<uint8_t> bytes) {
    auto faults = std::make_shared<FileFaults>();
    fakes_[name] = {faults, std::move(bytes)};
    return faults;
  }
  // They cannot be opened.
  void Lose(const std::string& name) { fakes_[name] = {nullptr, std::nullopt}; }

  // A copy of this opener as it is now; the faults are shared.
  FileOpener opener() const {
    return
        [fakes = fakes_](const std::string& path, IoMode mode) { return Open(fakes, path, mode); };
  }

 private:
  struct Entry {
    std::shared_ptr<FileFaults> faults;  // null: lost
    std::optional<std::vector<uint8_t>> bytes;
  };
  using Entries = std::map<std::string, Entry>;

  static Result<std::unique_ptr<File>> Open(const Entries& fakes, const std::string& path,
                                            IoMode mode) {
    const auto fake = fakes.find(path.substr(path.rfind('/') + 1));
    if (fake == fakes.end()) return OpenFile(path, mode);
    const Entry& entry = fake->second;
    if (entry.faults == nullptr) return Failure(Code::kIo, "cannot open ", path, ": it is lost");
    if (entry.bytes.has_value())
      return std::unique_ptr<File>(std::make_unique<FakeFile>(path, *entry.bytes, entry.faults));
    WASTE_ASSIGN(auto bytes, ReadWholeFile(path, INT64_MAX));
    return std::unique_ptr<File>(std::make_unique<FakeFile>(path, std::move(bytes), entry.faults));
  }

  Entries fakes_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_FAKE_FILE_H_
