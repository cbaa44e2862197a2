// SPDX-License-Identifier: Apache-2.0

#include "container/json_text.h"

#include <charconv>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "base/utf8.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

// Follows a parse without building anything, and stops it at the first thing we do not accept.
class Checker : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(int64_t max_keys) : max_keys_(max_keys) {}

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
    std::unordered_set<std::string>& keys = keys_.back();
    if (!keys.insert(name).second) return Stop("the key " + Quote(name) + " stands twice");
    if (static_cast<int64_t>(keys.size()) > max_keys_)
      return Stop("an object has more than " + std::to_string(max_keys_) + " keys");
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    // `position` counts the bytes read, the one that does not fit included.
    const size_t at = position > 0 ? position - 1 : 0;
    return Stop("not JSON from byte " + std::to_string(at) + " on");
  }

 private:
  bool Enter() {
    keys_.emplace_back();
    if (static_cast<int64_t>(keys_.size()) > kMaxJsonDepth)
      return Stop("nested deeper than " + std::to_string(kMaxJsonDepth));
    return true;
  }
  bool Leave() {
    keys_.pop_back();
    return true;
  }
  bool Stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  const int64_t max_keys_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects that are open
  std::string problem_;
};

// As Python prints a float: the shortest digits that read back the same, an exponent below 1e-4 and
// from 1e16 on, and always a point or an exponent.
std::string PrintDouble(double value) {
  char text[64];
  const double magnitude = std::fabs(value);
  const bool fixed = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text, text + sizeof(text), value, format).ptr;
  std::string printed(text, end);
  if (fixed && printed.find('.') == std::string::npos) printed += ".0";
  return printed;
}

std::string PrintScalar(const Json& value) {
  if (value.is_number_float()) return PrintDouble(value.get<double>());
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void Print(const Json& value, size_t depth, std::string& out) {
  if (!value.is_structured() || value.empty()) {
    out += PrintScalar(value);
    return;
  }
  const bool is_object = value.is_object();
  out += is_object ? '{' : '[';
  const char* separator = "\n";
  for (auto it = value.begin(); it != value.end(); ++it) {
    out += separator;
    separator = ",\n";
    out.append(depth + 1, ' ');
    if (is_object) out += PrintScalar(Json(it.key())) + ": ";
    Print(*it, depth + 1, out);
  }
  out += '\n';
  out.append(depth, ' ');
  out += is_object ? '}' : ']';
}

}  // namespace

Status CheckJsonText(std::string_view text, const std::string& path, int64_t max_keys) {
  // The parser takes a NUL for the end of the text, and would not see what follows.
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos)
    return Failure(Code::kFormat, path, ": a NUL at byte ", nul, "; this is not JSON text");
  Checker checker(max_keys);
  if (!Json::sax_parse(text, &checker))
    return Failure(Code::kFormat, path, ": ", checker.problem(), "; the file has ", text.size(),
                   " bytes; copy it again");
  return Status();
}

Result<Json> ParseJsonText(std::string_view text, const std::string& path) {
  WASTE_TRY(CheckJsonText(text, path, kMaxJsonKeys));
  return Json::parse(text, nullptr, false);
}

std::string PrintJsonText(const Json& value) {
  std::string out;
  Print(value, 0, out);
  return out;
}

std::optional<int64_t> JsonInteger(const Json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number > uint64_t{INT64_MAX}) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  return std::nullopt;
}

const Json* JsonMember(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(key));
  return found == object.end() ? nullptr : &*found;
}

std::string Quote(std::string_view text) {
  constexpr int64_t kMaxBytes = 100;
  const std::string_view cut = CutUtf8(text, kMaxBytes);
  std::string quoted = Json(std::string(cut)).dump(-1, ' ', true, Json::error_handler_t::replace);
  if (cut.size() < text.size()) quoted += "...";
  return quoted;
}

}  // namespace waste
