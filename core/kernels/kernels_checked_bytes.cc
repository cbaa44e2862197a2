// SPDX-License-Identifier: Apache-2.0
//
// The comparisons of kernels_checked.h for kernels that compute in bytes: split inputs and look-up
// tables. The scalar table has none, so these hold a kernel to the layout it shares with the other
// of its pair (split_input.h, expert_tables.h): what fills it against x, what reads it against the
// sum, in double, of what was filled. How far a pair is from f32 together is not
// told here but by tests/kernel.

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/half.h"
#include "kernels/comparison.h"
#include "kernels/expert_tables.h"
#include "kernels/kernels_checked.h"
#include "kernels/split_input.h"

namespace waste {
namespace {

// A split input, read by its layout.
struct SplitView {
  const uint8_t* bytes;
  int64_t columns;

  int64_t groups() const { return TrunkRowGroups(columns); }
  int32_t Integer(int64_t c) const {  // from the bytes as columns come
    return Joined(bytes + c / kTrunkGroup * kSplitGroupBytes + kSplitNatural + c % kTrunkGroup);
  }
  int32_t EvenOddInteger(int64_t c) const {
    const int64_t at = c % 2 * (kTrunkGroup / 2) + c % kTrunkGroup / 2;
    return Joined(bytes + c / kTrunkGroup * kSplitGroupBytes + kSplitEvenOdd + at);
  }
  float Scale(int64_t g) const { return FloatAt(g); }
  float ScaledSum(int64_t g) const { return FloatAt(SplitScales(columns) + g); }

 private:
  static int32_t Joined(const uint8_t* high) {
    return 256 * static_cast<int8_t>(high[0]) + static_cast<int8_t>(high[kTrunkGroup]);
  }
  float FloatAt(int64_t i) const {
    float value;
    std::memcpy(&value, bytes + groups() * kSplitGroupBytes + 4 * i, 4);
    return value;
  }
};

// Columns of group g of a split input against x.
std::string CompareSplitGroup(const SplitView& split, int64_t g, const float* x) {
  float largest = 0.0f;
  const int64_t first = g * kTrunkGroup, end = std::min(split.columns, first + kTrunkGroup);
  for (int64_t c = first; c < end; ++c) {
    if (!(std::fabs(x[c]) <= FLT_MAX)) return {};
    largest = std::max(largest, std::fabs(x[c]));
  }
  const float scale = split.Scale(g);
  const double right_scale = largest < 1e-30f ? 0.0 : double{largest} / kSplitMost;
  std::string wrong = CompareValue("scale of group", g, scale, static_cast<float>(right_scale),
                                   kRounding * right_scale, largest);
  if (!wrong.empty()) return wrong;
  int64_t sum = 0;
  for (int64_t c = first; c < first + kTrunkGroup; ++c) {
    const int32_t integer = split.Integer(c);
    const double right = c < end && scale > 0.0f ? x[c] / double{scale} : 0.0;
    wrong = CompareValue("integer of column", c, static_cast<float>(integer),
                         static_cast<float>(right), 0.255, 0.0);
    if (!wrong.empty()) return wrong;
    if (split.EvenOddInteger(c) != integer)
      return "even and odd columns, " + std::to_string(c) + ": another integer";
    sum += integer;
  }
  const double right_sum = double{scale} * static_cast<double>(sum);
  return CompareValue("sum of group", g, split.ScaledSum(g), static_cast<float>(right_sum),
                      2 * kRounding * std::fabs(right_sum), std::fabs(right_sum));
}

// Row r times a split input, exactly: weights and integers times scales fit double. The magnitude
// is also of what split_rows adds to each weight and takes off again, 8 or 128 scales.
struct ExactSplitRow {
  double value = 0, magnitude = 0;

