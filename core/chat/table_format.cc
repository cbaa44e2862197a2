// SPDX-License-Identifier: Apache-2.0
//
// The chat format that chat.json gives as a table: a prefix and a suffix around each role's text,
// and what hands the floor to the model. Only these strings are encoded as markup.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "chat/chat_format.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;
using Tokens = std::vector<int32_t>;

struct Turn {
  Tokens prefix;
  Tokens suffix;
};

struct Table {
  std::array<std::optional<Turn>, 3> turns;  // by Role
  Tokens opening;
  Tokens prelude;
  Tokens stop;
};

constexpr std::array<const char*, 3> kRoleKeys = {"system", "user", "assistant"};

// All text is the answer; a stop token ends it.
class TableTracker : public ChannelTracker {
 public:
  TableTracker(const Tokenizer& tokenizer, const Table& table)
      : tokenizer_(&tokenizer), table_(&table) {}

  Step Feed(int32_t token) override {
    const bool stops =
        std::find(table_->stop.begin(), table_->stop.end(), token) != table_->stop.end();
    ended_by_ = stops ? token : -1;
    return {Channel::kResponse, !stops && !tokenizer_->IsSpecial(token), stops};
  }

  std::unique_ptr<ChannelTracker> Clone() const override {
    return std::make_unique<TableTracker>(*this);
  }

  // The suffix; of one that begins with the token that ended the turn, the rest.
  void AppendClosing(std::vector<int32_t>& out) const override {
    const Tokens& suffix = table_->turns[static_cast<size_t>(Role::kAssistant)]->suffix;
    const bool begun = ended_by_ >= 0 && !suffix.empty() && suffix.front() == ended_by_;
    out.insert(out.end(), suffix.begin() + (begun ? 1 : 0), suffix.end());
  }

 private:
  const Tokenizer* tokenizer_;
  const Table* table_;
  int32_t ended_by_ = -1;  // the last token, if it was a stop token
};

class TableFormat : public ChatFormat {
 public:
  TableFormat(const Tokenizer& tokenizer, Table table)
      : tokenizer_(tokenizer), table_(std::move(table)) {}

  bool can_think() const override { return false; }

  void AppendPrelude(std::vector<int32_t>& out) const override {
    out.insert(out.end(), table_.prelude.begin(), table_.prelude.end());
  }

  Status AppendMessage(Role role, std::string_view text, bool,
                       std::vector<int32_t>& out) const override {
    const size_t index = static_cast<size_t>(role);
    if (index >= table_.turns.size() || !table_.turns[index])
      return Failure(Code::kUnsupported, "the model's chat format has no messages of the role ",
                     index < kRoleKeys.size() ? kRoleKeys[index] : "asked for");
    const Turn& turn = *table_.turns[index];
    out.insert(out.end(), turn.prefix.begin(), turn.prefix.end());
    tokenizer_.Encode(text, out);
    out.insert(out.end(), turn.suffix.begin(), turn.suffix.end());
    return Status();
  }

  void AppendOpening(bool, std::vector<int32_t>& out) const override {
    out.insert(out.end(), table_.opening.begin(), table_.opening.end());
  }

  const std::vector<int32_t>& stop_tokens() const override { return table_.stop; }

  std::unique_ptr<ChannelTracker> NewTracker(bool) const override {
    return std::make_unique<TableTracker>(tokenizer_, table_);
  }

 private:
  const Tokenizer& tokenizer_;
  Table table_;
};

class TableReader {
 public:
  TableReader(const Tokenizer& tokenizer, const Json& chat, const std::string& path)
      : tokenizer_(tokenizer), chat_(chat), path_(path) {}

  Result<Table> Read() const {
    if (!chat_.is_object()) return Failure(Code::kFormat, path_, ": not a JSON object");
    Table table;
    for (size_t role = 0; role < kRoleKeys.size(); ++role) {
      WASTE_ASSIGN(table.turns[role], ReadTurn(kRoleKeys[role]));
      if (!table.turns[role] && role != static_cast<size_t>(Role::kSystem))
        return Fail(kRoleKeys[role], "is missing");
    }
    if (!chat_.contains("open")) return Fail("open", "is missing");
    WASTE_ASSIGN(table.opening, ReadMarkup("open"));
    WASTE_ASSIGN(table.prelude, ReadMarkup("prelude"));
    WASTE_ASSIGN(table.stop, ReadStop());
    AddUsualStops(table);
    return table;
  }

 private:
  Status Fail(const std::string& key, const std::string& what) const {
    return Failure(Code::kFormat, path_, ": \"", key, "\" ", what);
  }

  Result<std::optional<Turn>> ReadTurn(const std::string& key) const {
    const auto found = chat_.find(key);
    if (found == chat_.end()) return std::optional<Turn>();
    if (!found->is_array() || found->size() != 2 || !(*found)[0].is_string() ||
        !(*found)[1].is_string())
      return Fail(key, "is not a list of two strings, prefix and suffix");
    return std::optional<Turn>(Turn{Encoded((*found)[0]), Encoded((*found)[1])});
  }

  Result<Tokens> ReadMarkup(const std::string& key) const {
    const auto found = chat_.find(key);
    if (found == chat_.end()) return Tokens();
    if (!found->is_string()) return Fail(key, "is not a string");
    return Encoded(*found);
  }

  // One string or a list of them, each the text of a special token.
  Result<Tokens> ReadStop() const {
    const auto found = chat_.find("stop");
    if (found == chat_.end()) return Tokens();
    if (!found->is_string() && !found->is_array())
      return Fail("stop", "is neither a string nor a list of strings");
    const Json list = found->is_string() ? Json::array({*found}) : *found;
    Tokens stop;
    for (const Json& text : list) {
      if (!text.is_string()) return Fail("stop", "holds something that is no string");
      const int32_t id = tokenizer_.FindSpecial(text.get_ref<const std::string&>());
      if (id < 0) return Fail("stop", "names a text that is no special token of the model");
      stop.push_back(id);
    }
    return stop;
  }

  // What ends a turn stops the model also where `stop` does not say so: the special token that the
  // assistant's suffix starts with, and the tokens that exist for it.
  void AddUsualStops(Table& table) const {
    const Tokens& suffix = table.turns[static_cast<size_t>(Role::kAssistant)]->suffix;
    if (!suffix.empty() && tokenizer_.IsSpecial(suffix.front()))
      table.stop.push_back(suffix.front());
    for (const char* text : {"[EOS]", "<|end_of_msg|>"})
      if (const int32_t id = tokenizer_.FindSpecial(text); id >= 0) table.stop.push_back(id);
    std::sort(table.stop.begin(), table.stop.end());
    table.stop.erase(std::unique(table.stop.begin(), table.stop.end()), table.stop.end());
  }

  Tokens Encoded(const Json& text) const {
    Tokens tokens;
    tokenizer_.EncodeMarkup(text.get_ref<const std::string&>(), tokens);
    return tokens;
  }

  const Tokenizer& tokenizer_;
  const Json& chat_;
  const std::string& path_;
};

}  // namespace

Result<std::unique_ptr<ChatFormat>> MakeTableFormat(const Tokenizer& tokenizer,
                                                    const nlohmann::ordered_json& chat,
                                                    const std::string& path) {
  WASTE_ASSIGN(Table table, TableReader(tokenizer, chat, path).Read());
  return std::unique_ptr<ChatFormat>(std::make_unique<TableFormat>(tokenizer, std::move(table)));
}

}  // namespace waste
