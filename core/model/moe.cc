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

MoeScratch MoeScratch::Plan(Arena& arena, const ModelConfig& config, int64_t rows) {
  const MoeConfig& moe = config.moe;
  const int64_t pairs = rows * moe.top_k;
  const int64_t slots = std::min(pairs, std::max(kMaxSlots, rows));
  return {.scores = arena.Floats(rows * moe.experts),
          .chosen = arena.Ints(pairs),
          .weights = arena.Floats(pairs),
          .first = arena.Ints(moe.experts + 1),
          .pair_row = arena.Ints(pairs),
          .pair_weight = arena.Floats(pairs),
          .wanted = arena.Ints(moe.experts),
          .guess = arena.Ints(moe.top_k),
          .guess_keys = arena.Floats(moe.top_k),
          .latent = arena.Floats(rows * moe.latent),
          .gathered = arena.Floats(slots * config.expert_outer()),
          .inner = arena.Floats(slots * moe.inner),
          .down = arena.Floats(slots * config.expert_outer()),
          .y = arena.Floats(rows * config.expert_outer()),
          .shared_out = arena.Floats(moe.shared_experts > 0 ? rows * config.hidden : 0),
          .ffn = FfnScratch::Plan(arena, config, rows)};
}

int64_t MoeScratch::ThreadBytes(const ModelConfig& config, int64_t rows) {
  Arena arena;
  arena.Floats(kIndexBlock * std::max(config.moe.inner, config.expert_outer()));
  arena.Floats(rows * kIndexBlock);  // of up
  return arena.peak_bytes();
}

// Some of the wanted experts, whose pairs fit the slots and whose records fit one fetch.
struct Moe::Group {
  std::span<const int32_t> experts;
  int64_t first_pair;  // of the first expert; its slot is 0
  int64_t pairs;
  int64_t rows_max;  // of an expert

  int64_t SlotOf(const int32_t* first, int32_t expert) const { return first[expert] - first_pair; }
};

// What a layer's fetches share. The shared experts need no read, so they run behind the first one.
struct Moe::Fetching {
  int32_t layer;
  const MoeWeights& w;
  const MoeWeights* next;
  Rows x;
  const std::function<bool()>& stop;
};

Moe::Moe(Compute& compute, const ModelConfig& config, ExpertSource& source,
         const MoeScratch& scratch)
    : compute_(compute), config_(config), source_(source), s_(scratch) {
  WASTE_CHECK(config.moe.experts == 0 || source.max_experts() >= 1);
}

Status Moe::Run(int64_t layer, const MoeWeights& w, const MoeWeights* next, Rows x,
                const std::function<bool()>& stop, float* out) {
  const MoeConfig& moe = config_.moe;
  const Projection of_x[] = {{&w.router, s_.scores, moe.experts},
                             {&w.latent_down, s_.latent, moe.latent}};
  compute_.Project(std::span(of_x).first(moe.latent > 0 ? 2 : 1), x);
  Route(w, x.count);

  const Rows z = moe.latent > 0 ? Rows{s_.latent, moe.latent, x.count} : x;
  std::fill_n(s_.y, x.count * config_.expert_outer(), 0.0f);
  const int64_t wanted_count = SortPairs(x.count);
  const Fetching fetching{static_cast<int32_t>(layer), w, next, x, stop};
  Group group = NextGroup(0, wanted_count);
  for (int64_t end = std::ssize(group.experts); !group.experts.empty();) {
    const Group after = NextGroup(end, wanted_count);
    WASTE_TRY(RunGroup(fetching, group, after, z));
    end += std::ssize(after.experts);
    group = after;
  }
  Finish(w, x, out);
  return Status();
}

