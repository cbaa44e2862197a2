// SPDX-License-Identifier: Apache-2.0
//
// A session on disk: our own format, bound to the model that wrote it.
//
//   0      8        16        24        32      40       48       56
//   | magic, version | identity | thinking | tokens | turns  | seen   | state bytes |
//   then tokens i32, turns (begin, end) i64, state, and a crc32 of everything before it.
//
// `seen` is how many of the tokens the state has run. All little-endian. A file is checked
// completely before the session changes.

#include <utility>

#include "base/bytes.h"
#include "base/crc32.h"
#include "engine/session.h"
#include "os/file.h"

namespace waste {
namespace {

constexpr uint32_t kMagic = 0x53455357;  // "WSES"
constexpr uint32_t kVersion = 1;
constexpr int64_t kHeaderBytes = 56;
constexpr int64_t kCrcBytes = 4;

struct Header {
  uint64_t identity;
  bool thinking;
  int64_t token_count;
  int64_t turn_count;
  int64_t seen;
  int64_t state_bytes;
};

// Reads and checks the first bytes; sizes are not yet compared with the file's.
Result<Header> ReadHeader(std::span<const uint8_t> bytes, const std::string& path) {
  if (static_cast<int64_t>(bytes.size()) < kHeaderBytes + kCrcBytes)
    return Failure(Code::kFormat, path, ": ", bytes.size(), " bytes are no saved session");
  ByteReader in(bytes);
  if (in.U32() != kMagic) return Failure(Code::kFormat, path, ": this is no saved session");
  if (const uint32_t version = in.U32(); version != kVersion)
    return Failure(Code::kVersion, path, ": saved in version ", version, ", this library reads ",
                   kVersion);
  Header header;
  header.identity = in.U64();
  header.thinking = in.U64() != 0;
  header.token_count = static_cast<int64_t>(in.U64());
  header.turn_count = static_cast<int64_t>(in.U64());
  header.seen = static_cast<int64_t>(in.U64());
  header.state_bytes = static_cast<int64_t>(in.U64());
  return header;
}

// Whether the parts fill the file exactly; every count is bounded by the file before it is used.
bool SizesAgree(const Header& h, int64_t file_bytes) {
  const auto bounded = [&](int64_t n) { return n >= 0 && n <= file_bytes; };
  return bounded(h.token_count) && bounded(h.turn_count) && bounded(h.state_bytes) && h.seen >= 0 &&
         h.seen <= h.token_count &&
         kHeaderBytes + 4 * h.token_count + 16 * h.turn_count + h.state_bytes + kCrcBytes ==
             file_bytes;
}

}  // namespace

Status Session::Save(const std::string& path) const {
  ByteWriter head;
  head.U32(kMagic);
  head.U32(kVersion);
  head.U64(model_->info().identity);
  head.U64(thinking_ ? 1 : 0);
  head.U64(tokens_.size());
  head.U64(turns_.size());
  head.U64(static_cast<uint64_t>(timeline_->position()));
  head.U64(static_cast<uint64_t>(timeline_->SavedBytes()));
  for (const int32_t token : tokens_) head.U32(static_cast<uint32_t>(token));
  for (const Turn& turn : turns_) {
    head.U64(static_cast<uint64_t>(turn.begin));
    head.U64(static_cast<uint64_t>(turn.end));
  }
  std::vector<uint8_t> state(static_cast<size_t>(timeline_->SavedBytes()));
  timeline_->SaveTo(state);
  ByteWriter tail;
  tail.U32(Crc32(state, Crc32(head.bytes())));

  WASTE_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  WASTE_TRY(file.Append(head.bytes()));
  WASTE_TRY(file.Append(std::span<const uint8_t>(state)));
  WASTE_TRY(file.Append(tail.bytes()));
  return file.Commit();
}

Status Session::Load(const std::string& path) {
  constexpr int64_t kMaxFileBytes = int64_t{1} << 36;
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxFileBytes));
  WASTE_ASSIGN(const Header header, ReadHeader(bytes, path));
  const int64_t size = static_cast<int64_t>(bytes.size());
  const auto body = std::span(bytes).first(bytes.size() - static_cast<size_t>(kCrcBytes));
  if (!SizesAgree(header, size) ||
      Crc32(body) != LoadLittle(bytes.data() + body.size(), static_cast<int>(kCrcBytes)))
    return Failure(Code::kCorrupt, path, ": the saved session is damaged (", size, " bytes)");
  if (header.identity != model_->info().identity)
    return Failure(Code::kArgument, path, ": saved from another model");
  if (header.thinking != thinking_)
    return Failure(Code::kArgument, path, ": saved from a session with thinking ",
                   header.thinking ? "on" : "off");
  if (header.token_count > context_)
    return Failure(Code::kContextFull, path, ": holds ", header.token_count,
                   " tokens, this session's context is ", context_);

  ByteReader in(body.subspan(static_cast<size_t>(kHeaderBytes)));
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < header.token_count; ++i) {
    tokens.push_back(static_cast<int32_t>(in.U32()));
    if (tokens.back() < 0 || tokens.back() >= model_->info().vocab)
      return Failure(Code::kCorrupt, path, ": token ", i, " is ", tokens.back());
  }
  std::vector<Turn> turns;
  int64_t last = 0;
  for (int64_t i = 0; i < header.turn_count; ++i) {
    const int64_t begin = static_cast<int64_t>(in.U64());
    const int64_t end = static_cast<int64_t>(in.U64());
    const bool open = end == -1 && i + 1 == header.turn_count;
    if (begin < last || begin > header.token_count || model_->chat() == nullptr ||
        (!open && (end < begin || end > header.token_count)))
      return Failure(Code::kCorrupt, path, ": turn ", i, " is [", begin, ", ", end, ")");
    turns.push_back({begin, end});
    last = open ? begin : end;
  }
  WASTE_TRY(timeline_->LoadFrom(body.subspan(body.size() - static_cast<size_t>(header.state_bytes)),
                                header.seen));
  tokens_.assign(tokens.begin(), tokens.end());
  turns_ = std::move(turns);
  TokensChanged();
  return Status();
}

}  // namespace waste
