// SPDX-License-Identifier: Apache-2.0
//
// The kernels one by one, and an MLA layer, on the shapes of Kimi-Linear 48B, each beside the limit
// that binds it, measured in the same run (bench_case.h).
//   kernel_bench [--isa NAME] [Google Benchmark's options, see --help]

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "bench_case.h"
#include "os/system.h"

namespace waste {
namespace {

// Into the context of the results, where a script finds them.
void TellLimits() {
  const auto tell = [](const char* name, double value) {
    benchmark::AddCustomContext(name, std::to_string(value / 1e9));
  };
  benchmark::AddCustomContext("isa", IsaName(kernels->isa));
  tell("memory_gb_s", limits.memory_bytes_s);
  tell("memory_all_gb_s", limits.memory_all_bytes_s);
  tell("fma_gflops", limits.fma_flops);
  tell("bf16_gflops", limits.bf16_flops);
  tell("word_gops", limits.word_ops);
  tell("lookups_g_s", limits.lookups_s);
}

// What Google Benchmark left of the arguments: nothing, or --isa and a name.
std::optional<Isa> IsaAskedFor(int argc, char** argv) {
  if (argc == 1) return Isa::kBest;
  if (argc != 3 || std::strcmp(argv[1], "--isa") != 0) return std::nullopt;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vbmi, Isa::kNeon})
    if (std::strcmp(argv[2], IsaName(isa)) == 0) return isa;
  return std::nullopt;
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::optional<Isa> isa = IsaAskedFor(argc, argv);
  if (!isa) {
    std::fprintf(stderr,
                 "usage: kernel_bench [--isa scalar|avx2|avx512|avx512vbmi|neon] [--help]\n");
    return 1;
  }
  const auto table = KernelsFor(*isa);
  if (!table.ok()) {
    std::fprintf(stderr, "%s\n", table.status().message().c_str());
    return 1;
  }
  kernels = *table;
  const int32_t threads = GrantedCores();
  limits = MeasureLimits(threads, kernels->isa);
  TellLimits();
  RegisterTrunk(threads);
  RegisterExperts(threads);
  RegisterLookUp(threads);
  RegisterDelta();
  RegisterMla(threads);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace waste

int main(int argc, char** argv) { return waste::Main(argc, argv); }
