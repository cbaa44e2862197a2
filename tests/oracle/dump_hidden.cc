// SPDX-License-Identifier: Apache-2.0
//
// For the oracle: runs tokens through the forward pass and writes what every layer handed on.
//
//   dump_hidden CONTAINER TOKENS CHUNK OUT [THREADS] [ISA] [RESTORE_AT]
//
// TOKENS is raw i32, OUT raw f32: for each layer [tokens, hidden], then logits [tokens, vocab], all
// little-endian. Tokens are run CHUNK rows a step (1 to 64). After RESTORE_AT tokens the session is
// saved and a new one, loaded from that, goes on. Exit code 1 with a message on errors.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "container/container.h"
#include "kernels/kernels.h"
#include "model/forward.h"
#include "os/file.h"
#include "stream/expert_cache.h"

namespace waste {
namespace {

struct Options {
  std::string container, tokens, out;
  int64_t chunk = 1;
  int32_t threads = 1;
  Isa isa = Isa::kScalar;
  int64_t restore_at = -1;  // never
};

Result<Options> ParseOptions(int argc, char** argv) {
  if (argc < 5 || argc > 8)
    return Failure(Code::kArgument,
                   "usage: dump_hidden CONTAINER TOKENS CHUNK OUT [THREADS] [ISA] [RESTORE_AT]");
  Options options{.container = argv[1], .tokens = argv[2], .out = argv[4]};
  options.chunk = std::atoll(argv[3]);
  if (options.chunk < 1 || options.chunk > Forward::kMostRows)
    return Failure(Code::kArgument, "CHUNK is ", argv[3], ", outside 1..", Forward::kMostRows);
  if (argc > 5) options.threads = std::max(1, std::atoi(argv[5]));
  if (argc > 6) {
    bool known = false;
    for (const Isa isa : {Isa::kBest, Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kNeon}) {
      if (std::strcmp(argv[6], IsaName(isa)) != 0) continue;
      options.isa = isa;
      known = true;
    }
    if (!known) return Failure(Code::kArgument, "ISA ", argv[6], " is not known");
  }
  if (argc > 7) options.restore_at = std::atoll(argv[7]);
  return options;
}

Result<std::vector<int32_t>> ReadTokens(const std::string& path, int64_t vocab) {
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(path, int64_t{1} << 30));
  std::vector<int32_t> tokens(bytes.size() / 4);
  std::memcpy(tokens.data(), bytes.data(), tokens.size() * 4);
  for (const int32_t token : tokens)
    if (token < 0 || token >= vocab)
      return Failure(Code::kArgument, path, ": token ", token, " of ", vocab);
  return tokens;
}

// What went through the model, in file order.
struct Dump {
  std::vector<std::vector<float>> hidden;  // [layers][tokens, hidden]
  std::vector<float> logits;               // [tokens, vocab]
};

Status RunTokens(Forward& forward, const ModelConfig& config, std::span<const int32_t> tokens,
                 const Options& options, Dump& dump) {
  const int64_t count = static_cast<int64_t>(tokens.size());
  WASTE_ASSIGN(std::unique_ptr<SessionState> state, SessionState::Create(config, count));
  dump.hidden.resize(static_cast<size_t>(config.layers));
  dump.logits.resize(static_cast<size_t>(count * config.vocab));
  forward.set_hidden_observer([&](int64_t layer, std::span<const float> hidden) {
    dump.hidden[layer].insert(dump.hidden[layer].end(), hidden.begin(), hidden.end());
  });
  while (state->position() < count) {
    const int64_t begin = state->position();
    if (begin == options.restore_at) {
      std::vector<uint8_t> saved(static_cast<size_t>(state->SavedBytes()));
      state->SaveTo(saved);
      WASTE_ASSIGN(std::unique_ptr<SessionState> loaded, SessionState::Create(config, count));
      WASTE_TRY(loaded->LoadFrom(saved, begin));
      state = std::move(loaded);
    }
    const int64_t end = begin < options.restore_at ? std::min(options.restore_at, count) : count;
    const int64_t rows = std::min(options.chunk, end - begin);
    SessionRows step{state.get(), tokens.subspan(begin, rows),
                     std::span(dump.logits).subspan(begin * config.vocab, rows * config.vocab),
                     options.chunk > 1};
    WASTE_TRY(forward.Step({&step, 1}, {}));
  }
  return Status();
}

Status WriteDump(const std::string& path, const Dump& dump) {
  std::ofstream out(path, std::ios::binary);
  const auto write = [&](const std::vector<float>& values) {
    out.write(reinterpret_cast<const char*>(values.data()),
              static_cast<std::streamsize>(values.size() * 4));
  };
  for (const std::vector<float>& hidden : dump.hidden) write(hidden);
  write(dump.logits);
  out.close();
  return out ? Status() : Failure(Code::kIo, path, " cannot be written");
}

Status Run(int argc, char** argv) {
  WASTE_ASSIGN(const Options options, ParseOptions(argc, argv));
  WASTE_ASSIGN(const std::unique_ptr<Container> container,
               Container::Open(options.container, IoMode::kBuffered));
  WASTE_ASSIGN(const ModelConfig config, ParseModelConfig(container->manifest(), false));
  WASTE_ASSIGN(const std::vector<int32_t> tokens, ReadTokens(options.tokens, config.vocab));
  WASTE_TRY(container->SetExpertDims({config.moe.inner, config.expert_outer()}));
  Progress progress;
  WASTE_ASSIGN(const std::unique_ptr<Weights> weights, Weights::Load(*container, config, progress));
  WASTE_ASSIGN(const Kernels* kernels, KernelsFor(options.isa));
  WASTE_ASSIGN(const std::unique_ptr<ThreadPool> pool, ThreadPool::Create(options.threads));
  const int64_t most = std::max<int64_t>(1, config.moe.top_k);
  WASTE_ASSIGN(const std::unique_ptr<ExpertCache> experts,
               ExpertCache::Create(*container,
                                   {.slot_count = 4 * most, .max_experts = most, .verify = true}));
  WASTE_ASSIGN(const std::unique_ptr<Forward> forward,
               Forward::Create(config, *weights, *container, *kernels, *pool, *experts,
                               {.max_rows = options.chunk}));
  Dump dump;
  WASTE_TRY(RunTokens(*forward, config, tokens, options, dump));
  return WriteDump(options.out, dump);
}

}  // namespace
}  // namespace waste

int main(int argc, char** argv) {
  const waste::Status status = waste::Run(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "dump_hidden: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
