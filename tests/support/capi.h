// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of the public header: handles that free themselves, scripted models in
// temporary files, and a generation drained to a string. Header-only; clients of <waste/waste.h>
// alone.

#ifndef WASTE_TESTS_SUPPORT_CAPI_H_
#define WASTE_TESTS_SUPPORT_CAPI_H_

#include <stdlib.h>
#include <unistd.h>
#include <waste/waste.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace waste_test {

// Ends the test with `message` unless `condition` holds. The message is read after the condition is
// known, so it may be what a call in the condition fills in.
inline void Require(bool condition, const char* message) {
  if (!condition) throw std::runtime_error(message);
}

struct Free {
  void operator()(void* object) const { waste_free(object); }
};
using Model = std::unique_ptr<waste_model, Free>;
using Session = std::unique_ptr<waste_session, Free>;
using Generation = std::unique_ptr<waste_generation, Free>;
using Job = std::unique_ptr<waste_job, Free>;

inline waste_error NewError() {
  waste_error error{};
  error.struct_size = sizeof error;
  return error;
}

template <typename T>
T Sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

// A folder that is removed with all in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "waste-XXXXXX").string();
    Require(mkdtemp(pattern.data()) != nullptr, "no temporary folder");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline Model Open(const std::string& path, const waste_open_options* options = nullptr) {
  waste_error error = NewError();
  waste_model* model = nullptr;
  Require(waste_open(path.c_str(), -1, options, &model, &error) == WASTE_OK, error.message);
  return Model(model);
}

// A scripted model and the file behind it.
class Scripted {
 public:
  explicit Scripted(const std::string& json, const waste_open_options* options = nullptr) {
    WriteFile(folder_.File("script.json"), json);
    model = Open(path(), options);
  }
  std::string path() const { return "test:" + folder_.File("script.json"); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;

 public:
  Model model;
};

inline Session NewSession(const Model& model, const waste_session_options* options = nullptr) {
  waste_error error = NewError();
  waste_session* session = nullptr;
  Require(waste_session_create(model.get(), options, &session, &error) == WASTE_OK, error.message);
  return Session(session);
}

inline Generation Generate(const Session& session, const char* prompt,
                           const waste_generation_options* options = nullptr) {
  waste_error error = NewError();
  waste_generation* generation = nullptr;
  Require(waste_generate(session.get(), prompt, -1, options, &generation, &error) == WASTE_OK,
          error.message);
  return Generation(generation);
}

struct Answer {
  std::string text;  // of the response channel
  std::string thinking;
  std::vector<std::string> pieces;  // all of them, as they came
  int64_t status = 0;               // what the last waste_next returned
  int32_t finish_reason = 0;
};

// Pulls until the end or a failure.
inline Answer Drain(const Generation& generation, int64_t buffer_size = 256) {
  Answer answer;
  std::vector<char> buffer(static_cast<size_t>(buffer_size));
  waste_token token = Sized<waste_token>();
  while ((answer.status =
              waste_next(generation.get(), buffer.data(), buffer_size, &token, nullptr)) > 0) {
    const std::string piece(buffer.data(), static_cast<size_t>(answer.status));
    answer.pieces.push_back(piece);
    (token.channel == WASTE_CHANNEL_THINKING ? answer.thinking : answer.text) += piece;
  }
  answer.finish_reason = token.finish_reason;
  return answer;
}

inline Answer Ask(const Session& session, const char* prompt,
                  const waste_generation_options* options = nullptr) {
  return Drain(Generate(session, prompt, options));
}

inline std::vector<int32_t> Tokens(const Session& session) {
  const int64_t count = waste_session_tokens(session.get(), nullptr, 0, nullptr);
  Require(count >= 0, "the session does not tell its tokens");
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  Require(waste_session_tokens(session.get(), tokens.data(), count, nullptr) == count,
          "the session does not tell its tokens");
  return tokens;
}

inline std::string MiniModel() { return WASTE_SOURCE_DIR "/examples/mini/mini.waste"; }

}  // namespace waste_test

#endif  // WASTE_TESTS_SUPPORT_CAPI_H_
