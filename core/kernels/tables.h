// SPDX-License-Identifier: Apache-2.0
//
// The tables that kernels.cc chooses from, one from each kernels_<isa>.cc; for this module only. A
// table is constant and is used only on a machine that has its ISA. Null where this build has no
// such kernels. Any thread.

#ifndef WASTE_CORE_KERNELS_TABLES_H_
#define WASTE_CORE_KERNELS_TABLES_H_

#include "kernels/kernels.h"

namespace waste {

const Kernels* ScalarKernels();
const Kernels* Avx2Kernels();
const Kernels* Avx512Kernels();
const Kernels* NeonKernels();

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_TABLES_H_
