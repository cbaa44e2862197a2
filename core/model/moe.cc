// SPDX-License-Identifier: Apache-2.0

#include "model/moe.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/primitives.h"

namespace waste {

void ChooseExperts(const MoeConfig& moe, const float* scores, const float* bias, int32_t* experts,
                   float* weights) {
  const auto key = [&](int64_t e) { return bias == nullptr ? scores[e] : scores[e] + bias[e]; };
  int64_t held = 0;  // the best so far, largest first; `weights` has their keys
  for (int64_t e = 0; e < moe.experts; ++e) {
    const float value = key(e);
    if (held == moe.top_k && !(value > weights[held - 1])) continue;
    int64_t at = held < moe.top_k ? held++ : held - 1;
    for (; at > 0 && value > weights[at - 1]; --at) {  // equal ones stay before it
      weights[at] = weights[at - 1];
      experts[at] = experts[at - 1];
    }
    weights[at] = value;
    experts[at] = static_cast<int32_t>(e);
  }
  float sum = 0;
  for (int64_t j = 0; j < moe.top_k; ++j) {
    weights[j] = scores[experts[j]];
    sum += weights[j];
  }
  const float divisor = moe.renormalise && moe.top_k > 1 ? sum + 1e-20f : 1.0f;
  for (int64_t j = 0; j < moe.top_k; ++j) weights[j] = weights[j] / divisor * moe.scale;
}

namespace {

// Enough to fill a tile of every expert; more for steps so long that experts have many rows each.
int64_t SlotCount(const ModelConfig& config, int64_t rows) {
  constexpr int64_t kFewSlots = 256;
  return std::min(rows * config.moe.top_k, std::max(kFewSlots, rows / 4));
}

}  // namespace

MoeScratch MoeScratch::Plan(Arena& arena, const ModelConfig& config, const ExpertPlan& plan,
                            int64_t rows) {
  const MoeConfig& moe = config.moe;
  const int64_t pairs = rows * moe.top_k, slots = SlotCount(config, rows);
  return {.slots = slots,
          .scores = arena.Floats(rows * moe.experts),
          .chosen = arena.Ints(pairs),
          .weights = arena.Floats(pairs),
          .first = arena.Ints(moe.experts + 1),
          .pair_row = arena.Ints(pairs),
          .pair_weight = arena.Floats(pairs),
          .wanted = arena.Ints(moe.experts),
          .guess = arena.Ints(moe.top_k),
          .guess_keys = arena.Floats(moe.top_k),
          .latent = arena.Floats(rows * moe.latent),
          .y = arena.Floats(rows * moe.latent),
          .up = arena.Floats(moe.latent > 0 ? std::min(rows, kTileRows) * config.hidden : 0),
          .ffn = FfnScratch::Plan(arena, config, rows),
          .experts = ExpertScratch::Plan(arena, config, plan, slots)};
}

int64_t MoeScratch::ThreadBytes(const ModelConfig& config, const ExpertPlan& plan, int64_t rows) {
  return ExpertScratch::ThreadBytes(config, plan, SlotCount(config, rows));
}

// Some of the wanted experts, whose pairs fit the slots and whose records fit one fetch; or one
// expert that has more pairs than slots.
struct Moe::Group {
  std::span<const int32_t> experts;
  int64_t first_pair;  // of the first expert; its slot is 0
  int64_t pairs;
};

// One run of a layer.
struct Moe::Layer {
  int32_t number;
  const MoeWeights& w;
  const MoeWeights* next;
  Rows rows;  // [rows, hidden]
  Rows z;     // [rows, outer]: what experts see
  int64_t first_table_row;
  const std::function<bool()>& stop;
  float* y;    // [rows, outer]: the weighted sum of the experts
  float* out;  // [rows, hidden]
};

Moe::Moe(Compute& compute, const ModelConfig& config, const ExpertPlan& plan, ExpertSource& source,
         const MoeScratch& scratch)
    : compute_(compute),
      config_(config),
      source_(source),
      s_(scratch),
      tables_(plan.tables),
      experts_(compute, config, plan, scratch.experts) {
  WASTE_CHECK(config.moe.experts == 0 || source.max_experts() >= 1);
  tiles_.reserve(static_cast<size_t>(config.moe.experts));
}

Status Moe::Run(int64_t layer, const MoeWeights& w, const MoeWeights* next, Rows rows,
                const std::function<bool()>& stop, float* out) {
  const MoeConfig& moe = config_.moe;
  Route(w, rows);

  const bool latent = moe.latent > 0;
  const Layer run{.number = static_cast<int32_t>(layer),
                  .w = w,
                  .next = next,
                  .rows = rows,
                  .z = latent ? rows.At(s_.latent, moe.latent) : rows,
                  .first_table_row = tables_ ? rows.prompts : rows.count,
                  .stop = stop,
                  .y = latent ? s_.y : out,
                  .out = out};
  experts_.ForgetTables();
  if (latent) std::fill_n(s_.y, rows.count * moe.latent, 0.0f);
  if (moe.shared_experts == 0) std::fill_n(out, rows.count * config_.hidden, 0.0f);
  const int64_t wanted_count = SortPairs(rows.count);
  Group group = NextGroup(0, wanted_count);
  for (int64_t end = std::ssize(group.experts); !group.experts.empty();) {
    const Group after = NextGroup(end, wanted_count);
    WASTE_TRY(RunGroup(run, group, after));
    end += std::ssize(after.experts);
    group = after;
  }
  if (latent) Finish(run);
  return Status();
}

void Moe::Route(const MoeWeights& w, Rows rows) {
  const MoeConfig& moe = config_.moe;
  const Projection of_x[] = {{&w.router, s_.scores, moe.experts},
                             {&w.latent_down, s_.latent, moe.latent}};
  compute_.Project(std::span(of_x).first(moe.latent > 0 ? 2 : 1), rows);
  compute_.Parallel(rows.count, 16 * moe.experts, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* scores = s_.scores + r * moe.experts;
      compute_.kernels.sigmoid(scores, moe.experts, scores);
      ChooseExperts(moe, scores, w.bias, s_.chosen + r * moe.top_k, s_.weights + r * moe.top_k);
    }
  });
}

