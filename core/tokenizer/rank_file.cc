// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/rank_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

namespace waste {
namespace {

// A token's place in RankedTokens::bytes needs to fit int32_t; real files are a few megabytes.
constexpr size_t kMaxFileSize = std::numeric_limits<int32_t>::max();

constexpr uint8_t kNotBase64 = 0xFF;

constexpr std::array<uint8_t, 256> MakeDigitTable() {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<uint8_t, 256> table{};
  table.fill(kNotBase64);
  for (size_t i = 0; i < kDigits.size(); ++i)
    table[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  return table;
}

constexpr std::array<uint8_t, 256> kDigitOf = MakeDigitTable();

// Appends the bytes of `text`. False if it is empty or not canonical: whole groups of four, padding
// only in the last one, the bits that padding leaves over zero.
bool DecodeBase64(std::string_view text, std::string& out) {
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const size_t digit_count = text.size() - padding;
  uint32_t bits = 0;
  int bit_count = 0;
  for (size_t i = 0; i < digit_count; ++i) {
    const uint8_t digit = kDigitOf[static_cast<uint8_t>(text[i])];
    if (digit == kNotBase64) return false;
    bits = bits << 6 | digit;
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    out.push_back(static_cast<char>(bits >> bit_count & 0xFF));
    bits &= (1u << bit_count) - 1;
  }
  return bits == 0;
}

std::optional<int32_t> ParseRank(std::string_view text) {
  int32_t rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 0) return std::nullopt;
  return rank;
}

// The text's lines without their ends.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool Next(std::string_view& line) {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number_;
    return true;
  }
  int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  int64_t number_ = 0;
};

// As many as there are lines that are not blank: the ranks must be the numbers below that.
size_t CountTokens(std::string_view text) {
  size_t count = 0;
  std::string_view line;
  for (Lines lines(text); lines.Next(line);) count += line.empty() ? 0 : 1;
  return count;
}

Status CheckSingleBytes(const RankedTokens& tokens, const std::string& name) {
  std::array<bool, 256> present{};
  for (const RankedTokens::Place& place : tokens.places)
    if (place.size == 1)
      present[static_cast<uint8_t>(tokens.bytes[static_cast<size_t>(place.start)])] = true;
  for (int byte = 0; byte < 256; ++byte)
    if (!present[static_cast<size_t>(byte)])
      return Failure(Code::kFormat, name, ": no token for the single byte ", byte,
                     "; some text would have no tokens");
  return Status();
}

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t size = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < size ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= size ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

}  // namespace

Result<RankedTokens> ParseRankFile(std::span<const uint8_t> file, const std::string& name) {
  if (file.size() > kMaxFileSize)
    return Failure(Code::kFormat, name, ": ", file.size(), " bytes are too many for a rank file");
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  RankedTokens tokens;
  tokens.places.resize(CountTokens(text));
  tokens.bytes.reserve(text.size() / 2);

  Lines lines(text);
  for (std::string_view line; lines.Next(line);) {
    if (line.empty()) continue;
    const auto fail = [&](const auto&... what) {
      return Failure(Code::kFormat, name, ", line ", lines.number(), ": ", what...);
    };
    const size_t space = line.find(' ');
    if (space == std::string_view::npos)
      return fail("no rank; a line is a token in base64, a space, its rank");
    const size_t start = tokens.bytes.size();
    if (!DecodeBase64(line.substr(0, space), tokens.bytes)) return fail("the token is no base64");
    const std::optional<int32_t> rank = ParseRank(line.substr(space + 1));
    if (!rank) return fail("the rank is no number of 32 bits");
    if (static_cast<size_t>(*rank) >= tokens.places.size())
      return fail("rank ", *rank, " in a file of ", tokens.places.size(),
                  " tokens; the ranks must be 0, 1, 2 and so on without a gap");
    RankedTokens::Place& place = tokens.places[static_cast<size_t>(*rank)];
    if (place.start >= 0) return fail("rank ", *rank, " for the second time");
    place = {static_cast<int32_t>(start), static_cast<int32_t>(tokens.bytes.size() - start)};
  }
  WASTE_TRY(CheckSingleBytes(tokens, name));
  return tokens;
}

std::string PrintRankFile(const std::vector<std::string>& tokens) {
  std::string file;
  for (size_t rank = 0; rank < tokens.size(); ++rank)
    file.append(Base64(tokens[rank])).append(" ").append(std::to_string(rank)).append("\n");
  return file;
}

}  // namespace waste
