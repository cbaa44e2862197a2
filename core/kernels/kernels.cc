// SPDX-License-Identifier: Apache-2.0
//
// Chooses a table of kernels. A forced ISA is used or refused, never replaced by another one: who
// asks for AVX-512 wants to know that it runs. Any thread.

#include "kernels/kernels.h"

#include "kernels/tables.h"

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
    case Isa::kNeon:
      return NeonKernels();
    case Isa::kBest:
      break;
  }
  return nullptr;
}

const Kernels* BestTable() {
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kNeon}) {
    if (TableOf(isa) != nullptr && CpuHas(isa)) return TableOf(isa);
  }
  return ScalarKernels();
}

}  // namespace

Result<const Kernels*> KernelsFor(Isa isa) {
  if (isa == Isa::kBest) return BestTable();
  const Kernels* const table = TableOf(isa);
  if (table == nullptr) {
    return Failure(Code::kUnsupported, "this build has no kernels for instruction set ",
                   static_cast<int32_t>(isa), " (", IsaName(isa), "): ask for the best one (0)");
  }
  if (!CpuHas(isa)) {
    return Failure(Code::kUnsupported, "this machine does not have the instruction set ",
                   IsaName(isa), ": ask for the best one (0)");
  }
  return table;
}

}  // namespace waste
