// SPDX-License-Identifier: Apache-2.0
//
// AVX-512 with VBMI and VNNI: the table of AVX-512 and what look-ups and products of bytes add. Any
// thread.

#include "kernels/tables.h"

namespace waste {

#if defined(__x86_64__)

const Kernels* Avx512VbmiKernels() {
  static const Kernels table = [] {
    Kernels kernels = *Avx512Kernels();
    kernels.isa = Isa::kAvx512Vbmi;
    AddBuildTableKernel(kernels);
    AddTableRowKernels(kernels, FasterPermutes());
    AddSplitKernels(kernels);
    AddTrunkWordKernels(kernels);
    AddExpertWordKernels(kernels);
    return kernels;
  }();
  return &table;
}

#else

const Kernels* Avx512VbmiKernels() { return nullptr; }

#endif

}  // namespace waste