void Moe::Route(const MoeWeights& w, int64_t rows) {
  const MoeConfig& moe = config_.moe;
  compute_.Parallel(rows, 16 * moe.experts, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* scores = s_.scores + r * moe.experts;
      for (int64_t e = 0; e < moe.experts; ++e) scores[e] = Sigmoid(scores[e]);
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
  int64_t end = begin, pairs = 0, rows_max = 0;
  while (end < wanted_count && end - begin < source_.max_experts()) {
    const int64_t with_next = s_.first[s_.wanted[end] + 1] - first_pair;
    if (end > begin && with_next > MoeScratch::kMaxSlots) break;
    rows_max = std::max(rows_max, with_next - pairs);
    pairs = with_next;
    ++end;
  }
  return {{s_.wanted + begin, static_cast<size_t>(end - begin)}, first_pair, pairs, rows_max};
}

Status Moe::RunGroup(const Fetching& fetching, const Group& group, const Group& next, Rows z) {
  const int64_t outer = config_.expert_outer();
  compute_.Parallel(group.pairs, outer, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot)
      std::copy_n(z.row(s_.pair_row[group.first_pair + slot]), outer, s_.gathered + slot * outer);
  });
  // One reference is what std::function holds without allocating.
  struct State {
    Moe& moe;
    const Fetching& fetching;
    const Group& group;
    const Group& next;
    bool is_due = true;
    int64_t used = 0;
  } state{*this, fetching, group, next};
  const ExpertSource::Use use = [&state](std::span<const ArrivedExpert> arrived) {
    Moe& moe = state.moe;
    if (std::exchange(state.is_due, false)) {
      moe.LookAhead(state.fetching, state.next);
      if (state.group.first_pair == 0 && moe.config_.moe.shared_experts > 0)
        RunFfn(moe.compute_, moe.config_, state.fetching.w.shared, moe.s_.ffn, state.fetching.x,
               moe.s_.shared_out);
    }
    moe.UseArrived(state.group, arrived);
    state.used += static_cast<int64_t>(arrived.size());
  };
  WASTE_TRY(source_.Fetch(fetching.layer, group.experts, fetching.stop, use));
  WASTE_CHECK(state.used == static_cast<int64_t>(group.experts.size()));
  Sum(group);
  return Status();
}

// What the next group wants is known; what the next layer wants is guessed, and the last ranks of a
// guess are wrong too often to be worth a read.
void Moe::LookAhead(const Fetching& fetching, const Group& next) {
  const MoeConfig& moe = config_.moe;
  const int64_t most = source_.max_expected();
  if (most == 0) return;
  if (!next.experts.empty())
    return source_.Expect(
        fetching.layer,
        next.experts.first(static_cast<size_t>(std::min(most, std::ssize(next.experts)))));
  const int64_t count = std::min(most, CeilDivide(moe.top_k * 3, 4));
  if (fetching.next == nullptr || fetching.x.count > 1) return;
  // Only their order matters, so scores need no sigmoid where there is no bias to add.
  const Projection of_x[] = {{&fetching.next->router, s_.scores, moe.experts}};
  compute_.Project(of_x, fetching.x);
  if (fetching.next->bias != nullptr)
    for (int64_t e = 0; e < moe.experts; ++e) s_.scores[e] = Sigmoid(s_.scores[e]);
  ChooseExperts(moe, s_.scores, fetching.next->bias, s_.guess, s_.guess_keys);
  source_.Expect(fetching.layer + 1, {s_.guess, static_cast<size_t>(count)});
}

void Moe::UseArrived(const Group& group, std::span<const ArrivedExpert> arrived) {
  if (arrived.empty()) return;
  GateAndUp(group, arrived);
  Down(group, arrived);
}