// Sorts the pairs by expert, then row, and lists the experts that have any.
int64_t Moe::SortPairs(int64_t rows) {
  const int64_t experts = config_.moe.experts, top_k = config_.moe.top_k;
  std::fill_n(s_.first, experts + 1, 0);
  for (int64_t i = 0; i < rows * top_k; ++i) ++s_.first[s_.chosen[i] + 1];
  int64_t wanted_count = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (s_.first[e + 1] > 0) s_.wanted[wanted_count++] = static_cast<int32_t>(e);
    s_.first[e + 1] += s_.first[e];
  }
  for (int64_t i = 0; i < rows * top_k; ++i) {
    const int32_t at = s_.first[s_.chosen[i]]++;
    s_.pair_row[at] = static_cast<int32_t>(i / top_k);
    s_.pair_weight[at] = s_.weights[i];
  }
  // Each `first` has moved to where the next expert's was.
  for (int64_t e = experts; e > 0; --e) s_.first[e] = s_.first[e - 1];
  s_.first[0] = 0;
  return wanted_count;
}

// The wanted experts from `begin` on; none at the end.
Moe::Group Moe::NextGroup(int64_t begin, int64_t wanted_count) const {
  if (begin == wanted_count) return {};
  const int64_t first_pair = s_.first[s_.wanted[begin]];
  int64_t end = begin, pairs = 0;
  while (end < wanted_count && end - begin < source_.max_experts()) {
    const int64_t with_next = s_.first[s_.wanted[end] + 1] - first_pair;
    if (end > begin && with_next > s_.slots) break;
    pairs = with_next;
    ++end;
  }
  return {{s_.wanted + begin, static_cast<size_t>(end - begin)}, first_pair, pairs};
}

Status Moe::RunGroup(const Layer& layer, const Group& group, const Group& next) {
  const bool fits = group.pairs <= s_.slots;
  if (fits) Gather(layer, group.first_pair, group.pairs);
  // One reference is what std::function holds without allocating.
  struct State {
    Moe& moe;
    const Layer& layer;
    const Group& group;
    const Group& next;
    bool is_due = true;
    int64_t used = 0;
  } state{*this, layer, group, next};
  const ExpertSource::Use use = [&state](std::span<const ArrivedExpert> arrived) {
    if (std::exchange(state.is_due, false)) state.moe.Begin(state.layer, state.group, state.next);
    state.moe.UseArrived(state.layer, state.group, arrived);
    state.used += static_cast<int64_t>(arrived.size());
  };
  WASTE_TRY(source_.Fetch(layer.number, group.experts, layer.stop, use));
  WASTE_CHECK(state.used == static_cast<int64_t>(group.experts.size()));
  if (fits) Sum(layer, group.first_pair, group.pairs);
  return Status();
}

// Once a group's reads are under way. The shared experts need no read, so they run behind the
// layer's first ones.
void Moe::Begin(const Layer& layer, const Group& group, const Group& next) {
  LookAhead(layer, next);
  if (group.first_pair == 0 && config_.moe.shared_experts > 0)
    RunFfn(compute_, config_, layer.w.shared, s_.ffn, layer.rows, layer.out);
}

