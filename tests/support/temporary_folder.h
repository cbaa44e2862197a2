// SPDX-License-Identifier: Apache-2.0
//
// A folder of the test's own, empty at first and removed with all in it at the end. Throws when the
// system gives none: a test without its folder is a failed test.

#ifndef WASTE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
#define WASTE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_

#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>

namespace waste {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    const std::string name = "waste-test-" + std::to_string(random()) + std::to_string(random());
    path_ = (std::filesystem::temp_directory_path() / name).string();
    if (!std::filesystem::create_directory(path_))  // nobody else's
      throw std::runtime_error("no temporary folder " + path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Writes a file, with the folders it lies in; returns its path.
  std::string Write(std::string_view name, std::string_view text) const {
    const std::string path = PathOf(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file) throw std::runtime_error("cannot write " + path);
    return path;
  }

 private:
  std::string path_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_TEMPORARY_FOLDER_H_
