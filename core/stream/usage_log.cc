// SPDX-License-Identifier: Apache-2.0

#include "stream/usage_log.h"

#include <utility>

#include "base/bytes.h"
#include "os/file.h"

namespace waste {
namespace {

constexpr uint32_t kMagic = 0x47535557;  // "WUSG"
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 16;
constexpr size_t kEntryBytes = 16;
constexpr int64_t kMaxFileBytes = int64_t{64} << 20;  // four million experts; K3 has 82,432

}  // namespace

Result<UsageLog> ParseUsageLog(std::span<const uint8_t> bytes, const std::string& path) {
  if (bytes.size() < kHeaderBytes)
    return Failure(Code::kCorrupt, path, ": ", bytes.size(), " bytes, and a header has ",
                   kHeaderBytes);
  ByteReader header(bytes);
  if (header.U32() != kMagic) return Failure(Code::kFormat, path, ": no usage log");
  if (const uint32_t version = header.U32(); version != kVersion)
    return Failure(Code::kFormat, path, ": a usage log of version ", version, ", not ", kVersion);
  UsageLog usage;
  usage.tokens = header.U64();
  const auto body = bytes.subspan(kHeaderBytes);
  if (body.size() % kEntryBytes != 0)
    return Failure(Code::kCorrupt, path, ": ", body.size(), " bytes of entries, which have ",
                   kEntryBytes, " each");
  usage.entries.reserve(body.size() / kEntryBytes);
  ByteReader entries(body);
  for (size_t i = 0; i < body.size() / kEntryBytes; ++i) {
    UsageLog::Entry& entry = usage.entries.emplace_back();
    entry.layer = entries.U16();
    entry.expert = entries.U16();
    entry.hits = entries.U32();
    entry.last_seen = entries.U32();
    entries.U32();  // of the published layout; 0, and never read
  }
  return usage;
}

std::vector<uint8_t> PrintUsageLog(const UsageLog& usage) {
  ByteWriter writer;
  writer.U32(kMagic);
  writer.U32(kVersion);
  writer.U64(usage.tokens);
  for (const UsageLog::Entry& entry : usage.entries) {
    writer.U16(entry.layer);
    writer.U16(entry.expert);
    writer.U32(entry.hits);
    writer.U32(entry.last_seen);
    writer.U32(0);
  }
  return std::move(writer).Take();
}

Result<UsageLog> ReadUsageLog(const std::string& path) {
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxFileBytes));
  return ParseUsageLog(bytes, path);
}

Status WriteUsageLog(const UsageLog& usage, const std::string& path) {
  WASTE_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  WASTE_TRY(file.Append(PrintUsageLog(usage)));
  return file.Commit();
}

}  // namespace waste
