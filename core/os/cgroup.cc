// SPDX-License-Identifier: Apache-2.0

#include "os/cgroup.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

namespace waste {
namespace {

// A line of /proc/self/cgroup: "4:cpu,cpuacct:/path"; v2 is "0::/path".
struct Membership {
  std::string controllers;
  std::string path;
};

// A cgroup file system of /proc/self/mountinfo.
struct Mount {
  bool v2 = false;
  std::string controllers;  // v1: in the options of the superblock
  std::string root;         // the group that is mounted
  std::string point;
};

bool HasWord(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

std::vector<Membership> ReadMemberships(const std::string& root) {
  std::vector<Membership> memberships;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    memberships.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return memberships;
}

// Blanks and backslashes of a path stand as \ and three octal digits.
std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// "id parent device ROOT POINT options [optional...] - TYPE source SUPEROPTIONS"
std::vector<Mount> ReadMounts(const std::string& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::istringstream front(line);
    std::istringstream back(line.substr(dash + 3));
    std::string skipped, type;
    Mount mount;
    front >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    back >> type >> skipped >> mount.controllers;
    if (type != "cgroup" && type != "cgroup2") continue;
    mount.v2 = type == "cgroup2";
    mount.root = Unescape(mount.root);
    mount.point = Unescape(mount.point);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

// The folders of the group and of every one above it that the mount shows.
std::vector<std::string> Ancestry(const std::string& root, const Mount& mount,
                                  const std::string& group) {
  // A container often sees its own group as the mount's root, under the path that the host knows.
  std::string below = mount.root == "/" ? group : "";
  if (mount.root != "/" && (group + "/").starts_with(mount.root + "/"))
    below = group.substr(mount.root.size());
  if (below == "/" || below.find("/..") != below.npos) below.clear();
  std::vector<std::string> folders;
  for (; !below.empty(); below.resize(below.rfind('/')))
    folders.push_back(root + mount.point + below);
  folders.push_back(root + mount.point);
  return folders;
}

// The first number of a file. None if there is no such file or no number in it ("max").
std::optional<int64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t number;
  if (!(file >> number)) return std::nullopt;
  return number;
}

// Sum of the named lines of a file of "name number" lines.
int64_t SumOf(const std::string& path, const std::string& first, const std::string& second) {
  std::ifstream file(path);
  int64_t sum = 0, number = 0;
  for (std::string name; file >> name >> number;)
    if (name == first || name == second) sum += number;
  return sum;
}

// What the limit leaves when file cache does not count as used.
void LimitMemory(const MemoryGroup& group, CgroupLimits& limits) {
  const MemoryUse use = ReadMemoryUse(group);
  if (use.limit_bytes == INT64_MAX) return;
  const int64_t used = std::max<int64_t>(use.used_bytes - ReadFileCacheBytes(group), 0);
  limits.memory_bytes = std::min(limits.memory_bytes, std::max<int64_t>(use.limit_bytes - used, 0));
}

void LimitCores(std::optional<int64_t> quota, std::optional<int64_t> period, CgroupLimits& limits) {
  if (quota.value_or(0) <= 0 || period.value_or(0) <= 0) return;
  limits.cores = std::min(limits.cores, static_cast<double>(*quota) / static_cast<double>(*period));
}

void LimitCoresOfFolder(const std::string& folder, bool v2, CgroupLimits& limits) {
  if (!v2) {
    LimitCores(ReadNumber(folder + "/cpu.cfs_quota_us"), ReadNumber(folder + "/cpu.cfs_period_us"),
               limits);
    return;
  }
  std::ifstream cpu(folder + "/cpu.max");
  int64_t quota, period;
  if (cpu >> quota >> period) LimitCores(quota, period, limits);
}

// Of v1, each mount has its own hierarchy, and the line that names its controllers is its own.
bool Belongs(const Membership& membership, const Mount& mount, const std::string& controller) {
  if (mount.v2) return membership.controllers.empty();
  return HasWord(mount.controllers, controller) && HasWord(membership.controllers, controller);
}

// Calls use(folder, v2, own) for every group that `controller` may limit this process by.
template <typename Use>
void ForEachGroup(const std::string& root, const std::string& controller, const Use& use) {
  const auto memberships = ReadMemberships(root);
  for (const Mount& mount : ReadMounts(root)) {
    for (const Membership& membership : memberships) {
      if (!Belongs(membership, mount, controller)) continue;
      bool own = true;
      for (const std::string& folder : Ancestry(root, mount, membership.path))
        use(folder, mount.v2, std::exchange(own, false));
    }
  }
}

}  // namespace

CgroupLimits ReadCgroupLimits(const std::string& root) {
  CgroupLimits limits;
  for (const MemoryGroup& group : ListMemoryGroups(root)) LimitMemory(group, limits);
  ForEachGroup(root, "cpu", [&](const std::string& folder, bool v2, bool) {
    LimitCoresOfFolder(folder, v2, limits);
  });
  return limits;
}

std::vector<MemoryGroup> ListMemoryGroups(const std::string& root) {
  std::vector<MemoryGroup> groups;
  ForEachGroup(root, "memory", [&](const std::string& folder, bool v2, bool own) {
    groups.push_back({folder, v2, own});
  });
  return groups;
}

MemoryUse ReadMemoryUse(const MemoryGroup& group) {
  const std::string& folder = group.folder;
  if (!group.v2)
    return {ReadNumber(folder + "/memory.limit_in_bytes").value_or(INT64_MAX),
            ReadNumber(folder + "/memory.usage_in_bytes").value_or(0)};
  return {std::min(ReadNumber(folder + "/memory.max").value_or(INT64_MAX),
                   ReadNumber(folder + "/memory.high").value_or(INT64_MAX)),
          ReadNumber(folder + "/memory.current").value_or(0)};
}

int64_t ReadFileCacheBytes(const MemoryGroup& group) {
  const std::string total = group.v2 ? "" : "total_";  // with the groups below
  return SumOf(group.folder + "/memory.stat", total + "active_file", total + "inactive_file");
}

MemoryHits ReadMemoryHits(const MemoryGroup& group) {
  if (!group.v2) return {ReadNumber(group.folder + "/memory.failcnt").value_or(0), 0};
  const std::string path = MemoryEventsPath(group);
  return {SumOf(path, "high", "max"), SumOf(path, "oom", "")};
}

std::string MemoryEventsPath(const MemoryGroup& group) {
  if (!group.v2) return "";
  for (const char* name : {"/memory.events.local", "/memory.events"})  // the first since Linux 5.2
    if (std::ifstream(group.folder + name).good()) return group.folder + name;
  return "";
}

}  // namespace waste
