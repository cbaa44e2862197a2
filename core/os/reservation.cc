// SPDX-License-Identifier: Apache-2.0

#include "os/reservation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "os/process.h"

namespace waste {
namespace {

constexpr auto kFolderWait = std::chrono::milliseconds(500);  // holders need microseconds

// A reservation as its file's name tells it: BYTES-BASE-SPACE-NUMBER-START-SERIAL.
struct Entry {
  int64_t bytes = 0;
  int64_t base = 0;  // what the process had touched before its first model
  ProcessId process;
  int64_t serial = 0;  // of several in one process

  std::string Name() const {
    std::string name;
    for (const int64_t field :
         {bytes, base, process.space, process.number, process.start, serial}) {
      if (!name.empty()) name += '-';
      name += std::to_string(field);
    }
    return name;
  }

  static std::optional<Entry> Parse(const std::string& name) {
    Entry entry;
    const char* at = name.data();
    const char* const end = at + name.size();
    for (int64_t* field : {&entry.bytes, &entry.base, &entry.process.space, &entry.process.number,
                           &entry.process.start, &entry.serial}) {
      const auto [rest, error] = std::from_chars(at, end, *field);
      if (error != std::errc() || *field < 0) return std::nullopt;
      at = rest < end && *rest == '-' ? rest + 1 : rest;
    }
    if (entry.Name() != name) return std::nullopt;
    return entry;
  }
};

bool Lock(int descriptor) {
  int failed;
  do failed = flock(descriptor, LOCK_EX | LOCK_NB);
  while (failed != 0 && errno == EINTR);
  return failed == 0;
}

// The folder, opened and locked against other instances as long as this lives.
class Folder {
 public:
  // None if it is not there (and cannot be made, with `make`), or is not this user's alone.
  static std::unique_ptr<Folder> Open(const std::string& path, bool make) {
    if (make && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return nullptr;
    const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) return nullptr;
    std::unique_ptr<Folder> folder(new Folder(path, descriptor));
    struct stat info;
    const bool ours = fstat(descriptor, &info) == 0 && info.st_uid == geteuid() &&
                      (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
    if (!ours) return nullptr;
    folder->WaitLock();
    return folder;
  }
  static std::unique_ptr<Folder> OpenFirst(const std::vector<std::string>& paths, bool make) {
    for (const std::string& path : paths)
      if (auto folder = Open(path, make)) return folder;
    return nullptr;
  }

  Folder(const Folder&) = delete;
  // Unlocked first: a child forked meanwhile has a copy of the descriptor, and with it the lock.
  ~Folder() {
    if (locked_) flock(descriptor_, LOCK_UN);
    close(descriptor_);
  }

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }

  // Those that still count. Dead ones are removed.
  std::vector<Entry> Live() const;

