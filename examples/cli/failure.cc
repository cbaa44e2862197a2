// SPDX-License-Identifier: Apache-2.0

#include "failure.h"

#include <nlohmann/json.hpp>

#include "output.h"
#include "sizes.h"

namespace waste_cli {
namespace {

const char* NameOf(waste_status status) {
  switch (status) {
    case WASTE_ERR_IO:
      return "IO";
    case WASTE_ERR_FORMAT:
      return "FORMAT";
    case WASTE_ERR_CORRUPT:
      return "CORRUPT";
    case WASTE_ERR_UNSUPPORTED:
      return "UNSUPPORTED";
    case WASTE_ERR_ARGUMENT:
      return "ARGUMENT";
    case WASTE_ERR_RAM_BUDGET:
      return "RAM_BUDGET";
    case WASTE_ERR_NO_MEMORY:
      return "NO_MEMORY";
    case WASTE_ERR_CONTEXT_FULL:
      return "CONTEXT_FULL";
    case WASTE_ERR_BUSY:
      return "BUSY";
    case WASTE_ERR_CANCELLED:
      return "CANCELLED";
    case WASTE_ERR_VERSION:
      return "VERSION";
    default:
      return "INTERNAL";
  }
}

}  // namespace

Failure LibraryFailure(const waste_error& error, waste_status status) {
  Failure failure(NameOf(status), error.message[0] != 0 ? error.message : "no reason given",
                  status == WASTE_ERR_CANCELLED ? kExitInterrupted : kExitFailure);
  failure.needed_bytes = error.needed_bytes;
  return failure;
}

int Report(const Failure& failure, bool json) {
  if (json) {
    nlohmann::ordered_json object = {{"code", failure.code_name}, {"message", failure.what()}};
    if (failure.code_name == "RAM_BUDGET") object["needed_bytes"] = failure.needed_bytes;
    WriteJson({{"error", std::move(object)}});
    return failure.exit_code;
  }
  if (failure.code_name == "CANCELLED") {
    WriteNote("interrupted");
    return failure.exit_code;
  }
  WriteNote(std::string("error: ") + failure.what());
  if (failure.code_name == "RAM_BUDGET")
    WriteNote("hint: --budget " + std::to_string(failure.needed_bytes) + " (" +
              SizeText(failure.needed_bytes) + ") is the least that would do");
  if (failure.code_name == "INTERNAL") WriteNote("this is a bug of libwaste: please report it");
  return failure.exit_code;
}

}  // namespace waste_cli
