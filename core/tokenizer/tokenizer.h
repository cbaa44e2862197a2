// SPDX-License-Identifier: Apache-2.0
//
// Text to token ids and back, exactly as tiktoken does it with the Kimi pattern (docs/format.md,
// "Tokenizer"): pre-tokenisation with Unicode 16 classes, then byte-pair merges by rank. Special
// tokens mean themselves only in EncodeMarkup; everywhere else they are text. The released Python
// tokenizer cuts a text at 400,000 characters, and inside a run of 25,000 characters that are all
// white space or all not, to spare tiktoken's regex; here, as in tiktoken itself, nothing is cut,
// so ids may differ from it around such a cut and nowhere else. Immutable; any thread.

#ifndef WASTE_CORE_TOKENIZER_TOKENIZER_H_
#define WASTE_CORE_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace waste {

class Tokenizer {
 public:
  // `rank_file` is a tiktoken rank file (lines "base64 rank"); `specials` are ids and texts above
  // the ranks. `name` is the file's name for messages. Errors: kFormat (a line that is no rank, a
  // rank twice, a single byte missing), kCorrupt (a special token's id or text twice, or inside the
  // ranks).
  static Result<std::unique_ptr<Tokenizer>> Create(
      std::span<const uint8_t> rank_file,
      const std::vector<std::pair<int32_t, std::string>>& specials, const std::string& name);
  ~Tokenizer();

  // Appends the tokens of plain text, which should be valid UTF-8 (callers check first). A byte
  // that is no character is a piece of its own and becomes its single-byte token.
  void Encode(std::string_view text, std::vector<int32_t>& out) const;
  // The same, special tokens recognised at any position, the longest first.
  void EncodeMarkup(std::string_view text, std::vector<int32_t>& out) const;

  // The bytes of a token (a special one: its text); empty for an id that does not exist.
  std::string_view Bytes(int32_t token) const;
  bool IsSpecial(int32_t token) const;
  // The id of a special token, or -1.
  int32_t FindSpecial(std::string_view text) const;
  int32_t rank_count() const;
  int32_t max_id() const;  // the highest id of ranks and specials

 private:
  struct Tables;
  explicit Tokenizer(std::unique_ptr<Tables> tables);
  std::unique_ptr<Tables> tables_;
};

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_TOKENIZER_H_
