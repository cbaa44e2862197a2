// SPDX-License-Identifier: Apache-2.0
//
// The mini model with a fake behind each of its banks and its trunk, at the smallest budget, so
// that experts are read for every token; and one conversation with it in which things go wrong.
// Throws where nothing may: a test without its model is a failed test.

#ifndef WASTE_TESTS_SUPPORT_FAULTY_ENGINE_H_
#define WASTE_TESTS_SUPPORT_FAULTY_ENGINE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/generation.h"
#include "engine/model.h"
#include "engine/session.h"
#include "support/fake_file.h"
#include "support/tiny_container.h"

namespace waste {

class FaultyEngine {
 public:
  static constexpr int32_t kBanks = 7;  // layers 1 to 7

  // `sessions` at once fit the budget.
  explicit FaultyEngine(OpenOptions options = {}, int64_t sessions = 1) {
    std::filesystem::copy(WASTE_SOURCE_DIR "/examples/mini/mini.waste", folder_.path());
    for (int32_t layer = 1; layer <= kBanks; ++layer)
      banks_.push_back(opener_.Fake("experts-L" + std::to_string(layer) + ".bin"));
    trunk_ = opener_.Fake("trunk.bin");
    options.context = 256;
    options.threads = 2;
    options.open_file = opener_.opener();
    const MemoryPlan plan = Require(Model::Plan(folder_.path(), options));
    options.budget_bytes = plan.floor_bytes + (sessions - 1) * plan.state_bytes;
    model_ = Require(Model::Open(folder_.path(), options, std::make_shared<Progress>()));
  }

  const std::shared_ptr<Model>& model() const { return model_; }
  FileFaults& bank(int32_t layer) const { return *banks_.at(static_cast<size_t>(layer - 1)); }
  FileFaults& trunk() const { return *trunk_; }
  std::vector<FileFaults*> files() const {
    std::vector<FileFaults*> files = {trunk_.get()};
    for (const auto& bank : banks_) files.push_back(bank.get());
    return files;
  }
  void Heal() const {
    for (FileFaults* file : files()) file->Heal();
  }

 private:
  TemporaryPath folder_;  // of a copy: what is learned of its experts is written there
  FakeOpener opener_;
  std::vector<std::shared_ptr<FileFaults>> banks_;
  std::shared_ptr<FileFaults> trunk_;
  std::shared_ptr<Model> model_;
};

// One answer, pulled piece by piece.
class Answer {
 public:
  Answer(std::shared_ptr<Session> session, std::string_view prompt)
      : session_(session), generation_(Require(Generation::Create(session, &prompt, {}))) {}

  // The next piece is added to text(); false at the end.
  Result<bool> Pull() {
    char buffer[64];
    WASTE_ASSIGN(const NextPiece piece, generation_->Next(buffer));
    text_.append(buffer, static_cast<size_t>(piece.bytes));
    return piece.bytes > 0;
  }

  // To the end; after each failure `after` is called and the same call is made again.
  std::vector<Status> PullAll(const std::function<void(const Answer&)>& after) {
    std::vector<Status> failures;
    for (;;) {
      const Result<bool> more = Pull();
      if (more.ok() && !*more) return failures;
      if (more.ok()) continue;
      failures.push_back(more.status());
      after(*this);
    }
  }

  const std::string& text() const { return text_; }
  // The session holds its tokens: the prompt and all that were sampled.
  int64_t sampled() const {
    std::vector<int32_t> tokens;
    std::vector<double> logprobs;
    Require(generation_->CopyTokens(tokens, logprobs));
    return static_cast<int64_t>(tokens.size());
  }

 private:
  std::shared_ptr<Session> session_;
  std::shared_ptr<Generation> generation_;
  std::string text_;
};

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_FAULTY_ENGINE_H_
