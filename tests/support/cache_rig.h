// SPDX-License-Identifier: Apache-2.0
//
// A cache over three small banks whose files are fakes: what tests of the cache share. Throws when
// something is not as it must be.

#ifndef WASTE_TESTS_SUPPORT_CACHE_RIG_H_
#define WASTE_TESTS_SUPPORT_CACHE_RIG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "stream/expert_cache.h"
#include "support/fake_file.h"
#include "support/tiny_container.h"

namespace waste {

using Experts = std::vector<int32_t>;
using Contents = std::vector<std::vector<uint8_t>>;

inline const std::function<bool()> kNoStop = [] { return false; };

// Layers 1 to 3 with 8 experts each; the banks are fakes whose faults a test sets.
struct CacheRig {
  CacheRig() {
    for (int32_t layer = 1; layer <= 3; ++layer)
      faults.push_back(opener.Fake("experts-L" + std::to_string(layer) + ".bin"));
    container = tiny.Open(IoMode::kAuto, opener.opener());
  }

  // One lane reads in the order asked for; tests that count reads need that.
  std::unique_ptr<ExpertCache> Cache(int64_t slots, int64_t max_experts, bool verify = false,
                                     int32_t lanes = 1) const {
    return Require(ExpertCache::Create(
        *container,
        {.slot_count = slots, .max_experts = max_experts, .lanes = lanes, .verify = verify}));
  }
  // One that reads `ahead` guesses ahead.
  std::unique_ptr<ExpertCache> CacheAhead(int64_t slots, int64_t max_experts, int64_t ahead,
                                          int32_t lanes = 1) const {
    return Require(ExpertCache::Create(
        *container,
        {.slot_count = slots, .max_experts = max_experts, .max_expected = ahead, .lanes = lanes}));
  }

  // The indices and scales of an expert, read without a cache.
  std::vector<uint8_t> Direct(int32_t layer, int32_t expert) const {
    auto bytes = Require(AlignedBuffer::Allocate(container->record_bytes()));
    Require(container->ReadRecord(layer, expert, bytes.bytes(), true));
    return Content(Require(container->ParseRecord(layer, expert, bytes.bytes())));
  }

  static std::vector<uint8_t> Content(const ExpertRecord& record) {
    std::vector<uint8_t> content;
    for (const ExpertMatrix* m : {&record.gate, &record.up, &record.down}) {
      const int64_t size = ExpertIndexBytes(m->codec, m->rows, m->columns);
      content.insert(content.end(), m->indices, m->indices + size);
      content.insert(content.end(), m->scales, m->scales + 2 * m->rows);
    }
    return content;
  }

  TinyContainer tiny{{.layers = 3, .experts = 8}};
  FakeOpener opener;
  std::vector<std::shared_ptr<FileFaults>> faults;  // of layers 1, 2, 3
  std::unique_ptr<Container> container;
};

// Fetches experts; `contents` are theirs in the order asked for, empty where none came.
inline Status Fetch(ExpertCache& cache, int32_t layer, const Experts& experts, Contents& contents,
                    const std::function<bool()>& stop = kNoStop) {
  contents.assign(experts.size(), {});
  return cache.Fetch(layer, experts, stop, [&](std::span<const ArrivedExpert> arrived) {
    for (const ArrivedExpert& one : arrived) {
      if (!contents[one.index].empty()) throw std::logic_error("an expert came twice");
      contents[one.index] = CacheRig::Content(one.record);
    }
  });
}

inline Contents MustFetch(ExpertCache& cache, int32_t layer, const Experts& experts) {
  Contents contents;
  const Status status = Fetch(cache, layer, experts, contents);
  Require(status);
  for (const auto& content : contents)
    if (content.empty()) throw std::logic_error("an expert did not come");
  return contents;
}

// Asks for experts and lets them go; returns how many were in a slot.
inline int64_t Hits(ExpertCache& cache, int32_t layer, const Experts& experts) {
  const int64_t before = cache.counters().hits;
  MustFetch(cache, layer, experts);
  return cache.counters().hits - before;
}

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_CACHE_RIG_H_
