// SPDX-License-Identifier: Apache-2.0

#include "engine/script.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "os/file.h"

namespace waste {
namespace {

using nlohmann::json;

constexpr int64_t kMaxScriptBytes = 1 << 20;
constexpr int64_t kMaxNumber = int64_t{1} << 40;

constexpr struct {
  const char* name;
  Code code;
} kCodes[] = {{"IO", Code::kIo},
              {"FORMAT", Code::kFormat},
              {"CORRUPT", Code::kCorrupt},
              {"UNSUPPORTED", Code::kUnsupported},
              {"NO_MEMORY", Code::kNoMemory},
              {"VERSION", Code::kVersion},
              {"INTERNAL", Code::kInternal}};

// Strings of answers become tokens of their own behind the 256 single bytes.
class Ranks {
 public:
  int32_t Of(const std::string& bytes) {
    if (bytes.size() == 1) return static_cast<uint8_t>(bytes[0]);
    const auto [at, fresh] = ids_.try_emplace(bytes, 256 + static_cast<int32_t>(ids_.size()));
    if (fresh) order_.push_back(bytes);
    return at->second;
  }
  int32_t count() const { return 256 + static_cast<int32_t>(ids_.size()); }

  std::vector<uint8_t> File() const {
    std::string text;
    for (int32_t i = 0; i < count(); ++i) {
      const std::string bytes =
          i < 256 ? std::string(1, static_cast<char>(i)) : order_[static_cast<size_t>(i - 256)];
      text += Base64(bytes) + " " + std::to_string(i) + "\n";
    }
    return {text.begin(), text.end()};
  }

 private:
  static std::string Base64(const std::string& bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (size_t i = 0; i < bytes.size(); i += 3) {
      uint32_t group = 0;
      for (size_t k = 0; k < 3; ++k)
        group = group << 8 | (i + k < bytes.size() ? static_cast<uint8_t>(bytes[i + k]) : 0u);
      for (size_t k = 0; k < 4; ++k)
        out += i + k <= bytes.size() ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
    return out;
  }

  std::map<std::string, int32_t> ids_;
  std::vector<std::string> order_;
};

class ScriptReader {
 public:
  explicit ScriptReader(const std::string& path) : path_(path) {}

  Result<Script> Read(const json& root);

 private:
  template <typename... Parts>
  Status Wrong(const Parts&... parts) const {
    return Failure(Code::kFormat, path_, ": ", parts...);
  }

  Result<int64_t> Number(const json& value, const std::string& where) const;
  Status ReadError(const json& value, const std::string& where, Status& error) const;
  Result<std::string> Hex(const json& value, const std::string& where) const;
  Status ReadAnswer(const json& items, const std::string& where);
  Status ReadItem(const json& item, const std::string& where, ScriptAnswer& answer);
  Status ReadObject(const std::string& key, const json& item, const std::string& where,
                    ScriptAnswer& answer);
  void PlaceSpecials();

