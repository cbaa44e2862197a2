// SPDX-License-Identifier: Apache-2.0
//
// Windows signals an object while memory is low, which is late; what is available is sampled beside
// it. Written by Microsoft's documentation; the tests of this tree do not run it.

#if defined(_WIN32)

#include <windows.h>

#include <algorithm>

#include "os/memory_pressure.h"

namespace waste {
namespace {

constexpr int64_t kPeriodMs = 100;

class WindowsMemoryPressure : public MemoryPressure {
 public:
  WindowsMemoryPressure(HANDLE stop, HANDLE low) : stop_(stop), low_(low) {}
  WindowsMemoryPressure(const WindowsMemoryPressure&) = delete;
  WindowsMemoryPressure& operator=(const WindowsMemoryPressure&) = delete;
  ~WindowsMemoryPressure() override {
    CloseHandle(low_);
    CloseHandle(stop_);
  }

  PressureLevel Wait(int64_t timeout_ms) override {
    // While memory stays low its object stays signalled, and would end every wait at once.
    const HANDLE watched[] = {stop_, low_};
    const DWORD count = IsLow() ? 1 : 2;
    WaitForMultipleObjects(count, watched, FALSE,
                           static_cast<DWORD>(std::min(kPeriodMs, timeout_ms)));
    if (IsLow()) return PressureLevel::kCritical;
    MEMORYSTATUSEX status = {};
    status.dwLength = sizeof status;
    if (GlobalMemoryStatusEx(&status) == 0) return PressureLevel::kNone;
    return LevelOfRoom(static_cast<int64_t>(status.ullTotalPhys),
                       static_cast<int64_t>(status.ullAvailPhys));
  }

  void Stop() override { SetEvent(stop_); }

 private:
  bool IsLow() const {
    BOOL low = FALSE;
    return QueryMemoryResourceNotification(low_, &low) != 0 && low != FALSE;
  }

  const HANDLE stop_;  // stays signalled once it is
  const HANDLE low_;
};

}  // namespace

std::unique_ptr<MemoryPressure> SystemMemoryPressure() {
  const HANDLE stop = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  if (stop == nullptr) return nullptr;
  const HANDLE low = CreateMemoryResourceNotification(LowMemoryResourceNotification);
  if (low != nullptr) return std::make_unique<WindowsMemoryPressure>(stop, low);
  CloseHandle(stop);
  return nullptr;
}

}  // namespace waste

#endif  // defined(_WIN32)
