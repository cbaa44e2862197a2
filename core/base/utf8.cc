// SPDX-License-Identifier: Apache-2.0

#include "base/utf8.h"

namespace waste {
namespace {

// What a lead byte asks for: how many bytes, and the range of the second one.
struct Lead {
  int32_t size;  // 0: no lead byte
  uint8_t low;
  uint8_t high;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

constexpr char32_t kReplacement = 0xFFFD;

}  // namespace

Utf8Step DecodeUtf8(std::string_view text) {
  if (text.empty()) return {kReplacement, 0, false, false};
  const auto byte = [&](int32_t i) { return static_cast<uint8_t>(text[static_cast<size_t>(i)]); };
  const Lead lead = LeadOf(byte(0));
  if (lead.size == 0) return {kReplacement, 1, false, false};
  if (lead.size == 1) return {byte(0), 1, true, false};
  char32_t code_point = byte(0) & (0x7Fu >> lead.size);
  for (int32_t i = 1; i < lead.size; ++i) {
    if (i == static_cast<int32_t>(text.size())) return {kReplacement, i, false, true};
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {kReplacement, i, false, false};
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {code_point, lead.size, true, false};
}

int64_t FindInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = DecodeUtf8(text.substr(at));
    if (!step.valid) return static_cast<int64_t>(at);
    at += static_cast<size_t>(step.size);
  }
  return -1;
}

void AppendUtf8(std::string& text, char32_t code_point) {
  const auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xE0 | code_point >> 12);
    } else {
      put(0xF0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 0x3F));
    }
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

std::string_view CutUtf8(std::string_view text, int64_t max_bytes) {
  if (static_cast<int64_t>(text.size()) <= max_bytes) return text;
  size_t end = static_cast<size_t>(max_bytes > 0 ? max_bytes : 0);
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace waste
