// SPDX-License-Identifier: Apache-2.0
//
// JSON with very many keys in one object: headers of safetensors files, shard indexes,
// vocabularies. Keys are kept sorted, so that looking one up is cheap (container/json_text.h keeps
// their order, and searches). Refuses a key twice and deep nesting before anything is built. Pure
// functions.

#ifndef WASTE_CORE_CONVERT_LARGE_JSON_H_
#define WASTE_CORE_CONVERT_LARGE_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace waste {

// The text as an object. Errors: kFormat, naming `path`.
Result<nlohmann::json> ParseLargeJson(std::string_view text, const std::string& path);

// The member `key` of `object`, or null if there is none.
const nlohmann::json* LargeJsonMember(const nlohmann::json& object, const char* key);

// The value as a number from 0 to 2^62; nothing if it is none.
std::optional<int64_t> LargeJsonSize(const nlohmann::json& value);

}  // namespace waste

#endif  // WASTE_CORE_CONVERT_LARGE_JSON_H_
