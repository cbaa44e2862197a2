// SPDX-License-Identifier: Apache-2.0
//
// Matrices are read in pieces by several threads: all of them arrive, and failures and cancels end
// it soon. What tensors a model needs is weights_test's.

#include "model/trunk_loader.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "parallel/thread_pool.h"
#include "support/fake_file.h"
#include "support/tiny_container.h"

namespace waste {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;

// Three matrices, the second of four pieces and a bit; they are asked for in another order.
TinyOptions Trunk() {
  TinyOptions options;
  options.layers = 0;
  options.trunk = {{"a", TrunkFormat::kQ8G, {30, 64}},
                   {"b", TrunkFormat::kF16, {2100, 4096}},
                   {"c", TrunkFormat::kF32, {7, 40}}};
  return options;
}

struct Load {
  explicit Load(IoMode mode = IoMode::kAuto) : faults(opener.Fake("trunk.bin")) {
    container = tiny().Open(mode, opener.opener());
    TrunkLoader counter(*container);
    AskFor(counter);
    memory.emplace(Require(AlignedBuffer::Allocate(counter.held_bytes())));
    total = counter.file_bytes();
  }

  // Written once: it is the longest part of these tests.
  static const TinyContainer& tiny() {
    static const TinyContainer container(Trunk());
    return container;
  }

  void AskFor(TrunkLoader& loader) {
    c = loader.Matrix("c", 7, 40);
    b = loader.Matrix("b", 2100, 4096);
    a = loader.Matrix("a", 30, 64);
  }
  Status Run(int32_t threads) {
    std::unique_ptr<ThreadPool> pool;
    if (threads > 0) pool = Require(ThreadPool::Create(threads));
    TrunkLoader loader(*container, memory->data(), 0, progress);
    AskFor(loader);
    loader.ReadMatrices(pool.get());
    return loader.status();
  }
  bool Holds(const std::string& name, const TrunkMatrix& matrix) const {
    const TrunkEntry& entry = *container->manifest().FindTrunk(name);
    std::vector<uint8_t> bytes(static_cast<size_t>(entry.bytes));
    Require(container->ReadTrunk(entry, bytes));
    return std::equal(bytes.begin(), bytes.end(), matrix.payload);
  }

  FakeOpener opener;
  std::shared_ptr<FileFaults> faults;
  std::unique_ptr<Container> container;
  std::optional<AlignedBuffer> memory;
  Progress progress;
  int64_t total = 0;
  TrunkMatrix a, b, c;
};

// A real file; the moment of a cancel is within its second read.
class CancelledFile : public File {
 public:
  CancelledFile(std::unique_ptr<File> file, Progress& progress)
      : file_(std::move(file)), progress_(progress) {}

  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    if (++reads_ == 2) progress_.Cancel();
    return file_->ReadAt(offset, out);
  }
  int64_t size() const override { return file_->size(); }
  const std::string& path() const override { return file_->path(); }

 private:
  const std::unique_ptr<File> file_;
  Progress& progress_;
  mutable std::atomic<int32_t> reads_{0};
};

BOOST_AUTO_TEST_SUITE(trunk_loader)

BOOST_AUTO_TEST_CASE(every_matrix_arrives_whole_whoever_reads_it) {
  for (const int32_t threads : {0, 1, 3}) {
    Load load;
    BOOST_TEST_CONTEXT(threads << " threads") {
      Require(load.Run(threads));
      BOOST_TEST(load.faults->reads == 7);
      BOOST_TEST(load.progress.done() == load.total);
      BOOST_TEST(load.Holds("a", load.a));
      BOOST_TEST(load.Holds("b", load.b));
      BOOST_TEST(load.Holds("c", load.c));
      const TrunkEntry& entry = *load.container->manifest().FindTrunk("a");
      BOOST_TEST(load.a.scales - load.a.payload == entry.scale_offset - entry.offset);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_page_cache_drops_what_was_read_unless_it_was_asked_for) {
  for (const IoMode mode : {IoMode::kAuto, IoMode::kDirect, IoMode::kBuffered}) {
    Load load(mode);
    Require(load.Run(2));
    BOOST_TEST(load.faults->forgotten == (mode == IoMode::kBuffered ? 0 : load.total));
  }
}

BOOST_AUTO_TEST_CASE(a_failed_read_ends_the_load_and_is_told) {
  for (const int32_t threads : {0, 3}) {
    Load load;
    load.faults->fail_from = 2;
    const Status status = load.Run(threads);
    BOOST_CHECK(status.code() == Code::kIo);
    BOOST_TEST(status.message().find("trunk.bin") != std::string::npos);
    BOOST_TEST(load.faults->reads <= 2 + 2 * std::max(threads, 1));  // each is tried twice
    BOOST_TEST(load.progress.done() < load.total);
  }
}

BOOST_AUTO_TEST_CASE(a_cancel_waits_for_the_pieces_under_way_only) {
  for (const int32_t threads : {0, 1, 3}) {
    Load load;
    const auto open = [&](const std::string& path, IoMode mode) -> Result<std::unique_ptr<File>> {
      WASTE_ASSIGN(auto file, OpenFile(path, mode));
      return std::unique_ptr<File>(std::make_unique<CancelledFile>(std::move(file), load.progress));
    };
    load.container = Load::tiny().Open(IoMode::kAuto, open);
    BOOST_CHECK(load.Run(threads).code() == Code::kCancelled);
    BOOST_TEST(load.progress.done() > 0);
    BOOST_TEST(load.progress.done() <= load.total - kPiece);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