// What the next group wants is known. What the next layer wants is guessed: by many rows, most of
// its experts; by a single one, what its router says of this layer's input, but for the last ranks,
// which are wrong too often to be worth a read.
void Moe::LookAhead(const Layer& layer, const Group& next) {
  constexpr int64_t kMany = 4;  // pairs for each expert there is
  const MoeConfig& moe = config_.moe;
  const int64_t most = std::min(source_.max_expected(), moe.top_k);
  if (most == 0) return;
  if (!next.experts.empty())
    return source_.Expect(
        layer.number,
        next.experts.first(static_cast<size_t>(std::min(most, std::ssize(next.experts)))));
  if (layer.next == nullptr) return;
  int64_t count = most;
  if (layer.rows.count * moe.top_k >= kMany * moe.experts) {
    for (int64_t i = 0; i < count; ++i) s_.guess[i] = static_cast<int32_t>(i);
  } else if (layer.rows.count == 1) {
    count = std::min(most, CeilDivide(moe.top_k * 3, 4));
    // Only their order matters, so scores need no sigmoid where there is no bias to add.
    const Projection of_x[] = {{&layer.next->router, s_.scores, moe.experts}};
    compute_.Project(of_x, layer.rows);
    if (layer.next->bias != nullptr) compute_.kernels.sigmoid(s_.scores, moe.experts, s_.scores);
    ChooseExperts(moe, s_.scores, layer.next->bias, s_.guess, s_.guess_keys);
  } else {
    return;
  }
  source_.Expect(layer.number + 1, {s_.guess, static_cast<size_t>(count)});
}

// Pairs [first_pair, first_pair + pairs) of one expert, in slots from `slot` on. Rows that are
// looked up are the step's last ones, and an expert's pairs are sorted by row.
ExpertTile Moe::TileOf(const Layer& layer, const ArrivedExpert& one, int64_t first_pair,
                       int64_t pairs, int64_t slot) const {
  const int32_t* const rows = s_.pair_row + first_pair;
  const int32_t* const looked_up =
      std::lower_bound(rows, rows + pairs, static_cast<int32_t>(layer.first_table_row));
  return {&one.record, slot, pairs, rows + pairs - looked_up, looked_up};
}

void Moe::UseArrived(const Layer& layer, const Group& group,
                     std::span<const ArrivedExpert> arrived) {
  if (arrived.empty()) return;
  if (group.pairs > s_.slots) return UseInParts(layer, group, arrived.front());
  tiles_.clear();
  for (const ArrivedExpert& one : arrived) {
    const int32_t expert = group.experts[static_cast<size_t>(one.index)];
    const int64_t first = s_.first[expert];
    tiles_.push_back(
        TileOf(layer, one, first, s_.first[expert + 1] - first, first - group.first_pair));
  }
  RunTiles(layer);
}

// One expert with more pairs than slots.
void Moe::UseInParts(const Layer& layer, const Group& group, const ArrivedExpert& one) {
  for (int64_t done = 0; done < group.pairs; done += s_.slots) {
    const int64_t first = group.first_pair + done;
    const int64_t pairs = std::min(group.pairs - done, s_.slots);
    Gather(layer, first, pairs);
    tiles_.assign(1, TileOf(layer, one, first, pairs, 0));
    RunTiles(layer);
    Sum(layer, first, pairs);
  }
}

void Moe::RunTiles(const Layer& layer) {
  const int64_t begin = layer.first_table_row;
  experts_.Run(tiles_, layer.z.Part(begin, layer.z.count - begin), begin);
}

void Moe::Gather(const Layer& layer, int64_t first_pair, int64_t pairs) {
  experts_.Gather(layer.z, {s_.pair_row + first_pair, static_cast<size_t>(pairs)},
                  layer.first_table_row);
}

// y += weight down, a piece being 64 outputs of all pairs: so each output is summed by one thread,
// in the experts' order.
void Moe::Sum(const Layer& layer, int64_t first_pair, int64_t pairs) {
  const int64_t outer = config_.expert_outer();
  const int64_t blocks = CeilDivide(outer, kIndexBlock);
  compute_.Parallel(blocks, kIndexBlock * pairs, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t r = block * kIndexBlock, n = std::min(outer - r, kIndexBlock);
      for (int64_t slot = 0; slot < pairs; ++slot)
        compute_.kernels.axpy(s_.pair_weight[first_pair + slot], s_.experts.down + slot * outer + r,
                              layer.y + s_.pair_row[first_pair + slot] * outer + r, n);
    }
  });
}

// out += W_up RMSNorm(y), some rows at a time.
void Moe::Finish(const Layer& layer) {
  const int64_t latent = config_.moe.latent, hidden = config_.hidden;
  const Vector norm = layer.w.latent_norm;
  for (int64_t r = 0; norm != nullptr && r < layer.rows.count; ++r)
    RmsNorm(compute_.kernels, layer.y + r * latent, norm, config_.norm_eps, latent,
            layer.y + r * latent);
  const Rows sums = layer.rows.At(layer.y, latent);
  for (int64_t row = 0; row < sums.count; row += kTileRows) {
    const int64_t count = std::min(sums.count - row, kTileRows);
    const Projection up[] = {{&layer.w.latent_up, s_.up, hidden}};
    compute_.Project(up, sums.Part(row, count));
    compute_.kernels.axpy(1.0f, s_.up, layer.out + row * hidden, count * hidden);
  }
}

}  // namespace waste
