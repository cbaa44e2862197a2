// SPDX-License-Identifier: Apache-2.0
//
// What models of this process have reserved, exactly: read from the names of its own reservations,
// beside which those of other processes do not matter.

#include "engine/memory_grant.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/session.h"
#include "os/process.h"
#include "os/reservation.h"
#include "support/temporary_folder.h"

namespace waste {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr ModelSizes kSizes{.trunk_bytes = 3 * kMiB, .state_bytes = kMiB};

// The sum of this process's reservations, and how many there are.
struct Own {
  int64_t bytes = 0;
  int64_t count = 0;

  Own() {
    const ProcessId self = ThisProcess();
    const std::string mark = "-" + std::to_string(self.space) + "-" + std::to_string(self.number) +
                             "-" + std::to_string(self.start) + "-";
    for (const std::string& folder : Reservation::Folders()) {
      if (!std::filesystem::exists(folder)) continue;
      for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name.find(mark) == std::string::npos) continue;
        bytes += std::stoll(name);
        ++count;
      }
    }
  }
};

std::shared_ptr<Model> OpenScript(const TemporaryFolder& folder, int64_t floor_bytes,
                                  int64_t budget_bytes) {
  const std::string path =
      folder.Write("script.json", R"({"answers":[["a"]],"context":1000,"floor_bytes":)" +
                                      std::to_string(floor_bytes) + "}");
  auto model =
      Model::Open("test:" + path, {.budget_bytes = budget_bytes}, std::make_shared<Progress>());
  BOOST_REQUIRE_MESSAGE(model.ok(), model.status().message());
  return *std::move(model);
}

BOOST_AUTO_TEST_SUITE(memory_grant)

BOOST_AUTO_TEST_CASE(a_grant_reserves_what_the_plan_allocates) {
  Progress log;
  {
    const MemoryGrant grant = GrantMemory(kSizes, 0, log);
    BOOST_TEST(grant.plan.fits);
    BOOST_TEST(Own().bytes == 4 * kMiB);
    const MemoryGrant generous = GrantMemory(kSizes, 64 * kMiB, log);  // nothing would fill it
    BOOST_TEST(Own().bytes == 8 * kMiB);
  }
  BOOST_TEST(Own().count == 0);
  BOOST_TEST(!log.NextLine().has_value());
}

BOOST_AUTO_TEST_CASE(a_plan_that_does_not_fit_reserves_nothing) {
  Progress log;
  const MemoryGrant grant = GrantMemory(kSizes, 1, log);
  BOOST_TEST(!grant.plan.fits);
  BOOST_TEST(Own().count == 0);
}

BOOST_AUTO_TEST_CASE(a_budget_beyond_the_machine_is_granted_and_said) {
  Progress log;
  const MemoryGrant grant = GrantMemory(kSizes, int64_t{1} << 60, log);
  BOOST_TEST(grant.plan.fits);
  BOOST_TEST(grant.plan.budget_bytes == int64_t{1} << 60);
  const auto line = log.NextLine();
  BOOST_REQUIRE(line.has_value());
  BOOST_TEST(line->find(std::to_string(int64_t{1} << 60)) != std::string::npos);
  BOOST_TEST(line->find(std::to_string(grant.plan.usable_bytes)) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(models_reserve_while_they_are_open_and_sessions_beyond_the_budget_with_them) {
  const TemporaryFolder folder;
  const auto fixed = OpenScript(folder, 4 * kMiB, 4 * kMiB);
  BOOST_TEST(Own().bytes == 4 * kMiB);
  auto model = OpenScript(folder, 2 * kMiB, 0);
  BOOST_TEST(Own().bytes == 6 * kMiB);
  BOOST_TEST(Own().count == 2);

  const int64_t state = model->TimelineBytes(1000);
  std::vector<std::shared_ptr<Session>> sessions;
  for (int64_t i = 1; i <= 3; ++i) {
    auto session = Session::Create(model, {});
    BOOST_REQUIRE(session.ok());
    sessions.push_back(*std::move(session));
    BOOST_TEST(Own().bytes == 6 * kMiB + (i - 1) * state);  // the plan has the first
  }
  sessions.pop_back();
  BOOST_TEST(Own().bytes == 6 * kMiB + state);
  sessions.clear();
  BOOST_TEST(Own().bytes == 6 * kMiB);
  model.reset();
  BOOST_TEST(Own().bytes == 4 * kMiB);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste
