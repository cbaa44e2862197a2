// SPDX-License-Identifier: Apache-2.0

#include "convert/large_json.h"

#include <unordered_set>
#include <vector>

#include "container/json_text.h"

namespace waste {
namespace {

// Follows a parse without building anything, and stops it at the first thing we do not accept.
class Checker : public nlohmann::json_sax<nlohmann::json> {
 public:
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }

  bool key(string_t& name) override {
    if (open_.back().insert(name).second) return true;
    return Stop("the key " + Quote(name) + " stands twice");
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Stop("not JSON from byte " + std::to_string(position) + " on");
  }

 private:
  bool Enter() {
    open_.emplace_back();
    if (static_cast<int64_t>(open_.size()) <= kMaxJsonDepth) return true;
    return Stop("nested deeper than " + std::to_string(kMaxJsonDepth));
  }
  bool Leave() {
    open_.pop_back();
    return true;
  }
  bool Stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  std::vector<std::unordered_set<std::string>> open_;  // the keys of each open object
  std::string problem_;
};

}  // namespace

Result<nlohmann::json> ParseLargeJson(std::string_view text, const std::string& path) {
  Checker checker;
  if (!nlohmann::json::sax_parse(text, &checker))
    return Failure(Code::kFormat, path, ": ", checker.problem());
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
