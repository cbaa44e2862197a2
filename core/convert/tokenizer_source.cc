// SPDX-License-Identifier: Apache-2.0

#include "convert/tokenizer_source.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "container/json_text.h"
#include "convert/large_json.h"
#include "convert/tokenizer_json.h"
#include "os/file.h"

namespace waste {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 28;
constexpr const char* kRankFiles[] = {"tiktoken.model", "tokenizer.model"};
constexpr char kTokenizerJson[] = "tokenizer.json";
constexpr char kTokenizerConfig[] = "tokenizer_config.json";

std::optional<int32_t> ParseId(const std::string& text) {
  int32_t id = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  return id;
}

// added_tokens_decoder: an object of "id": {"content": text}.
Result<std::vector<SpecialToken>> ReadAddedTokens(const std::string& path) {
  std::vector<SpecialToken> specials;
  if (!FileExists(path)) return specials;
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxFileBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  WASTE_ASSIGN(const nlohmann::json config, ParseLargeJson(text, path));
  const nlohmann::json* tokens = LargeJsonMember(config, "added_tokens_decoder");
  if (tokens == nullptr) return specials;
  if (!tokens->is_object())
    return Failure(Code::kFormat, path, ": added_tokens_decoder is no object");
  for (const auto& [key, token] : tokens->items()) {
    const std::optional<int32_t> id = ParseId(key);
    const nlohmann::json* content = LargeJsonMember(token, "content");
    if (!id || content == nullptr || !content->is_string())
      return Failure(Code::kFormat, path, ": added token ", Quote(key), " has no id and content");
    specials.push_back({*id, content->get<std::string>()});
  }
  return specials;
}

Result<TokenizerSource> ReadFiles(const std::string& folder) {
  TokenizerSource source;
  const std::string config_path = JoinPath(folder, kTokenizerConfig);
  for (const char* name : kRankFiles) {
    source.path = JoinPath(folder, name);
    if (!FileExists(source.path)) continue;
    WASTE_ASSIGN(source.rank_file, ReadWholeFile(source.path, kMaxFileBytes));
    WASTE_ASSIGN(source.specials, ReadAddedTokens(config_path));
    return source;
  }
  source.path = JoinPath(folder, kTokenizerJson);
  if (!FileExists(source.path)) {
    return Failure(Code::kIo, folder,
                   ": has no tokenizer (tiktoken.model, tokenizer.model or tokenizer.json)");
  }
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(source.path, kMaxFileBytes));
  WASTE_ASSIGN(
      TokenizerJson json,
      ParseTokenizerJson({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, source.path));
  source.rank_file = std::move(json.rank_file);
  source.specials = std::move(json.specials);
  if (source.specials.empty()) {
    WASTE_ASSIGN(source.specials, ReadAddedTokens(config_path));
  }
  return source;
}

}  // namespace

Result<TokenizerSource> ReadTokenizerSource(const std::string& folder) {
  WASTE_ASSIGN(TokenizerSource source, ReadFiles(folder));
  std::sort(source.specials.begin(), source.specials.end(),
            [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  WASTE_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(source));
  return source;
}

Result<std::unique_ptr<Tokenizer>> MakeTokenizer(const TokenizerSource& source) {
  std::vector<std::pair<int32_t, std::string>> specials;
  for (const SpecialToken& special : source.specials)
    specials.emplace_back(special.id, special.text);
  return Tokenizer::Create(source.rank_file, specials, source.path);
}

}  // namespace waste
