// SPDX-License-Identifier: Apache-2.0

#include "drives.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

namespace waste_cli {
namespace {

namespace fs = std::filesystem;

bool IsSameFolder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || (fs::equivalent(a, b, error) && !error);
}

// A number that folders on one device share.
uint64_t DeviceOf(const std::string& folder) {
  struct stat status = {};
  return stat(folder.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_dev) : 0;
}

// Banks by name to the speed of all devices that have one: a second copy on a device adds nothing.
std::map<std::string, double> SpeedsOfBanks(const std::vector<Drive>& drives) {
  std::map<std::string, std::map<uint64_t, double>> speeds;
  std::error_code none;
  for (const Drive& drive : drives)
    for (const auto& entry : fs::directory_iterator(drive.folder, none))
      if (const std::string name = entry.path().filename().string();
          name.starts_with("experts-L")) {
        double& speed = speeds[name][drive.device];
        speed = std::max(speed, drive.limit.bytes_s);
      }
  std::map<std::string, double> sums;
  for (const auto& [name, by_device] : speeds)
    for (const auto& [device, speed] : by_device) sums[name] += speed;
  return sums;
}

// Whether two folders with experts lie on one device.
bool ShareADevice(const std::vector<Drive>& drives) {
  std::set<uint64_t> devices;
  for (const Drive& drive : drives)
    if (drive.limit.bytes_s > 0 && !devices.insert(drive.device).second) return true;
  return false;
}

}  // namespace

std::vector<std::string> BankFolders(const std::string& container) {
  std::vector<std::string> folders = {container};
  std::ifstream file(fs::path(container) / "drives.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("folders")) return folders;
  for (const auto& entry : json["folders"]) {
    if (!entry.is_string()) continue;
    const std::string folder = (fs::path(container) / entry.get<std::string>()).string();
    const auto is_same = [&](const std::string& other) { return IsSameFolder(other, folder); };
    if (std::none_of(folders.begin(), folders.end(), is_same)) folders.push_back(folder);
  }
  return folders;
}

DriveLimits MeasureDrives(const std::string& container, int64_t record_bytes, int32_t readers) {
  DriveLimits limits;
  for (const std::string& folder : BankFolders(container))
    limits.drives.push_back(
        {folder, DeviceOf(folder), MeasureDrive(folder, record_bytes, readers)});
  limits.share_a_device = ShareADevice(limits.drives);
  double seconds = 0;  // for a byte of each bank
  const std::map<std::string, double> speeds = SpeedsOfBanks(limits.drives);
  for (const auto& [name, bytes_s] : speeds)
    if (bytes_s > 0) seconds += 1 / bytes_s;
  if (seconds > 0) limits.all.bytes_s = static_cast<double>(speeds.size()) / seconds;
  limits.all.direct = limits.all.bytes_s > 0;
  for (const Drive& drive : limits.drives) {
    if (drive.limit.direct || drive.limit.bytes_s == 0) continue;
    limits.all.direct = false;
    limits.all.refusal = drive.limit.refusal;
  }
  return limits;
}

}  // namespace waste_cli
