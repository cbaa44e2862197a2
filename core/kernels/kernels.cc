// SPDX-License-Identifier: Apache-2.0
//
// Chooses a table of kernels. A forced ISA is used or refused, never replaced by another one: who
// asks for AVX-512 wants to know that it runs. Any thread.

#include "kernels/kernels.h"

#include <string>

#include "kernels/tables.h"
#if defined(WASTE_CHECK_KERNELS)
#include "kernels/kernels_checked.h"
#endif

namespace waste {
namespace {

const Kernels* TableOf(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return ScalarKernels();
    case Isa::kAvx2:
      return Avx2Kernels();
    case Isa::kAvx512:
      return Avx512Kernels();
    case Isa::kAvx512Vbmi:
      return Avx512VbmiKernels();
    case Isa::kNeon:
      return NeonKernels();
    case Isa::kBest:
      break;
  }
  return nullptr;
}

constexpr Isa kWidestFirst[] = {Isa::kAvx512Vbmi, Isa::kAvx512, Isa::kAvx2, Isa::kNeon,
                                Isa::kScalar};

bool IsUsable(Isa isa) { return TableOf(isa) != nullptr && CpuHas(isa); }

Isa BestIsa() {
  for (const Isa isa : kWidestFirst) {
    if (IsUsable(isa)) return isa;
  }
  return Isa::kScalar;
}

// "avx512, avx2, scalar"
std::string UsableNames() {
  std::string names;
  for (const Isa isa : kWidestFirst) {
    if (IsUsable(isa)) names += (names.empty() ? "" : ", ") + std::string(IsaName(isa));
  }
  return names;
}

}  // namespace

Result<const Kernels*> KernelsFor(Isa isa) {
  if (isa == Isa::kBest) isa = BestIsa();
  const Kernels* const table = TableOf(isa);
  if (table == nullptr) {
    return Failure(Code::kUnsupported, "this build has no kernels for instruction set ",
                   static_cast<int32_t>(isa), " (", IsaName(isa), "): it can use ", UsableNames(),
                   " here, and takes the first of them if none is asked for (0)");
  }
  if (!CpuHas(isa)) {
    return Failure(Code::kUnsupported, "this machine does not have the instruction set ",
                   IsaName(isa), ": it has ", UsableNames(),
                   ", and the first of them is used if none is asked for (0)");
  }
#if defined(WASTE_CHECK_KERNELS)
  return CheckedKernels(table);
#else
  return table;
#endif
}

}  // namespace waste
