// SPDX-License-Identifier: Apache-2.0
//
// Any bytes are encoded; the tokens' bytes joined are those bytes again, as text and as markup, and
// the detokenizer makes valid UTF-8 of them.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "support/small_tokenizer.h"
#include "tokenizer/detokenizer.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckTokens(const waste::Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                 std::string_view text) {
  std::string joined, shown;
  waste::Detokenizer detokenizer;
  for (const int32_t id : ids) {
    Require(!tokenizer.Bytes(id).empty());
    joined += tokenizer.Bytes(id);
    detokenizer.Add(tokenizer.Bytes(id), shown);
  }
  detokenizer.Finish(shown);
  Require(joined == text);
  Require(waste::FindInvalidUtf8(shown) == -1);
  Require(waste::FindInvalidUtf8(text) >= 0 || shown == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto tokenizer = waste::SmallTokenizer(
      {"ab", "abab", "  ", "    ", "th", "the", " the", "\xE4\xB8", "\xE4\xB8\xAD", "\xF0\x9F"},
      {{300, "<|a|>"}, {301, "<|"}, {302, "<|a|>>"}, {305, "["}});
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<int32_t> ids;
  tokenizer->Encode(text, ids);
  CheckTokens(*tokenizer, ids, text);
  for (const int32_t id : ids) Require(!tokenizer->IsSpecial(id));
  ids.clear();
  tokenizer->EncodeMarkup(text, ids);
  CheckTokens(*tokenizer, ids, text);
  return 0;
}
