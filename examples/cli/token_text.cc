// SPDX-License-Identifier: Apache-2.0

#include "token_text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

namespace waste_cli {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::string ReadAll(std::FILE* file, const std::string& name) {
  std::string text;
  char buffer[65536];
  while (const size_t size = std::fread(buffer, 1, sizeof buffer, file)) text.append(buffer, size);
  if (std::ferror(file)) throw Failure("IO", name + ": " + std::strerror(errno));
  return text;
}

}  // namespace

std::vector<int32_t> Tokenize(const Model& model, const std::string& text, bool markup) {
  const auto call = markup ? waste_tokenize_markup : waste_tokenize;
  std::vector<int32_t> tokens(text.size() / 2 + 16);
  for (;;) {
    const int64_t count = Try([&](waste_error* error) {
      return call(model.get(), text.data(), std::ssize(text), tokens.data(), std::ssize(tokens),
                  error);
    });
    const bool complete = count <= std::ssize(tokens);
    tokens.resize(static_cast<size_t>(count));
    if (complete) return tokens;
  }
}

std::string Detokenize(const Model& model, std::span<const int32_t> tokens) {
  std::string bytes(tokens.size() * 8 + 16, '\0');
  for (;;) {
    const int64_t size = Try([&](waste_error* error) {
      return waste_detokenize(model.get(), tokens.data(), std::ssize(tokens), bytes.data(),
                              std::ssize(bytes), error);
    });
    const bool complete = size <= std::ssize(bytes);
    bytes.resize(static_cast<size_t>(size));
    if (complete) return bytes;
  }
}

std::string QuotedTokenText(const Model& model, int32_t token) {
  return nlohmann::json(Detokenize(model, {&token, 1}))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ReadStdin() { return ReadAll(stdin, "standard input"); }

std::string ReadFile(const std::string& path) {
  if (path == "-") return ReadStdin();
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw Failure("IO", path + ": " + std::strerror(errno));
  return ReadAll(file.get(), path);
}

}  // namespace waste_cli
