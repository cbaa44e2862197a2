// SPDX-License-Identifier: Apache-2.0

#include "convert/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/utf8.h"
#include "container/json_text.h"
#include "convert/large_json.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/rank_file.h"
#include "tokenizer/tokenizer.h"

namespace waste {

const char* const kKimiPattern =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

namespace {

using Json = nlohmann::json;

Status Refuse(const std::string& path, const std::string& reason) {
  return Failure(Code::kUnsupported, path, ": ", reason,
                 "; a container holds byte-level BPE with the Kimi pattern only");
}

bool IsAbsent(const Json& object, const char* key) {
  const Json* value = LargeJsonMember(object, key);
  return value == nullptr || value->is_null() || *value == false || *value == "";
}

bool Is(const Json& object, const char* key, const char* text) {
  const Json* value = LargeJsonMember(object, key);
  return value != nullptr && *value == text;
}

// GPT-2's alphabet, in which byte-level vocabularies are written: printable bytes stand for
// themselves, the others, in their order, for the characters from U+0100 on.
constexpr std::array<char32_t, 256> ByteAlphabet() {
  std::array<char32_t, 256> alphabet = {};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    alphabet[byte] = printable ? byte : next++;
  }
  return alphabet;
}

// Text in that alphabet as bytes; nothing if a character is not in it.
std::optional<std::string> FromByteAlphabet(std::string_view text) {
  constexpr std::array<char32_t, 256> kAlphabet = ByteAlphabet();
  std::string bytes;
  while (!text.empty()) {
    const Utf8Step step = DecodeUtf8(text);
    const auto found = std::find(kAlphabet.begin(), kAlphabet.end(), step.code_point);
    if (!step.valid || found == kAlphabet.end()) return std::nullopt;
    bytes.push_back(static_cast<char>(found - kAlphabet.begin()));
    text.remove_prefix(static_cast<size_t>(step.size));
  }
  return bytes;
}

// Splitting by the Kimi pattern, then bytes to the alphabet, and nothing else.
Status CheckPreTokenizer(const Json& root, const std::string& path) {
  if (!IsAbsent(root, "normalizer")) return Refuse(path, "it has a normalizer");
  const Json* pre = LargeJsonMember(root, "pre_tokenizer");
  const Json* steps = pre == nullptr ? nullptr : LargeJsonMember(*pre, "pretokenizers");
  if (pre == nullptr || !Is(*pre, "type", "Sequence") || steps == nullptr || !steps->is_array() ||
      steps->size() != 2) {
    return Refuse(path, "its pre_tokenizer is no sequence of Split and ByteLevel");
  }
  const Json& split = (*steps)[0];
  const Json& bytes = (*steps)[1];
  const Json* pattern = LargeJsonMember(split, "pattern");
  if (!Is(split, "type", "Split") || !Is(split, "behavior", "Isolated") ||
      !IsAbsent(split, "invert") || pattern == nullptr || !Is(*pattern, "Regex", kKimiPattern)) {
    return Refuse(path, "its pre-tokenisation pattern is another one");
  }
  if (!Is(bytes, "type", "ByteLevel") || !IsAbsent(bytes, "add_prefix_space") ||
      LargeJsonMember(bytes, "use_regex") == nullptr || !IsAbsent(bytes, "use_regex")) {
    return Refuse(path, "its ByteLevel step does more than map bytes");
  }
  return Status();
}

Status CheckModel(const Json& model, const std::string& path) {
  if (!Is(model, "type", "BPE")) return Refuse(path, "its model is no BPE");
  for (const char* key :
       {"dropout", "byte_fallback", "continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!IsAbsent(model, key)) return Refuse(path, std::string("its model has ") + key);
  }
  return Status();
}

Result<std::vector<SpecialToken>> ParseAddedTokens(const Json& root, const std::string& path) {
  std::vector<SpecialToken> tokens;
  const Json* added = LargeJsonMember(root, "added_tokens");
  if (added == nullptr || added->is_null()) return tokens;
  if (!added->is_array()) return Failure(Code::kFormat, path, ": added_tokens is no list");
  for (const Json& token : *added) {
    const Json* id = LargeJsonMember(token, "id");
    const Json* content = LargeJsonMember(token, "content");
    const std::optional<int64_t> number = id == nullptr ? std::nullopt : LargeJsonSize(*id);
    if (!number || *number > INT32_MAX || content == nullptr || !content->is_string())
      return Failure(Code::kFormat, path, ": an added token has no id or no content");
    tokens.push_back({static_cast<int32_t>(*number), content->get<std::string>()});
  }
  return tokens;
}

// The vocabulary as bytes, by id; added tokens that stand in it too are left out.
Result<std::vector<std::string>> ParseVocabulary(const Json& model,
                                                 const std::vector<SpecialToken>& added,
                                                 const std::string& path) {
  const Json* vocabulary = LargeJsonMember(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object())
    return Failure(Code::kFormat, path, ": model.vocab is no object");
  std::set<std::string> added_texts;
  for (const SpecialToken& token : added) added_texts.insert(token.text);
  std::vector<std::string> tokens(vocabulary->size());
  size_t count = 0;
  for (const auto& [text, id] : vocabulary->items()) {
    if (added_texts.contains(text)) continue;
    const std::optional<int64_t> number = LargeJsonSize(id);
    if (!number) return Failure(Code::kFormat, path, ": ", Quote(text), " has no id");
    const std::optional<std::string> bytes = FromByteAlphabet(text);
    if (!bytes || bytes->empty())
      return Refuse(path, "its token " + Quote(text) + " is not written as bytes");
    if (*number >= static_cast<int64_t>(tokens.size()) ||
        !tokens[static_cast<size_t>(*number)].empty()) {
      return Refuse(path, "its ids are not 0, 1, 2, ... without a gap");
    }
    tokens[static_cast<size_t>(*number)] = *bytes;
    ++count;
  }
  tokens.resize(count);
  if (std::any_of(tokens.begin(), tokens.end(), [](const auto& t) { return t.empty(); }))
    return Refuse(path, "its ids are not 0, 1, 2, ... without a gap");
  return tokens;
}

// Encodes pieces as tokenizer.json means it: of all neighbours that the list of merges knows, the
// pair that stands first in it is merged, the leftmost at a tie.
class MergeList {
 public:
  static Result<MergeList> Parse(const Json& model, const std::vector<std::string>& tokens,
                                 const std::string& path) {
    MergeList list;
    for (size_t id = 0; id < tokens.size(); ++id)
      list.ids_.emplace(tokens[id], static_cast<int32_t>(id));
    const Json* whole = LargeJsonMember(model, "ignore_merges");
    list.whole_pieces_ = whole != nullptr && *whole == true;
    const Json* merges = LargeJsonMember(model, "merges");
    if (merges == nullptr || !merges->is_array())
      return Failure(Code::kFormat, path, ": model.merges is no list");
    for (const Json& merge : *merges) {
      if (!list.AddMerge(merge))
        return Failure(Code::kFormat, path, ": merge ", list.merges_.size(),
                       " is no pair of tokens");
    }
    return list;
  }

  void Encode(std::string_view piece, std::vector<int32_t>& out) const {
    const auto whole = ids_.find(std::string(piece));
    if (whole_pieces_ && whole != ids_.end()) {
      out.push_back(whole->second);
      return;
    }
    std::vector<int32_t> parts;
    for (const char byte : piece) parts.push_back(ids_.find(std::string(1, byte))->second);
    while (MergeFirst(parts)) {
    }
    out.insert(out.end(), parts.begin(), parts.end());
  }

 private:
  struct Merge {
    size_t place;
    int32_t result;
  };

  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }

  // "left right", or ["left", "right"].
  bool AddMerge(const Json& merge) {
    std::string left, right;
    if (merge.is_string()) {
      const std::string& pair = merge.get_ref<const std::string&>();
      const size_t space = pair.find(' ');
      if (space == std::string::npos) return false;
      left = pair.substr(0, space);
      right = pair.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      return false;
    }
    const std::optional<std::string> a = FromByteAlphabet(left), b = FromByteAlphabet(right);
    if (!a || !b) return false;
    const auto from = ids_.find(*a), with = ids_.find(*b), to = ids_.find(*a + *b);
    if (from == ids_.end() || with == ids_.end() || to == ids_.end()) return false;
    merges_.emplace(Key(from->second, with->second), Merge{merges_.size(), to->second});
    return true;
  }

  bool MergeFirst(std::vector<int32_t>& parts) const {
    const Merge* first = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto merge = merges_.find(Key(parts[i], parts[i + 1]));
      if (merge == merges_.end() || (first != nullptr && merge->second.place >= first->place))
        continue;
      first = &merge->second;
      at = i;
    }
    if (first == nullptr) return false;
    parts[at] = first->result;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    return true;
  }

  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<uint64_t, Merge> merges_;
  bool whole_pieces_ = false;
};

