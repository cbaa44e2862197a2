// SPDX-License-Identifier: Apache-2.0
//
// JSON text that nobody vouches for, and JSON text as the format's writers print it. Parsing
// refuses what other parsers disagree about (a key twice, a NUL) and what costs more than its bytes
// (deep nesting, objects of very many keys), and says at which byte. Printing equals Python's
// json.dump(indent=1) byte for byte, numbers included. Pure functions; any thread.

#ifndef WASTE_CORE_CONTAINER_JSON_TEXT_H_
#define WASTE_CORE_CONTAINER_JSON_TEXT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace waste {

inline constexpr int64_t kMaxJsonDepth = 64;
inline constexpr int64_t kMaxJsonKeys = 16384;  // of one object: they are searched one by one

// Whether `text` is JSON that we accept, with at most `max_keys` keys in one object; nothing is
// built. Errors: kFormat, naming `path` and the byte where the text stops being acceptable.
Status CheckJsonText(std::string_view text, const std::string& path, int64_t max_keys);

// The text, checked for kMaxJsonKeys and parsed. Errors: those of CheckJsonText.
Result<nlohmann::ordered_json> ParseJsonText(std::string_view text, const std::string& path);

// `value` nests at most kMaxJsonDepth deep (it was parsed above, or written by us).
std::string PrintJsonText(const nlohmann::ordered_json& value);

// The value as an integer; nothing if it is none (128.0 is none) or does not fit.
std::optional<int64_t> JsonInteger(const nlohmann::ordered_json& value);

// The member `key` of `object`, or null if there is none or `object` is no object.
const nlohmann::ordered_json* JsonMember(const nlohmann::ordered_json& object,
                                         std::string_view key);

// `text` for a message: quoted, ASCII, and short however long it is.
std::string Quote(std::string_view text);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_JSON_TEXT_H_
