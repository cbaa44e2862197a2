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
#include "os/whole_read.h"

namespace waste {

struct FileFaults {
  static constexpr int64_t kNever = INT64_MAX;

  std::atomic<int64_t> reads{0};             // begun so far; the first one is number 0
  std::atomic<int64_t> fail_read{kNever};    // this read fails with kIo
  std::atomic<int64_t> fail_count{1};        // and so many in all, from that one on
  std::atomic<int64_t> fail_from{kNever};    // so do this one and all later ones
  std::atomic<uint64_t> seed{0};             // picks which reads fail by chance
  std::atomic<int32_t> failures_of_1000{0};  // how many do
  std::atomic<int64_t> end{kNever};          // bytes from here on went after the file was opened
  std::atomic<int64_t> flipped_bit{kNever};  // bit 8 * offset + n reads as its opposite
  std::atomic<int64_t> delay_us{0};          // each read takes at least this long
  std::atomic<int64_t> forgotten{0};         // bytes that the page cache was told to drop
  std::atomic<int64_t> delay_more_us{0};     // and, by chance, up to this much longer

  // Bit 8 * n + m of what a read gives, counted round, is its opposite, in this read and in later
  // ones.
  std::atomic<int64_t> read_bit{0};
  std::atomic<int64_t> flip_read{kNever};
  std::atomic<int64_t> flip_from{kNever};

  // System calls give at most this much, and as often as not only say that a signal came.
  std::atomic<int64_t> most_bytes{kNever};
  std::atomic<bool> interrupted{false};

  bool Fails(int64_t read) const {
    if (read >= fail_from || (read >= fail_read && read - fail_read < fail_count)) return true;
    return Mix(seed + static_cast<uint64_t>(read)) % 1000 <
           static_cast<uint64_t>(failures_of_1000.load());
  }
  bool Flips(int64_t read) const { return read == flip_read || read >= flip_from; }
  std::chrono::microseconds Delay(int64_t read) const {
    const int64_t more = delay_more_us;
    if (more == 0) return std::chrono::microseconds(delay_us);
    const uint64_t chance = Mix(seed + static_cast<uint64_t>(read)) >> 1;
    return std::chrono::microseconds(delay_us + static_cast<int64_t>(chance) % more);
  }
  // All is well from now on.
  void Heal() {
    for (auto* never :
         {&fail_read, &fail_from, &end, &flipped_bit, &flip_read, &flip_from, &most_bytes})
      *never = kNever;
    for (auto* none : {&delay_us, &delay_more_us}) *none = 0;
    fail_count = 1;
    failures_of_1000 = 0;
    interrupted = false;
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
    if (const auto delay = faults_->Delay(read); delay.count() > 0)
      std::this_thread::sleep_for(delay);
    const int64_t wanted = static_cast<int64_t>(out.size());
    if (faults_->Fails(read))
      return Failure(Code::kIo, path_, ": cannot read ", wanted, " bytes at ", offset,
                     ": read number ", read, " fails");
    int64_t calls = read;
    WASTE_TRY(
        ReadWhole(path_, size(), direct_, offset, out, [&](int64_t at, std::span<uint8_t> part) {
          return faults_->interrupted && ++calls % 2 == 0 ? kReadInterrupted : CopySome(at, part);
        }));
    if (faults_->Flips(read)) Flip(faults_->read_bit, out);
    const int64_t flipped = faults_->flipped_bit;
    if (flipped / 8 >= offset && flipped / 8 < offset + wanted) Flip(flipped - 8 * offset, out);
    return Status();
  }

  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  const std::string& path() const override { return path_; }
  bool direct() const override { return direct_; }
  void Forget(int64_t /*offset*/, int64_t size) const override { faults_->forgotten += size; }

 private:
  static void Flip(int64_t bit, std::span<uint8_t> out) {
    out[static_cast<size_t>(bit / 8) % out.size()] ^= static_cast<uint8_t>(1u << bit % 8);
  }

  // What one system call gives.
  int64_t CopySome(int64_t offset, std::span<uint8_t> out) const {
    const int64_t end = std::min(size(), faults_->end.load());
    const int64_t left = std::max(end - offset, int64_t{0});
    const int64_t count = std::min({static_cast<int64_t>(out.size()), left, +faults_->most_bytes});
    std::copy_n(bytes_.begin() + offset, count, out.begin());
    return count;
  }

  std::string path_;
  std::vector<uint8_t> bytes_;
  std::shared_ptr<FileFaults> faults_;
  bool direct_;
};

// Opens files as OpenFile does, except those that were named: they are fakes.
class FakeOpener {
 public:
  // Files called `name`, in whatever folder, have the bytes of the real one, and these faults. A
  // name that is a path is that file alone.
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
    auto fake = fakes.find(path);
    if (fake == fakes.end()) fake = fakes.find(path.substr(path.rfind('/') + 1));
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
