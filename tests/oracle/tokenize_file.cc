// SPDX-License-Identifier: Apache-2.0
//
// Tokenises many strings for comparison with other implementations:
//
//   tokenize_file RANKS SPECIALS text|markup|chat STRINGS OUT
//
// RANKS is a tiktoken rank file, SPECIALS a JSON list of {"id", "text"}. STRINGS holds records of a
// 32-bit size and that many bytes; OUT gets, for each, a 32-bit count and that many 32-bit ids.
// With `chat` a record is a JSON object: `thinking`, and `messages` with `role` and `content`,
// rendered in K3's markup up to the assistant's turn. Prints the speed. All numbers are
// little-endian.

#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace {

using nlohmann::json;
using waste::ByteReader;
using waste::ByteWriter;
using waste::ChatFormat;
using waste::Code;
using waste::Failure;
using waste::Result;
using waste::Role;
using waste::Status;
using waste::Tokenizer;

Result<std::string> ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Failure(Code::kIo, path, ": cannot be opened");
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& ranks_path,
                                                 const std::string& specials_path) {
  WASTE_ASSIGN(const std::string ranks, ReadAll(ranks_path));
  WASTE_ASSIGN(const std::string specials_text, ReadAll(specials_path));
  std::vector<std::pair<int32_t, std::string>> specials;
  for (const json& special : json::parse(specials_text))
    specials.emplace_back(special.at("id").get<int32_t>(), special.at("text").get<std::string>());
  return Tokenizer::Create(BytesOf(ranks), specials, ranks_path);
}

Result<std::vector<std::string_view>> SplitRecords(std::string_view file) {
  std::vector<std::string_view> records;
  while (!file.empty()) {
    if (file.size() < 4) return Failure(Code::kFormat, "a record's size is cut short");
    const size_t size = ByteReader(BytesOf(file)).U32();
    if (file.size() - 4 < size) return Failure(Code::kFormat, "a record is cut short");
    records.push_back(file.substr(4, size));
    file.remove_prefix(4 + size);
  }
  return records;
}

Role RoleOf(const std::string& name) {
  if (name == "system") return Role::kSystem;
  return name == "user" ? Role::kUser : Role::kAssistant;
}

Status EncodeChat(const ChatFormat& format, std::string_view record, std::vector<int32_t>& out) {
  const json chat = json::parse(record);
  const bool thinking = chat.at("thinking").get<bool>();
  format.AppendPrelude(out);
  for (const json& message : chat.at("messages"))
    WASTE_TRY(format.AppendMessage(RoleOf(message.at("role").get<std::string>()),
                                   message.at("content").get<std::string>(), thinking, out));
  format.AppendOpening(thinking, out);
  return Status();
}

Status EncodeRecords(const Tokenizer& tokenizer, const std::string& mode,
                     const std::vector<std::string_view>& records, ByteWriter& out) {
  std::unique_ptr<ChatFormat> format;
  if (mode == "chat") {
    WASTE_ASSIGN(format, MakeK3Format(tokenizer));
  } else if (mode != "text" && mode != "markup") {
    return Failure(Code::kArgument, "mode ", mode, ": text, markup or chat is meant");
  }
  for (const std::string_view record : records) {
    std::vector<int32_t> ids;
    if (format != nullptr)
      WASTE_TRY(EncodeChat(*format, record, ids));
    else if (mode == "markup")
      tokenizer.EncodeMarkup(record, ids);
    else
      tokenizer.Encode(record, ids);
    out.U32(static_cast<uint32_t>(ids.size()));
    for (const int32_t id : ids) out.U32(static_cast<uint32_t>(id));
  }
  return Status();
}

Status Run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 5)
    return Failure(Code::kArgument, "usage: tokenize_file RANKS SPECIALS MODE STRINGS OUT");
  const auto start = std::chrono::steady_clock::now();
  WASTE_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer,
               LoadTokenizer(arguments[0], arguments[1]));
  const auto loaded = std::chrono::steady_clock::now();
  WASTE_ASSIGN(const std::string file, ReadAll(arguments[3]));
  WASTE_ASSIGN(const std::vector<std::string_view> records, SplitRecords(file));
  const auto begun = std::chrono::steady_clock::now();
  ByteWriter out;
  WASTE_TRY(EncodeRecords(*tokenizer, arguments[2], records, out));
  const std::chrono::duration<double> load = loaded - start;
  const std::chrono::duration<double> encode = std::chrono::steady_clock::now() - begun;
  std::cout << tokenizer->rank_count() << " ranks loaded in " << load.count() * 1e3 << " ms; "
            << records.size() << " strings at "
            << static_cast<double>(file.size()) / 1e6 / encode.count() << " MB/s\n";

  std::ofstream to(arguments[4], std::ios::binary);
  to.write(reinterpret_cast<const char*>(out.bytes().data()), out.size());
  if (!to.flush()) return Failure(Code::kIo, arguments[4], ": cannot be written");
  return Status();
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = Run(std::vector<std::string>(argv + 1, argv + argc));
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}
