// SPDX-License-Identifier: Apache-2.0

#include "convert/convert.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "container/json_text.h"
#include "container/writer.h"
#include "convert/chat_table.h"
#include "convert/expert_encoder.h"
#include "convert/plan.h"
#include "convert/safetensors.h"
#include "convert/tokenizer_source.h"
#include "convert/trunk_encoder.h"
#include "convert/vector_search.h"
#include "os/file.h"
#include "os/system.h"
#include "parallel/thread_pool.h"

namespace waste {
namespace {

constexpr char kChatTemplate[] = "chat_template.jinja";
constexpr int64_t kMaxTemplateBytes = int64_t{1} << 20;

void LogLeftOut(const ConversionPlan& plan, Progress& progress) {
  if (plan.vision_tensors > 0) {
    progress.Log("left out " + std::to_string(plan.vision_tensors) +
                 " vision tensors: the container is for text only");
  }
  if (plan.extra_expert_tensors > 0) {
    progress.Log("left out " + std::to_string(plan.extra_expert_tensors) +
                 " expert tensors of layers beyond the model's " +
                 std::to_string(plan.model.layers) + " (multi-token prediction)");
  }
}

Status WriteTrunk(const ConversionPlan& plan, ThreadPool& pool, Progress& progress,
                  ContainerWriter& writer) {
  for (const auto& [name, tensor] : plan.trunk) {
    WASTE_TRY(ConvertTrunkTensor(name, tensor, pool, progress, writer));
    progress.Add(1);
  }
  return Status();
}

// "experts: relative error 15.9 % over 344064 vectors, 3 stages, beam 16; 150000 vectors/s"
void LogExperts(const ExpertError& error, int64_t micros, const ConversionPlan& plan,
                const ConvertOptions& options, Progress& progress) {
  const double seconds = static_cast<double>(micros) * 1e-6;
  char percent[32];
  std::snprintf(percent, sizeof percent, "%.1f", 100 * error.relative());
  progress.Log("experts: relative error " + std::string(percent) + " % over " +
               std::to_string(error.vectors) + " vectors, " + std::to_string(plan.codec.stages) +
               " stages, beam " + std::to_string(options.expert_beam) + "; " +
               std::to_string(static_cast<int64_t>(static_cast<double>(error.vectors) /
                                                   (seconds > 0 ? seconds : 1))) +
               " vectors/s");
}

Status WriteExperts(const ConversionPlan& plan, const ConvertOptions& options, ThreadPool& pool,
                    Progress& progress, ContainerWriter& writer) {
  if (plan.experts.empty()) return Status();
  WASTE_ASSIGN(const VectorSearch* search, VectorSearchFor(options.isa));
  const int64_t start = MonotonicMicros();
  ExpertEncoder encoder(plan, options, *search, pool, progress, writer);
  for (const auto& [layer, sources] : plan.experts) WASTE_TRY(encoder.ConvertLayer(layer));
  LogExperts(encoder.error(), MonotonicMicros() - start, plan, options, progress);
  return Status();
}

Status WriteSideFiles(const std::string& source, const ConversionPlan& plan,
                      const TokenizerSource& tokens, Progress& progress, ContainerWriter& writer) {
  WASTE_TRY(writer.AddFile("tokenizer.model", tokens.rank_file));
  WASTE_TRY(writer.AddSpecials(tokens.specials));
  WASTE_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, MakeTokenizer(tokens));
  const std::optional<nlohmann::ordered_json> chat = MakeChatTable(plan.arch, *tokenizer);
  if (chat) {
    const std::string text = PrintJsonText(*chat);
    WASTE_TRY(
        writer.AddFile("chat.json", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  } else {
    progress.Log("no chat format: the tokenizer lacks the special tokens of a known one");
  }
  const std::string template_path = JoinPath(source, kChatTemplate);
  if (!FileExists(template_path)) return Status();
  WASTE_ASSIGN(const std::vector<uint8_t> bytes, ReadWholeFile(template_path, kMaxTemplateBytes));
  return writer.AddFile(kChatTemplate, bytes);
}

}  // namespace

Status Convert(const std::string& source, const std::string& target, const ConvertOptions& options,
               Progress& progress) {
  if (FileExists(target))
    return Failure(Code::kArgument, target, ": exists already; name another folder or remove it");
  WASTE_ASSIGN(const Checkpoint checkpoint, Checkpoint::Open(source));
  WASTE_ASSIGN(const ConversionPlan plan, PlanConversion(source, checkpoint, options));
  WASTE_ASSIGN(const TokenizerSource tokens, ReadTokenizerSource(source));
  progress.SetTotal(plan.tensor_count());
  LogLeftOut(plan, progress);

  WASTE_ASSIGN(const std::unique_ptr<ThreadPool> pool, ThreadPool::Create(options.threads));
  WASTE_ASSIGN(const std::unique_ptr<ContainerWriter> writer, ContainerWriter::Create(target));
  WASTE_TRY(WriteTrunk(plan, *pool, progress, *writer));
  WASTE_TRY(WriteExperts(plan, options, *pool, progress, *writer));
  WASTE_TRY(WriteSideFiles(source, plan, tokens, progress, *writer));
  WASTE_TRY(progress.CheckCancelled());
  return writer->Finish(plan.arch, plan.tensor_prefix, plan.config);
}

}  // namespace waste
