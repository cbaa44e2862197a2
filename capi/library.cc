// SPDX-License-Identifier: Apache-2.0
//
// What belongs to no object: versions, defaults, free and cancel; and the layout of every public
// struct, locked.

#include <cstddef>

#include "boundary.h"
#include "handle.h"

namespace {

// The numbers of ABI 0 on a 64-bit machine. A change here is a change of the ABI.
#define WASTE_LAYOUT(type, size, last, last_offset)                              \
  static_assert(sizeof(type) == (size) && offsetof(type, last) == (last_offset), \
                "the layout of " #type " has changed")
WASTE_LAYOUT(waste_error, 520, message, 16);
WASTE_LAYOUT(waste_open_options, 56, cpu_list, 48);
WASTE_LAYOUT(waste_session_options, 16, context, 8);
WASTE_LAYOUT(waste_generation_options, 88, reserved, 84);
WASTE_LAYOUT(waste_memory_plan, 88, reserved_bytes, 80);
WASTE_LAYOUT(waste_info, 112, reserved, 108);
WASTE_LAYOUT(waste_stats, 136, read_stalls, 128);
WASTE_LAYOUT(waste_token, 48, reserved, 44);
WASTE_LAYOUT(waste_convert_options, 32, quantise_from, 24);
WASTE_LAYOUT(waste_progress, 24, total, 16);
WASTE_LAYOUT(waste_synthesis_options, 24, seed, 16);
#undef WASTE_LAYOUT

template <typename T>
void InitStruct(T *options, int64_t struct_size) {
  if (options == nullptr || struct_size < static_cast<int64_t>(sizeof(uint32_t)) ||
      struct_size > INT64_C(1) << 16)
    return;
  std::memset(options, 0, static_cast<size_t>(struct_size));
  options->struct_size = static_cast<uint32_t>(struct_size);
}

}  // namespace

extern "C" {

int32_t waste_abi_version(void) { return WASTE_ABI_VERSION; }

int64_t waste_version(char *buffer, int64_t buffer_size) {
  return waste::Guard(nullptr, [&]() -> waste::Result<int64_t> {
    WASTE_ASSIGN(const auto out, waste::Array(buffer, buffer_size, "buffer"));
    return waste::CopyText(WASTE_VERSION, out);
  });
}

int64_t waste_abi_sizes(int32_t *sizes, int64_t size_count) {
  return waste::Guard(nullptr, [&]() -> waste::Result<int64_t> {
    constexpr size_t kSizes[] = {sizeof(waste_error),
                                 sizeof(waste_open_options),
                                 sizeof(waste_session_options),
                                 sizeof(waste_generation_options),
                                 sizeof(waste_memory_plan),
                                 sizeof(waste_info),
                                 sizeof(waste_stats),
                                 sizeof(waste_token),
                                 sizeof(waste_convert_options),
                                 sizeof(waste_progress),
                                 sizeof(waste_synthesis_options)};
    WASTE_ASSIGN(const auto out, waste::Array(sizes, size_count, "sizes"));
    for (size_t i = 0; i < std::min(out.size(), std::size(kSizes)); ++i)
      out[i] = static_cast<int32_t>(kSizes[i]);
    return static_cast<int64_t>(std::size(kSizes));
  });
}

void waste_open_options_init(waste_open_options *options, int64_t struct_size) {
  InitStruct(options, struct_size);
}
void waste_session_options_init(waste_session_options *options, int64_t struct_size) {
  InitStruct(options, struct_size);
}
void waste_generation_options_init(waste_generation_options *options, int64_t struct_size) {
  InitStruct(options, struct_size);
}
void waste_convert_options_init(waste_convert_options *options, int64_t struct_size) {
  InitStruct(options, struct_size);
}
void waste_synthesis_options_init(waste_synthesis_options *options, int64_t struct_size) {
  InitStruct(options, struct_size);
}

void waste_free(void *object) {
  if (object == nullptr) return;
  waste_cancel(object);
  if (auto *const freed = static_cast<waste::Object *>(object);
      freed->kind() == waste::Kind::kSession)
    static_cast<waste_session *>(freed)->stop.Forever();
  waste::Guard(nullptr, [&] {
    switch (static_cast<waste::Object *>(object)->kind()) {
      case waste::Kind::kModel:
      case waste::Kind::kSession:
      case waste::Kind::kGeneration:
      case waste::Kind::kJob:
        static_cast<waste::Object *>(object)->Leave();
        break;
      case waste::Kind::kFreed:
        break;
    }
    return waste::Status();
  });
}

void waste_cancel(void *object) {
  if (object == nullptr) return;
  const waste::Kind kind = static_cast<waste::Object *>(object)->kind();
  if (kind == waste::Kind::kGeneration) {
    static_cast<waste_generation *>(static_cast<waste::Object *>(object))->generation->Cancel();
  } else if (kind == waste::Kind::kJob) {
    static_cast<waste_job *>(static_cast<waste::Object *>(object))->job->Cancel();
  } else if (kind == waste::Kind::kSession) {
    static_cast<waste_session *>(static_cast<waste::Object *>(object))->stop.Current();
  }
}

}  // extern "C"