Status CompareText(const std::string& text, const MergeList& merges, const Tokenizer& ranks,
                   const std::string& path) {
  std::vector<int32_t> by_merges, by_ranks;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view piece = FirstPiece(rest);
    merges.Encode(piece, by_merges);
    rest.remove_prefix(piece.size());
  }
  ranks.Encode(text, by_ranks);
  if (by_merges == by_ranks) return Status();
  return Refuse(path, "its merges, turned into ranks, give other tokens for " + Quote(text));
}

// Every token of a sane length, after a space and before the token that follows it in the
// vocabulary: whatever a merge can do, it does here.
Status CompareVocabulary(const std::vector<std::string>& tokens, const MergeList& merges,
                         const Tokenizer& ranks, const std::string& path) {
  constexpr size_t kLongest = 512;  // bytes: merging one by one takes the square of it
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() > kLongest) continue;
    WASTE_TRY(CompareText(tokens[id], merges, ranks, path));
    const std::string& next = tokens[(id + 1) % tokens.size()];
    if (next.size() > kLongest) continue;
    WASTE_TRY(CompareText(" " + tokens[id] + next, merges, ranks, path));
  }
  return Status();
}

// All characters of the planes that have scripts, a few to a word.
Status CompareScripts(const MergeList& merges, const Tokenizer& ranks, const std::string& path) {
  constexpr char32_t kEnd = 0x32000;  // Han extension H ends before
  constexpr char32_t kWord = 5;       // characters
  for (char32_t first = 1; first < kEnd; first += kWord) {
    std::string word = " ";
    for (char32_t c = first; c < first + kWord; ++c) {
      if (c < 0xD800 || c > 0xDFFF) AppendUtf8(word, c);
    }
    WASTE_TRY(CompareText(word, merges, ranks, path));
  }
  return Status();
}

}  // namespace

