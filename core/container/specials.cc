// SPDX-License-Identifier: Apache-2.0

#include "container/specials.h"

#include <algorithm>
#include <unordered_set>

#include "container/json_text.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

void SortById(std::vector<SpecialToken>& specials) {
  std::stable_sort(specials.begin(), specials.end(),
                   [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
}

Result<SpecialToken> ParseSpecial(const Json& entry, const std::string& path) {
  const Json* const id = JsonMember(entry, "id");
  const Json* const text = JsonMember(entry, "text");
  if (id == nullptr || text == nullptr || !text->is_string() || !id->is_number_integer())
    return Failure(Code::kFormat, path, ": ", Quote(entry.dump()),
                   " is no special token; each is {\"id\": a number, \"text\": a string}");
  const int64_t number = JsonInteger(*id).value_or(-1);
  if (number < 0 || number > INT32_MAX)
    return Failure(Code::kCorrupt, path, ": special token id ", id->dump(),
                   " is not between 0 and ", INT32_MAX);
  SpecialToken token{static_cast<int32_t>(number), text->get<std::string>()};
  if (token.text.empty())
    return Failure(Code::kCorrupt, path, ": special token ", token.id, " has no text");
  return token;
}

}  // namespace

Result<std::vector<SpecialToken>> ParseSpecials(std::string_view text, const std::string& path) {
  WASTE_ASSIGN(const Json list, ParseJsonText(text, path));
  if (!list.is_array()) return Failure(Code::kFormat, path, ": not a list of special tokens");
  std::vector<SpecialToken> specials;
  std::unordered_set<int32_t> ids;
  std::unordered_set<std::string> texts;
  for (const Json& entry : list) {
    WASTE_ASSIGN(SpecialToken token, ParseSpecial(entry, path));
    if (!ids.insert(token.id).second)
      return Failure(Code::kCorrupt, path, ": special token ", token.id, " stands twice");
    if (!texts.insert(token.text).second)
      return Failure(Code::kCorrupt, path, ": special token ", token.id, ": its text ",
                     Quote(token.text), " stands twice");
    specials.push_back(std::move(token));
  }
  SortById(specials);
  return specials;
}

std::string PrintSpecials(std::vector<SpecialToken> specials) {
  SortById(specials);
  Json list = Json::array();
  for (const SpecialToken& token : specials)
    list.push_back(Json{{"id", token.id}, {"text", token.text}});
  return PrintJsonText(list);
}

}  // namespace waste
