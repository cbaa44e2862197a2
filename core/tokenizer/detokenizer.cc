// SPDX-License-Identifier: Apache-2.0

#include "tokenizer/detokenizer.h"

#include "base/utf8.h"

namespace waste {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

}  // namespace

void Detokenizer::Add(std::string_view bytes, std::string& out) {
  held_.append(bytes);
  std::string_view rest = held_;
  while (!rest.empty()) {
    const Utf8Step step = DecodeUtf8(rest);
    if (step.truncated) break;
    const std::string_view character = rest.substr(0, static_cast<size_t>(step.size));
    if (step.valid)
      out.append(character);
    else
      AppendUtf8(out, kReplacement);
    rest.remove_prefix(character.size());
  }
  held_.erase(0, held_.size() - rest.size());
}

void Detokenizer::Finish(std::string& out) {
  if (!held_.empty()) AppendUtf8(out, kReplacement);
  held_.clear();
}

}  // namespace waste
