// SPDX-License-Identifier: Apache-2.0
//
// Writing and folders. Descriptors are those of the C run-time library over handles, so that one
// AtomicFile serves all systems. Windows has no way to flush a folder; a rename that is written
// through comes closest.

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <algorithm>

#include "os/file.h"
#include "os/file_calls.h"
#include "os/system_error.h"
#include "os/windows_path.h"

namespace waste {
namespace {

constexpr int64_t kWriteMax = int64_t{1} << 30;  // one call

HANDLE HandleOf(int descriptor) { return reinterpret_cast<HANDLE>(_get_osfhandle(descriptor)); }

int LastError() { return static_cast<int>(GetLastError()); }

// Calls `use` for all in a folder but itself and the one above; 0 or the error. The library's
// iterators know paths of 260 characters at most.
template <typename Use>
int ForEachIn(const std::wstring& folder, const Use& use) {
  WIN32_FIND_DATAW found;
  const std::wstring all = folder + (folder.ends_with(L'\\') ? L"*" : LR"(\*)");
  const HANDLE search = FindFirstFileW(all.c_str(), &found);
  if (search == INVALID_HANDLE_VALUE) return LastError();
  do {
    const std::wstring name = found.cFileName;
    if (name != L"." && name != L"..") use(name, found.dwFileAttributes);
  } while (FindNextFileW(search, &found));
  const int error = LastError();
  FindClose(search);
  return error == ERROR_NO_MORE_FILES ? 0 : error;
}

// Links go, what they lead to stays.
void RemoveAll(const std::wstring& path, DWORD attributes) {
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) == 0) {
    DeleteFileW(path.c_str());
    return;
  }
  if ((attributes & FILE_ATTRIBUTE_REPARSE_POINT) == 0)
    ForEachIn(path,
              [&](const std::wstring& name, DWORD kind) { RemoveAll(path + L'\\' + name, kind); });
  RemoveDirectoryW(path.c_str());
}

}  // namespace

int CreateNewFile(const std::string& path, int& descriptor) {
  const HANDLE handle =
      CreateFileW(WidePath(path).c_str(), GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE,
                  nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return LastError();
  descriptor = _open_osfhandle(reinterpret_cast<intptr_t>(handle), _O_BINARY);
  if (descriptor >= 0) return 0;
  CloseHandle(handle);
  return ERROR_TOO_MANY_OPEN_FILES;
}

int WriteFully(int descriptor, int64_t offset, std::span<const uint8_t> bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  for (int64_t done = 0; done < size;) {
    OVERLAPPED at = {};
    at.Offset = static_cast<DWORD>(offset + done);
    at.OffsetHigh = static_cast<DWORD>((offset + done) >> 32);
    DWORD put = 0;
    if (!WriteFile(HandleOf(descriptor), bytes.data() + done,
                   static_cast<DWORD>(std::min(size - done, kWriteMax)), &put, &at))
      return LastError();
    if (put == 0) return ERROR_WRITE_FAULT;
    done += put;
  }
  return 0;
}

int FlushFile(int descriptor) { return FlushFileBuffers(HandleOf(descriptor)) ? 0 : LastError(); }

int CloseFile(int descriptor) { return _close(descriptor) == 0 ? 0 : ERROR_WRITE_FAULT; }

int RenameOver(const std::string& from, const std::string& to) {
  const DWORD flags = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  return MoveFileExW(WidePath(from).c_str(), WidePath(to).c_str(), flags) ? 0 : LastError();
}

int RemoveFile(const std::string& path) {
  if (DeleteFileW(WidePath(path).c_str())) return 0;
  const int error = LastError();
  return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND ? 0 : error;
}

Status FlushParent(std::string) { return Status(); }

bool FileExists(const std::string& path) {
  return GetFileAttributesW(WidePath(path).c_str()) != INVALID_FILE_ATTRIBUTES;
}

// Follows links, which only opening does.
bool IsFolder(const std::string& path) {
  const HANDLE handle = CreateFileW(WidePath(path).c_str(), FILE_READ_ATTRIBUTES,
                                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return false;
  BY_HANDLE_FILE_INFORMATION info;
  const bool known = GetFileInformationByHandle(handle, &info);
  CloseHandle(handle);
  return known && (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

Result<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  const int error = ForEachIn(
      UnlimitedPath(path), [&](const std::wstring& name, DWORD) { names.push_back(Utf8Of(name)); });
  if (error != 0) return SystemFailure("list", path, error);
  std::sort(names.begin(), names.end());
  return names;
}

Status CreateFolder(const std::string& path) {
  if (!CreateDirectoryW(WidePath(path).c_str(), nullptr))
    return SystemFailure("create folder", path, LastError());
  return Status();
}

void RemoveFolder(const std::string& path) {
  const std::wstring folder = UnlimitedPath(path);
  const DWORD attributes = GetFileAttributesW(folder.c_str());
  if (attributes != INVALID_FILE_ATTRIBUTES) RemoveAll(folder, attributes);
}

}  // namespace waste
