// SPDX-License-Identifier: Apache-2.0
//
// `waste verify`: reads every byte of a container and checks all that the format lets one check:
// record headers, crc, padding, scales, trunk values that are not finite, codebooks. Every copy of
// a bank is read. The trunk has no checksum in v0; that is said in a log line. One thread; the
// Progress may be read from others.

#ifndef WASTE_CORE_CONTAINER_VERIFY_H_
#define WASTE_CORE_CONTAINER_VERIFY_H_

#include <string>

#include "base/progress.h"
#include "base/status.h"
#include "container/container.h"

namespace waste {

// `container` has had SetExpertDims. Progress counts bytes, those of copies too. Errors: the first
// damage found, named; kCancelled.
Status VerifyContainer(const Container& container, Progress& progress);

}  // namespace waste

#endif  // WASTE_CORE_CONTAINER_VERIFY_H_
