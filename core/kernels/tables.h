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
const Kernels* Avx512VbmiKernels();
const Kernels* NeonKernels();

// A table of 256 bytes is four registers. CPUs differ in whether two permutes of two of them and a
// blend are faster, or four of one with masks and a blend. The bits are the same.
enum class Permutes { kOfOneRegister, kOfTwoRegisters };
Permutes FasterPermutes();

// What avx512vbmi adds to the table of avx512, file by file.
void AddBuildTableKernel(Kernels& kernels);                    // build_table_avx512vbmi.cc
void AddTableRowKernels(Kernels& kernels, Permutes permutes);  // table_rows_avx512vbmi.cc
void AddSplitKernels(Kernels& kernels);                        // trunk_split_avx512vbmi.cc
void AddTrunkWordKernels(Kernels& kernels);                    // trunk_words_avx512vbmi.cc
void AddExpertWordKernels(Kernels& kernels);                   // expert_words_avx512vbmi.cc

// Parts of NeonKernels() in files of their own: build_table_neon.cc, table_rows_neon.cc.
void BuildTableNeon(const ExpertMatrix& w, const float* x, int64_t group, const IndexChunks& next,
                    uint8_t* table, float* scratch);
void TableRowsNeon(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, int64_t group,
                   const uint8_t* table, const IndexChunks& next, bool is_first, float* sums);
void FinishRowsNeon(const ExpertMatrix& w, int64_t row_begin, int64_t row_end, const float* sums,
                    int64_t parts, int64_t part_stride, float offset, float* y);

}  // namespace waste

#endif  // WASTE_CORE_KERNELS_TABLES_H_