Result<TokenizerJson> ParseTokenizerJson(std::string_view text, const std::string& path) {
  WASTE_ASSIGN(const Json root, ParseLargeJson(text, path));
  const Json* model = LargeJsonMember(root, "model");
  if (model == nullptr || !model->is_object())
    return Failure(Code::kFormat, path, ": has no model; is it a tokenizer.json?");
  WASTE_TRY(CheckModel(*model, path));
  WASTE_TRY(CheckPreTokenizer(root, path));

  TokenizerJson result;
  WASTE_ASSIGN(result.specials, ParseAddedTokens(root, path));
  WASTE_ASSIGN(const std::vector<std::string> tokens,
               ParseVocabulary(*model, result.specials, path));
  const std::string rank_file = PrintRankFile(tokens);
  result.rank_file.assign(rank_file.begin(), rank_file.end());

  // The rank file's own parser sees to it that every single byte is a token.
  Result<std::unique_ptr<Tokenizer>> ranks = Tokenizer::Create(result.rank_file, {}, path);
  if (!ranks.ok()) return Refuse(path, "as a rank file it is unsound: " + ranks.status().message());
  WASTE_ASSIGN(const MergeList merges, MergeList::Parse(*model, tokens, path));
  WASTE_TRY(CompareVocabulary(tokens, merges, **ranks, path));
  WASTE_TRY(CompareScripts(merges, **ranks, path));
  return result;
}

}  // namespace waste
