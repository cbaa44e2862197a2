// SPDX-License-Identifier: Apache-2.0
//
// How much of the caller's stack the library uses: hosts call it from coroutines, JNI threads and
// small pools. The stack of a thread is painted and looked at afterwards.

#include <pthread.h>

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "support/capi.h"

namespace waste_test {
namespace {

constexpr size_t kStackBytes = 1 << 20;
constexpr unsigned char kPaint = 0xA7;
constexpr size_t kLimit = 64 << 10;
// What pthread itself keeps at the top of a stack: thread control block and static TLS.
constexpr size_t kThreadOverhead = 8 << 10;

// Sanitizers widen every frame, so the number would say nothing about the library.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kInstrumented = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kInstrumented = true;
#else
constexpr bool kInstrumented = false;
#endif
#else
constexpr bool kInstrumented = false;
#endif

boost::test_tools::assertion_result frames_are_not_instrumented(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!kInstrumented);
  result.message() << "sanitizers widen every frame";
  return result;
}

// Bytes of a fresh thread's stack that `body` touches.
size_t StackUsed(void* (*body)(void*), void* argument) {
  void* memory = nullptr;
  BOOST_REQUIRE(posix_memalign(&memory, 4096, kStackBytes) == 0);
  std::memset(memory, kPaint, kStackBytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  BOOST_REQUIRE(pthread_attr_setstack(&attributes, memory, kStackBytes) == 0);
  pthread_t thread;
  BOOST_REQUIRE(pthread_create(&thread, &attributes, body, argument) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  const auto* bytes = static_cast<const unsigned char*>(memory);
  size_t untouched = 0;
  while (untouched < kStackBytes && bytes[untouched] == kPaint) ++untouched;
  free(memory);
  return kStackBytes - untouched;
}

void* Nothing(void*) { return nullptr; }

// Opens, asks, saves, loads, evaluates: every path of a client.
void* WholeClient(void* argument) {
  const std::string& file = *static_cast<const std::string*>(argument);
  waste_open_options options = Sized<waste_open_options>();
  options.threads = 1;  // all work on this stack
  const Model model = Open(MiniModel(), &options);
  const Session session = NewSession(model);
  BOOST_TEST(Ask(session, "What is the capital of Italy?").text == "The capital of Italy is Rome.");
  BOOST_TEST(waste_session_save(session.get(), file.c_str(), -1, nullptr) == 0);
  BOOST_TEST(waste_session_load(session.get(), file.c_str(), -1, nullptr) == 0);
  const std::vector<int32_t> tokens(100, 65);
  BOOST_TEST(waste_eval(session.get(), tokens.data(), 100, nullptr, 0, nullptr) == 0);
  return nullptr;
}

BOOST_AUTO_TEST_SUITE(stack)

BOOST_AUTO_TEST_CASE(client_uses_at_most_64_kib,
                     *boost::unit_test::precondition(frames_are_not_instrumented)) {
  const TemporaryFolder folder;
  std::string file = folder.File("session");
  BOOST_TEST(StackUsed(Nothing, nullptr) <= kThreadOverhead);
  const size_t used = StackUsed(WholeClient, &file);
  BOOST_TEST(used > kThreadOverhead);
  BOOST_TEST(used <= kLimit + kThreadOverhead);
  BOOST_TEST_MESSAGE("stack used: " << used << " bytes");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waste_test