  ExactSplitRow(const TrunkMatrix& w, int64_t r, const float* weights, const SplitView& split) {
    const double offset = w.format == TrunkFormat::kQ4G ? 8 : 128;
    for (int64_t c = 0; c < w.columns; ++c) {
      const int64_t g = c / kTrunkGroup;
      const double x = double{split.Scale(g)} * split.Integer(c);
      const double scale = HalfToFloat(LoadU16(w.row_scales(r) + 2 * g));
      value += weights[c] * x;
      magnitude += (std::fabs(double{weights[c]}) + 2 * offset * std::fabs(scale)) * std::fabs(x);
    }
  }
};

// All products of group g in double.
struct GroupProducts {
  int64_t stages, entries, vectors;
  std::vector<double> products;             // [vectors, stages, entries]
  float widest[kMaxStages] = {};            // by stage
  double offset = 0, offset_magnitude = 0;  // of all low(v, s)
  double most = 0;                          // the largest magnitude of a product's terms
  double most_rounding = 0;                 // what integers for x and books may add to a product

  GroupProducts(const ExpertMatrix& w, const float* x, int64_t g)
      : stages(w.codec.stages), entries(w.codec.entries) {
    const int64_t first = g * TableVectors(w.codec);
    vectors = std::min(w.columns / kVectorSize - first, TableVectors(w.codec));
    for (int64_t v = 0; v < vectors; ++v) {
      for (int64_t s = 0; s < stages; ++s) {
        const float* const book = w.books[static_cast<size_t>(s)];
        const float* const of_v = x + (first + v) * kVectorSize;
        const double step = w.forms[static_cast<size_t>(s)].step;
        for (int64_t e = 0; e < entries; ++e) Add(of_v, book + e * kVectorSize, step);
        const double low = Low(v, s);
        const double high = *std::max_element(Book(v, s), Book(v, s) + entries);
        widest[s] = std::max(widest[s], static_cast<float>(high - low));
        offset += low;
        offset_magnitude += std::fabs(low);
      }
    }
  }
  const double* Book(int64_t v, int64_t s) const {
    return products.data() + (v * stages + s) * entries;
  }
  double Low(int64_t v, int64_t s) const {
    return *std::min_element(Book(v, s), Book(v, s) + entries);
  }
  // How far a product may be from that of f32.
  double Bound() const { return (kVectorSize + 1) * kRounding * most; }

