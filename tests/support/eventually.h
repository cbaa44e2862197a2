// SPDX-License-Identifier: Apache-2.0
//
// Waiting for what another thread brings about. It polls: how long that takes depends on the load
// of the machine, so the limit is far beyond what is expected.

#ifndef WASTE_TESTS_SUPPORT_EVENTUALLY_H_
#define WASTE_TESTS_SUPPORT_EVENTUALLY_H_

#include <chrono>
#include <functional>
#include <thread>

namespace waste {

// Whether `holds` becomes true within 20 seconds.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

}  // namespace waste

#endif  // WASTE_TESTS_SUPPORT_EVENTUALLY_H_