// inner = act(W_gate z, W_up z), a piece being 64 rows of one expert's matrices.
void Moe::GateAndUp(const Group& group, std::span<const ArrivedExpert> arrived) {
  const int64_t inner = config_.moe.inner, outer = config_.expert_outer();
  const int64_t blocks = CeilDivide(inner, kIndexBlock);
  const int64_t work = 2 * kIndexBlock * outer * group.rows_max;
  compute_.Parallel(std::ssize(arrived) * blocks, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    Arena arena(thread.memory());
    float* kernel_scratch = arena.Floats(kIndexBlock * outer);
    float* up = arena.Floats(group.rows_max * kIndexBlock);  // [rows, 64]
    for (int64_t item = begin; item < end; ++item) {
      const ArrivedExpert& one = arrived[item / blocks];
      const int32_t expert = group.experts[one.index];
      const int64_t slot = group.SlotOf(s_.first, expert);
      const int64_t rows = s_.first[expert + 1] - s_.first[expert];
      const int64_t r = item % blocks * kIndexBlock, n = std::min(inner - r, kIndexBlock);
      const float* input = s_.gathered + slot * outer;
      float* gate = s_.inner + slot * inner;
      compute_.kernels.expert_rows(one.record.gate, r, r + n, input, outer, rows, gate, inner,
                                   kernel_scratch);
      compute_.kernels.expert_rows(RowsOf(one.record.up, r, r + n), 0, n, input, outer, rows, up,
                                   kIndexBlock, kernel_scratch);
      for (int64_t i = 0; i < rows; ++i)
        Activate(config_, gate + i * inner + r, up + i * kIndexBlock, n);
    }
  });
}

// down = W_down inner, a piece being 64 rows of one expert's matrix.
void Moe::Down(const Group& group, std::span<const ArrivedExpert> arrived) {
  const int64_t inner = config_.moe.inner, outer = config_.expert_outer();
  const int64_t blocks = CeilDivide(outer, kIndexBlock);
  const int64_t work = kIndexBlock * inner * group.rows_max;
  compute_.Parallel(std::ssize(arrived) * blocks, work, [&](int64_t begin, int64_t end) {
    const Compute::Scratch thread(compute_);
    Arena arena(thread.memory());
    float* kernel_scratch = arena.Floats(kIndexBlock * inner);
    for (int64_t item = begin; item < end; ++item) {
      const ArrivedExpert& one = arrived[item / blocks];
      const int32_t expert = group.experts[one.index];
      const int64_t slot = group.SlotOf(s_.first, expert);
      const int64_t rows = s_.first[expert + 1] - s_.first[expert];
      const int64_t r = item % blocks * kIndexBlock, n = std::min(outer - r, kIndexBlock);
      compute_.kernels.expert_rows(one.record.down, r, r + n, s_.inner + slot * inner, inner, rows,
                                   s_.down + slot * outer, outer, kernel_scratch);
    }
  });
}

// y += weight down, a piece being 64 outputs of all pairs: so each output is summed by one thread,
// in the experts' order.
void Moe::Sum(const Group& group) {
  const int64_t outer = config_.expert_outer();
  const int64_t blocks = CeilDivide(outer, kIndexBlock);
  compute_.Parallel(blocks, kIndexBlock * group.pairs, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t r = block * kIndexBlock, n = std::min(outer - r, kIndexBlock);
      for (int64_t slot = 0; slot < group.pairs; ++slot)
        compute_.kernels.axpy(s_.pair_weight[group.first_pair + slot], s_.down + slot * outer + r,
                              s_.y + s_.pair_row[group.first_pair + slot] * outer + r, n);
    }
  });
}

void Moe::Finish(const MoeWeights& w, Rows x, float* out) {
  const int64_t latent = config_.moe.latent, hidden = config_.hidden;
  if (latent > 0) {
    for (int64_t r = 0; w.latent_norm != nullptr && r < x.count; ++r)
      RmsNorm(compute_.kernels, s_.y + r * latent, w.latent_norm, config_.norm_eps, latent,
              s_.y + r * latent);
    const Projection up[] = {{&w.latent_up, out, hidden}};
    compute_.Project(up, {s_.y, latent, x.count});
  } else {
    std::copy_n(s_.y, x.count * hidden, out);
  }
  if (config_.moe.shared_experts == 0) return;
  compute_.kernels.axpy(1.0f, s_.shared_out, out, x.count * hidden);
}

}  // namespace waste
