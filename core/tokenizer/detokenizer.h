// SPDX-License-Identifier: Apache-2.0
//
// Bytes of tokens, arriving one token at a time, to whole UTF-8 characters: an incomplete character
// is held back until it is complete, and what can never become one turns into one U+FFFD for each
// maximal bad sequence. Nothing is lost: Finish gives what was still held. One thread.

#ifndef WASTE_CORE_TOKENIZER_DETOKENIZER_H_
#define WASTE_CORE_TOKENIZER_DETOKENIZER_H_

#include <string>
#include <string_view>

namespace waste {

class Detokenizer {
 public:
  // Appends to `out` every character that `bytes` completes.
  void Add(std::string_view bytes, std::string& out);
  // The end: held bytes that are no character become U+FFFD.
  void Finish(std::string& out);
  bool holding() const { return !held_.empty(); }

 private:
  std::string held_;  // the start of a character, at most 3 bytes
};

}  // namespace waste

#endif  // WASTE_CORE_TOKENIZER_DETOKENIZER_H_