 private:
  void Add(const float* x, const float* entry, double step) {
    double sum = 0, magnitude = 0, size_x = 0, size_entry = 0, largest = 0;
    for (int64_t i = 0; i < kVectorSize; ++i) {
      sum += double{x[i]} * entry[i];
      magnitude += std::fabs(double{x[i]} * entry[i]);
      size_x += std::fabs(x[i]);
      size_entry += std::fabs(entry[i]);
      largest = std::max(largest, std::fabs(double{x[i]}));
    }
    most_rounding =
        std::max(most_rounding, 0.51 * (largest / kMostBookInteger * size_entry + step * size_x));
    products.push_back(sum);
    if (magnitude > most || magnitude != magnitude) most = magnitude;  // a NaN stays
  }
};

// The bytes of one group: integers of each book, and that sums of bytes do not overflow.
std::string CompareTableBytes(const ExpertCodec& codec, const GroupProducts& right,
                              const uint8_t* group) {
  const double delta = HeaderOf(group).delta;
  const int64_t base = TableBase(codec.stages), together = TableSumStages(codec.stages);
  const uint8_t* table = group + kTableHeaderBytes;
  // CompareValue allows this twice: half a step, and what f32 does to products and to quotients of
  // up to 2^16 steps. An entry and the lowest one are both off by what integers add.
  const double bound = delta > 0 ? 0.26 + (4 * right.Bound() + right.most_rounding) / delta : 0;
  for (int64_t v = 0; v < right.vectors; ++v) {
    int64_t most_low = 0, most_high = 0;
    for (int64_t s = 0; s < right.stages; ++s, table += 2 * right.entries) {
      const uint8_t* const highs = table + right.entries;
      if (s % together == 0) most_low = most_high = 0;
      most_low += *std::max_element(table, highs);
      most_high += *std::max_element(highs, highs + right.entries);
      if (most_low > 255 || most_high > 255)
        return "tables, vector " + std::to_string(v) + ": sums of bytes overflow";
      const double low = right.Low(v, s);
      for (int64_t e = 0; e < right.entries; ++e) {
        const double q = delta > 0 ? (right.Book(v, s)[e] - low) / delta : 0;
        std::string wrong =
            CompareValue("table entry", e, static_cast<float>(base * highs[e] + table[e]),
                         static_cast<float>(q), bound, q);
        if (!wrong.empty())
          return wrong + " (vector " + std::to_string(v) + ", stage " + std::to_string(s) + ")";
      }
    }
  }
  return {};
}

// The header and the bytes of one group.
std::string CompareTableGroup(const ExpertMatrix& w, const float* x, int64_t g,
                              const uint8_t* group) {
  const GroupProducts right(w, x, g);
  // Nothing is said where widths or sums of products overflow.
  const double books = static_cast<double>(right.vectors * right.stages);
  const double magnitude = 2 * books * right.most;
  if (!(magnitude <= double{FLT_MAX})) return {};
  const TableHeader header = HeaderOf(group);
  const TableHeader right_header =
      MakeTableHeader(w.codec, right.widest, static_cast<float>(right.offset));
  const double steps =
      static_cast<double>((255 - TableSumStages(w.codec.stages)) * TableBase(w.codec.stages));
  const double delta_bound =
      1e-37 + 8 * kRounding * right_header.delta +
      2 * static_cast<double>(right.stages) * (right.Bound() + right.most_rounding) / steps;
  std::string wrong =
      CompareValue("step of group", g, header.delta, right_header.delta, delta_bound, magnitude);
  if (wrong.empty())
    wrong = CompareValue(
        "offset of group", g, header.offset, right_header.offset,
        books * (right.Bound() + right.most_rounding + kRounding * right.offset_magnitude),
        magnitude);
  if (wrong.empty()) wrong = CompareTableBytes(w.codec, right, group);
  return wrong;
}

}  // namespace

std::string CompareSplitInput(const Kernels& fast, const float* x, int64_t columns, uint8_t* out) {
  fast.split_input(x, columns, out);
  const SplitView split = {out, columns};
  for (int64_t g = 0; g < split.groups(); ++g) {
    std::string wrong = CompareSplitGroup(split, g, x);
    if (!wrong.empty()) return "split input, " + wrong;
  }
  for (int64_t g = split.groups(); g < SplitScales(columns); ++g)
    if (split.Scale(g) != 0.0f || split.ScaledSum(g) != 0.0f)
      return "split input, group " + std::to_string(g) + " beyond the last: not 0";
  return {};
}

std::string CompareSplitRows(const Kernels& fast, const TrunkMatrix& w, int64_t row_begin,
                             int64_t row_end, const uint8_t* inputs, int64_t batch, float* y,
                             int64_t y_stride) {
  fast.split_rows(w, row_begin, row_end, inputs, batch, y, y_stride);
  // Of a group's sum, its factor and its product; then of what joins lanes and groups.
  const auto roundings = static_cast<double>(2 * TrunkRowGroups(w.columns) + 10);
  std::vector<float> weights(static_cast<size_t>(w.columns));
  for (int64_t r = row_begin; r < row_end; ++r) {
    DecodeTrunkRow(w, r, weights);
    for (int64_t b = 0; b < batch; ++b) {
      const SplitView split = {inputs + b * SplitBytes(w.columns), w.columns};
      const ExactSplitRow exact(w, r, weights.data(), split);
      std::string wrong =
          CompareValue("split row", r, y[b * y_stride + r], static_cast<float>(exact.value),
                       roundings * kRounding * exact.magnitude, exact.magnitude);
      if (!wrong.empty()) return wrong + " (input " + std::to_string(b) + ")";
    }
  }
  return {};
}

std::string CompareBuildTable(const Kernels& fast, const ExpertMatrix& w, const float* x,
                              int64_t group, const IndexChunks& next, uint8_t* table,
                              float* scratch) {
  fast.build_table(w, x, group, next, table, scratch);
  std::string wrong = CompareTableGroup(w, x, group, table);
  if (!wrong.empty()) wrong += " (group " + std::to_string(group) + ")";
  return wrong;
}

namespace {

// What the group adds to row r.
double TableSum(const ExpertMatrix& w, int64_t r, int64_t group, const uint8_t* table) {
  const int64_t entries = w.codec.entries, base = TableBase(w.codec.stages);
  const double delta = HeaderOf(table).delta;
  table += kTableHeaderBytes;
  int64_t integers = 0;
  for (int64_t v = 0; v < GroupVectors(w, group); ++v) {
    const auto indices = ExpertIndices(w, r, group * TableVectors(w.codec) + v);
    for (int64_t s = 0; s < w.codec.stages; ++s, table += 2 * entries) {
      const uint8_t e = indices[static_cast<size_t>(s)];
      integers += table[e] + base * table[entries + e];
    }
  }
  return delta * static_cast<double>(integers);
}

// `w` with scales of 1, so that finish_rows gives its sums in the rows' order.
ExpertMatrix WithoutScales(const ExpertMatrix& w, std::vector<uint8_t>& ones) {
  const uint16_t one = FloatToHalf(1.0f);
  ones.resize(static_cast<size_t>(2 * w.rows));
  for (size_t at = 0; at < ones.size(); at += 2) std::memcpy(&ones[at], &one, 2);
  ExpertMatrix bare = w;
  bare.scales = ones.data();
  return bare;
}

}  // namespace

// What was added, in the rows' order: finish_rows puts it there, and is compared by itself.
std::string CompareTableRows(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                             int64_t row_end, int64_t group, const uint8_t* table,
                             const IndexChunks& next, bool is_first, float* sums) {
  std::vector<uint8_t> ones;
  const ExpertMatrix bare = WithoutScales(w, ones);
  std::vector<float> before(static_cast<size_t>(row_end - row_begin)), after(before);
  if (!is_first) fast.finish_rows(bare, row_begin, row_end, sums, 1, 0, 0.0f, before.data());
  fast.table_rows(w, row_begin, row_end, group, table, next, is_first, sums);
  fast.finish_rows(bare, row_begin, row_end, sums, 1, 0, 0.0f, after.data());
  for (int64_t r = row_begin; r < row_end; ++r) {
    const auto i = static_cast<size_t>(r - row_begin);
    const double added = TableSum(w, r, group, table);
    const double magnitude = std::fabs(double{before[i]}) + added;
    std::string wrong =
        CompareValue("table row", r, after[i], static_cast<float>(before[i] + added),
                     4 * kRounding * magnitude, magnitude);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

// The parts' sums in the rows' order, one by one, against all of them at once.
std::string CompareFinishRows(const Kernels& fast, const ExpertMatrix& w, int64_t row_begin,
                              int64_t row_end, const float* sums, int64_t parts,
                              int64_t part_stride, float offset, float* y) {
  fast.finish_rows(w, row_begin, row_end, sums, parts, part_stride, offset, y);
  const auto rows = static_cast<size_t>(row_end - row_begin);
  std::vector<uint8_t> ones;
  const ExpertMatrix bare = WithoutScales(w, ones);
  std::vector<double> sum(rows, offset), magnitude(rows, std::fabs(double{offset}));
  std::vector<float> part_sums(rows);
  for (int64_t part = 0; part < parts; ++part) {
    fast.finish_rows(bare, row_begin, row_end, sums + part * part_stride, 1, 0, 0.0f,
                     part_sums.data());
    for (size_t i = 0; i < rows; ++i) {
      sum[i] += part_sums[i];
      magnitude[i] += std::fabs(double{part_sums[i]});
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    const int64_t r = row_begin + static_cast<int64_t>(i);
    const double scale = HalfToFloat(LoadU16(w.scales + 2 * r));
    const double most = std::fabs(scale) * magnitude[i];
    std::string wrong = CompareValue("finished row", r, y[i], static_cast<float>(scale * sum[i]),
                                     static_cast<double>(parts + 2) * kRounding * most, most);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace waste