 private:
  Folder(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  // A process that was stopped while it held the lock must not stop us: then we go on without.
  void WaitLock() {
    const auto until = std::chrono::steady_clock::now() + kFolderWait;
    while (!(locked_ = Lock(descriptor_)) && errno == EWOULDBLOCK &&
           std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<std::string> Names() const;
  bool IsLive(const std::string& name, const Entry& entry) const;

  const std::string path_;
  const int descriptor_;
  bool locked_ = false;
};

std::vector<std::string> Folder::Names() const {
  std::vector<std::string> names;
  const int copy = openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const list = copy < 0 ? nullptr : fdopendir(copy);
  if (list == nullptr) {
    if (copy >= 0) close(copy);
    return names;
  }
  while (const dirent* found = readdir(list)) names.emplace_back(found->d_name);
  closedir(list);
  return names;
}

// The lock alone does not tell: a child that was forked off keeps it when its parent has died.
bool Folder::IsLive(const std::string& name, const Entry& entry) const {
  const int file =
      openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno != ENOENT;  // no descriptor left, say: then nothing speaks against it
  const bool was_free = Lock(file);
  if (was_free) flock(file, LOCK_UN);
  close(file);
  return !was_free && TouchedBytes(entry.process).has_value();
}

std::vector<Entry> Folder::Live() const {
  std::vector<Entry> live;
  for (const std::string& name : Names()) {
    const auto entry = Entry::Parse(name);
    if (!entry.has_value()) continue;
    if (IsLive(name, *entry)) {
      live.push_back(*entry);
    } else if (locked_) {  // or it may be one that is just being made
      unlinkat(descriptor_, name.c_str(), 0);
    }
  }
  return live;
}

// Per process: a model touches its memory in no order that another's reservation could know.
int64_t Untouched(const std::vector<Entry>& entries) {
  struct Account {
    int64_t bytes = 0;
    int64_t base = INT64_MAX;
  };
  std::map<ProcessId, Account> accounts;
  const auto add = [](int64_t& sum, int64_t more) { sum += std::min(more, INT64_MAX - sum); };
  for (const Entry& entry : entries) {
    Account& account = accounts[entry.process];
    add(account.bytes, entry.bytes);
    account.base = std::min(account.base, entry.base);
  }
  int64_t sum = 0;
  for (const auto& [process, account] : accounts) {
    const int64_t touched = std::max<int64_t>(TouchedBytes(process).value_or(0) - account.base, 0);
    add(sum, std::max<int64_t>(account.bytes - touched, 0));
  }
  return sum;
}

// What this process's next reservation says of it. The base is that of its first model, since what
// the models before have touched is theirs.
Entry NextEntry(const std::vector<Entry>& live) {
  Entry next{.process = ThisProcess()};
  next.base = TouchedBytes(next.process).value_or(0);
  for (const Entry& entry : live) {
    if (entry.process != next.process) continue;
    next.base = std::min(next.base, entry.base);
    next.serial = std::max(next.serial, entry.serial + 1);
  }
  return next;
}

}  // namespace

std::vector<std::string> Reservation::Folders() {
  std::vector<std::string> folders;
  const std::string name = "waste-" + std::to_string(geteuid());
#if defined(__APPLE__)
  char own[1024];
  if (confstr(_CS_DARWIN_USER_TEMP_DIR, own, sizeof own) > 0) folders.push_back(own + name);
#else
  folders.push_back("/dev/shm/" + name);
#endif
  folders.push_back(P_tmpdir "/" + name);
  return folders;
}

Reservation Reservation::Make(const std::function<int64_t(int64_t)>& plan,
                              const std::vector<std::string>& folders) {
  Reservation made;
  const auto folder = Folder::OpenFirst(folders, true);
  if (folder == nullptr) {
    plan(0);
    return made;
  }
  const std::vector<Entry> live = folder->Live();
  Entry entry = NextEntry(live);
  entry.bytes = plan(Untouched(live));
  // A process that the system does not show could not be told from a dead one.
  if (entry.bytes <= 0 || !TouchedBytes(entry.process).has_value()) return made;
  const std::string name = entry.Name();
  const int file = openat(folder->descriptor(), name.c_str(),
                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return made;
  made.folder_ = folder->path();
  made.name_ = name;
  made.descriptor_ = file;
  made.owner_ = getpid();
  if (!Lock(file)) made.Release();
  return made;
}

int64_t Reservation::ReservedBytes(const std::vector<std::string>& folders) {
  const auto folder = Folder::OpenFirst(folders, false);
  return folder == nullptr ? 0 : Untouched(folder->Live());
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  Release();
  folder_ = std::move(other.folder_);
  name_ = std::move(other.name_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  owner_ = other.owner_;
  return *this;
}

void Reservation::Resize(int64_t bytes) {
  if (!held() || owner_ != getpid()) return;
  auto entry = Entry::Parse(name_);
  if (!entry.has_value() || entry->bytes == bytes || bytes < 0) return;
  entry->bytes = bytes;
  const auto folder = Folder::Open(folder_, false);
  if (folder == nullptr) return;
  const std::string name = entry->Name();
  if (renameat(folder->descriptor(), name_.c_str(), folder->descriptor(), name.c_str()) == 0)
    name_ = name;
}

void Reservation::Release() {
  if (!held()) return;
  if (owner_ == getpid()) {
    if (const auto folder = Folder::Open(folder_, false))
      unlinkat(folder->descriptor(), name_.c_str(), 0);
    flock(descriptor_, LOCK_UN);  // closing alone would leave it to a child made by fork
  }
  close(descriptor_);
  descriptor_ = -1;
}

}  // namespace waste
