// SPDX-License-Identifier: Apache-2.0

#include "convert/large_json.h"

#include "container/json_text.h"

namespace waste {

Result<nlohmann::json> ParseLargeJson(std::string_view text, const std::string& path) {
  // Sorted keys are found quickly however many there are.
  WASTE_TRY(CheckJsonText(text, path, INT64_MAX));
  nlohmann::json value = nlohmann::json::parse(text, nullptr, false);
  if (!value.is_object()) return Failure(Code::kFormat, path, ": not a JSON object");
  return value;
}

const nlohmann::json* LargeJsonMember(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::optional<int64_t> LargeJsonSize(const nlohmann::json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const uint64_t number = value.get<uint64_t>();
  if (number > uint64_t{1} << 62) return std::nullopt;
  return static_cast<int64_t>(number);
}

}  // namespace waste
