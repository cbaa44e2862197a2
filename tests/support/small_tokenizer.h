// SPDX-License-Identifier: Apache-2.0
//
// Tokenizers for tests: all single bytes, rank = byte, and a few longer tokens above them, so that
// expected ids can be written down by hand. For test programs only; one thread.

#ifndef WASTE_TESTS_SUPPORT_SMALL_TOKENIZER_H_
#define WASTE_TESTS_SUPPORT_SMALL_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace waste {

inline std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    for (size_t i = at; i < at + 3; ++i)
      bits = bits << 8 | (i < bytes.size() ? static_cast<uint8_t>(bytes[i]) : 0);
    for (int shift = 18; shift >= 0; shift -= 6) text.push_back(kDigits[bits >> shift & 63]);
    if (at + 2 >= bytes.size()) text.back() = '=';
    if (at + 1 >= bytes.size()) text[text.size() - 2] = '=';
  }
  return text;
}

inline std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A rank file of the 256 bytes and then `merged`, from rank 256 on.
inline std::string RankFile(const std::vector<std::string>& merged) {
  std::string file;
  int rank = 0;
  for (int byte = 0; byte < 256; ++byte)
    file += Base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(rank++) + "\n";
  for (const std::string& token : merged)
    file += Base64(token) + " " + std::to_string(rank++) + "\n";
  return file;
}

inline std::unique_ptr<Tokenizer> SmallTokenizer(
    const std::vector<std::string>& merged,
    const std::vector<std::pair<int32_t, std::string>>& specials = {}) {
  const std::string file = RankFile(merged);
  auto tokenizer = Tokenizer::Create(BytesOf(file), specials, "small.tiktoken");
  if (!tokenizer.ok()) throw std::runtime_error(tokenizer.status().message());
  return *std::move(tokenizer);
}

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_SMALL_TOKENIZER_H_