  std::string path_;
  Script script_;
  Ranks ranks_;
  // Tokens of specials are numbered once all ranks are known; until then -1 - index.
  static constexpr const char* kSpecials[] = {"[BOS]",    "[EOS]",     "<|end_of_msg|>",
                                              "<|open|>", "<|close|>", "<|sep|>"};
};

Result<int64_t> ScriptReader::Number(const json& value, const std::string& where) const {
  if (!value.is_number_integer()) return Wrong(where, " is no whole number");
  const int64_t number = value.get<int64_t>();
  if (number < 0 || number > kMaxNumber) return Wrong(where, " is ", number);
  return number;
}

// {"error": "IO", "message": "..."} as the Status it describes.
Status ScriptReader::ReadError(const json& value, const std::string& where, Status& error) const {
  const auto name = value.find("error");
  if (name == value.end() || !name->is_string()) return Wrong(where, " names no error");
  std::string message = "the script says so";
  if (const auto text = value.find("message"); text != value.end() && text->is_string())
    message = text->get<std::string>();
  for (const auto& known : kCodes)
    if (name->get<std::string>() == known.name) {
      error = Status(known.code, path_ + ": " + message);
      return Status();
    }
  return Wrong(where, ": there is no error ", name->get<std::string>());
}

Result<std::string> ScriptReader::Hex(const json& value, const std::string& where) const {
  if (!value.is_string()) return Wrong(where, " is no string of hex digits");
  const std::string digits = value.get<std::string>();
  if (digits.empty() || digits.size() % 2 != 0 ||
      digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    return Wrong(where, " is no string of hex digits");
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

Status ScriptReader::ReadObject(const std::string& key, const json& item, const std::string& where,
                                ScriptAnswer& answer) {
  const auto next_index = static_cast<int64_t>(answer.tokens.size());
  const json& value = item.at(key);
  if (key == "bytes") {
    WASTE_ASSIGN(const std::string bytes, Hex(value, where));
    answer.tokens.push_back(ranks_.Of(bytes));
  } else if (key == "repeat" && value.is_string() && !value.get<std::string>().empty()) {
    answer.tokens.push_back(ranks_.Of(value.get<std::string>()));
    answer.endless = true;
  } else if (key == "special" && value.is_string()) {
    for (int32_t i = 0; i < static_cast<int32_t>(std::size(kSpecials)); ++i)
      if (value.get<std::string>() == kSpecials[i]) {
        answer.tokens.push_back(-1 - i);
        return Status();
      }
    return Wrong(where, ": there is no special token ", value.get<std::string>());
  } else if (key == "stall_ms") {
    WASTE_ASSIGN(answer.events[next_index].stall_ms, Number(value, where));
  } else if (key == "error") {
    ScriptFailure failure;
    WASTE_TRY(ReadError(item, where, failure.status));
    if (item.contains("times")) {
      WASTE_ASSIGN(failure.times, Number(item.at("times"), where));
    }
    answer.events[next_index].failure = std::move(failure);
  } else if (key != "message" && key != "times") {
    return Wrong(where, ": unknown key ", key);
  }
  return Status();
}

Status ScriptReader::ReadItem(const json& item, const std::string& where, ScriptAnswer& answer) {
  if (answer.endless) return Wrong(where, " comes behind an endless repeat");
  if (item.is_string() && !item.get<std::string>().empty()) {
    answer.tokens.push_back(ranks_.Of(item.get<std::string>()));
    return Status();
  }
  if (!item.is_object() || item.empty()) return Wrong(where, " is neither text nor an object");
  for (const auto& [key, value] : item.items()) WASTE_TRY(ReadObject(key, item, where, answer));
  return Status();
}

Status ScriptReader::ReadAnswer(const json& items, const std::string& where) {
  if (!items.is_array()) return Wrong(where, " is no list");
  ScriptAnswer answer;
  for (size_t i = 0; i < items.size(); ++i)
    WASTE_TRY(ReadItem(items[i], where + "[" + std::to_string(i) + "]", answer));
  script_.answers.push_back(std::move(answer));
  return Status();
}

void ScriptReader::PlaceSpecials() {
  script_.rank_file = ranks_.File();
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(kSpecials)); ++i)
    script_.specials.emplace_back(ranks_.count() + i, kSpecials[i]);
  script_.vocab = ranks_.count() + static_cast<int64_t>(std::size(kSpecials));
  script_.end_token = ranks_.count() + 2;
  for (ScriptAnswer& answer : script_.answers)
    for (int32_t& token : answer.tokens)
      if (token < 0) token = ranks_.count() - 1 - token;
}

Result<Script> ScriptReader::Read(const json& root) {
  if (!root.is_object()) return Wrong("a script is a JSON object");
  const std::pair<const char*, int64_t*> numbers[] = {
      {"context", &script_.context},
      {"floor_bytes", &script_.floor_bytes},
      {"open_stall_ms", &script_.open_stall_ms},
      {"prefill_stall_ms", &script_.prefill_stall_ms}};
  for (const auto& [key, value] : root.items()) {
    bool known = key == "answers" || key == "open_error";
    for (const auto& [name, target] : numbers)
      if (key == name) {
        known = true;
        WASTE_ASSIGN(*target, Number(value, key));
      }
    if (!known) return Wrong("unknown key ", key);
  }
  if (root.contains("open_error")) {
    if (!root.at("open_error").is_object()) return Wrong("open_error is no object");
    WASTE_TRY(ReadError(root.at("open_error"), "open_error", script_.open_failure));
  }
  if (!root.contains("answers") || !root.at("answers").is_array() || root.at("answers").empty())
    return Wrong("answers is no list of at least one answer");
  const json& answers = root.at("answers");
  for (size_t i = 0; i < answers.size(); ++i)
    WASTE_TRY(ReadAnswer(answers[i], "answers[" + std::to_string(i) + "]"));
  if (script_.context < 1) return Wrong("context is 0");
  PlaceSpecials();
  return std::move(script_);
}

}  // namespace

Result<Script> ReadScript(const std::string& path) {
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxScriptBytes));
  const json root = json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (root.is_discarded()) return Failure(Code::kFormat, path, ": this is no JSON");
  return ScriptReader(path).Read(root);
}

}  // namespace waste
