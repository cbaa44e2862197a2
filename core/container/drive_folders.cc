// SPDX-License-Identifier: Apache-2.0

#include "container/drive_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "container/json_text.h"
#include "os/file.h"

namespace waste {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxFileBytes = int64_t{1} << 20;
constexpr size_t kMaxPathBytes = 4096;

bool CanBeFolder(const std::string& folder) {
  return !folder.empty() && folder.size() <= kMaxPathBytes &&
         std::none_of(folder.begin(), folder.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte < 0x20 || byte == 0x7F;
         });
}

// Also by another name: a link, a detour. What cannot be looked at is told apart by name only.
bool IsSameFolder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || (std::filesystem::equivalent(a, b, error) && !error);
}

}  // namespace

Result<std::vector<std::string>> ParseDriveFolders(std::string_view text, const std::string& path) {
  WASTE_ASSIGN(const Json root, ParseJsonText(text, path));
  const Json* const list = JsonMember(root, "folders");
  if (list == nullptr || !list->is_array())
    return Failure(Code::kFormat, path, ": not {\"folders\": [...]} with a list of folders");
  if (std::ssize(*list) > kMaxDriveFolders)
    return Failure(Code::kCorrupt, path, ": ", list->size(), " folders, at most ", kMaxDriveFolders,
                   " are read from");
  std::vector<std::string> folders;
  for (const Json& entry : *list) {
    if (!entry.is_string())
      return Failure(Code::kFormat, path, ": ", Quote(entry.dump()), " is no folder's path");
    std::string folder = entry.get<std::string>();
    if (!CanBeFolder(folder))
      return Failure(Code::kCorrupt, path, ": ", Quote(folder),
                     " can be no folder; a path has 1 to ", kMaxPathBytes,
                     " bytes and no control characters");
    folders.push_back(std::move(folder));
  }
  return folders;
}

Result<std::vector<std::string>> ReadDriveFolders(const std::string& container) {
  std::vector<std::string> folders = {container};
  const std::string path = JoinPath(container, "drives.json");
  if (!FileExists(path)) return folders;
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, kMaxFileBytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  WASTE_ASSIGN(const std::vector<std::string> written, ParseDriveFolders(text, path));
  for (const std::string& folder : written) {
    const bool is_absolute = std::filesystem::path(folder).is_absolute();
    std::string full = is_absolute ? folder : JoinPath(container, folder);
    const auto is_same = [&](const std::string& other) { return IsSameFolder(other, full); };
    if (std::none_of(folders.begin(), folders.end(), is_same)) folders.push_back(std::move(full));
  }
  return folders;
}

}  // namespace waste
