// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/pretokenizer.h"

#include <cstddef>
#include <cstdint>

#include "base/utf8.h"
#include "tokenizer/unicode_class.h"

namespace waste {
namespace {

// One character: its UnicodeClass bits and its bytes. No class at the end of the text (size 0) and
// for a byte that is no character (size 1), so that every run stops there.
struct Character {
  uint32_t classes;
  size_t size;
};

// Where an optional part of the pattern ended; kNone: it does not match.
constexpr size_t kNone = 0;

// Every function takes an offset and returns the offset where what it looks for ends.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t PieceEnd() const {
    const Character first = At(0);
    if (first.size == 0) return 0;
    if (first.classes == 0) return first.size;
    if (first.classes & kHan) return RunEnd(0, kHan);
    if (const size_t end = WordEnd(first); end != kNone) return end;
    if (first.classes & kNumber) return NumberEnd();
    if (const size_t end = SymbolsEnd(first); end != kNone) return end;
    return SpaceEnd();
  }

 private:
  // The two ends that a word may have, by the alternative of the pattern.
  struct Word {
    size_t mixed = kNone;  // U*L+
    size_t upper = kNone;  // U+L*, looked at only where `mixed` is none: then L* is empty
  };

  Character At(size_t at) const {
    if (at >= text_.size()) return {0, 0};
    const uint8_t byte = static_cast<uint8_t>(text_[at]);
    if (byte < 0x80) return {ClassesOf(byte), 1};
    const Utf8Step step = DecodeUtf8(text_.substr(at));
    if (!step.valid) return {0, 1};
    return {ClassesOf(step.code_point), static_cast<size_t>(step.size)};
  }

  size_t RunEnd(size_t at, uint32_t classes) const {
    for (Character next = At(at); next.classes & classes; next = At(at)) at += next.size;
    return at;
  }

  // The second and third alternative. A mark can be the character before the word as well as its
  // first letter, which is why each is tried with and without one, in the pattern's order.
  size_t WordEnd(Character first) const {
    const Word after = first.classes & kLead ? ScanWord(first.size) : Word{};
    if (after.mixed != kNone) return ContractionEnd(after.mixed);
    const Word here = first.classes & (kUpper | kLower) ? ScanWord(0) : Word{};
    if (here.mixed != kNone) return ContractionEnd(here.mixed);
    if (after.upper != kNone) return ContractionEnd(after.upper);
    if (here.upper != kNone) return ContractionEnd(here.upper);
    return kNone;
  }

  // U* takes all it can. If L+ can go on from there, the word is that and all of L+. If not, U*
  // gives back characters until one is found that L+ can take too: the last one in both classes,
  // which ends the word, since its follower is not in L.
  Word ScanWord(size_t at) const {
    Word word;
    const size_t start = at;
    Character next = At(at);
    for (; next.classes & kUpper; next = At(at)) {
      at += next.size;
      if (next.classes & kLower) word.mixed = at;
    }
    if (next.classes & kLower) word.mixed = RunEnd(at, kLower);
    if (at > start) word.upper = at;
    return word;
  }

  // (?i:'s|'t|'re|'ve|'m|'ll|'d)?  Without regard to case, s is also U+017F, the long s.
  size_t ContractionEnd(size_t at) const {
    const std::string_view rest = text_.substr(at, 3);
    if (rest.size() < 2 || rest[0] != '\'') return at;
    const char first = Lowered(rest[1]);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if (rest.size() < 3) return at;
    if (rest.substr(1) == "\xC5\xBF") return at + 3;
    const char second = Lowered(rest[2]);
    const bool matches =
        (second == 'e' && (first == 'r' || first == 'v')) || (second == 'l' && first == 'l');
    return matches ? at + 3 : at;
  }

  static char Lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

  size_t NumberEnd() const {
    size_t at = 0;
    for (int digits = 0; digits < 3; ++digits) {
      const Character next = At(at);
      if (!(next.classes & kNumber)) break;
      at += next.size;
    }
    return at;
  }

  size_t SymbolsEnd(Character first) const {
    const size_t start = text_[0] == ' ' ? first.size : 0;
    const size_t end = RunEnd(start, kSymbol);
    return end > start ? RunEnd(end, kNewline) : kNone;
  }

  // The last three alternatives: up to the run's last newline if it has one; else all of it at the
  // end of the text; else all but its last character, which goes with what follows, unless that
  // is the only one.
  size_t SpaceEnd() const {
    size_t at = 0;
    size_t last = 0;
    size_t newline_end = kNone;
    for (Character next = At(0); next.classes & kSpace; next = At(at)) {
      last = at;
      at += next.size;
      if (next.classes & kNewline) newline_end = at;
    }
    if (newline_end != kNone) return newline_end;
    return at == text_.size() || last == 0 ? at : last;
  }

  std::string_view text_;
};

}  // namespace

std::string_view FirstPiece(std::string_view text) {
  return text.substr(0, Scanner(text).PieceEnd());
}

}  // namespace waste
