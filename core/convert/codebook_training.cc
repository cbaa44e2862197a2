// SPDX-License-Identifier: Apache-2.0

#include "convert/codebook_training.h"

#include <algorithm>
#include <array>

#include "base/half.h"
#include "convert/random.h"

namespace waste {
namespace {

constexpr int64_t kBlockPoints = 2048;
constexpr int32_t kMeansRounds = 10;
constexpr int32_t kJointRounds = 5;
constexpr int32_t kJointBeam = 4;  // wider ones gain little in training

using Book = std::vector<float>;  // [entries, 8]

float* At(Book& book, int64_t entry) { return book.data() + entry * kVectorSize; }
const float* At(const Book& book, int64_t entry) { return book.data() + entry * kVectorSize; }

void RoundToHalf(Book& book) {
  for (float& value : book) value = HalfToFloat(FloatToHalf(value));
}

// Sums of the points that chose each entry, block by block.
class Means {
 public:
  Means(int64_t points, int64_t entries)
      : entries_(entries),
        blocks_(static_cast<size_t>((points + kBlockPoints - 1) / kBlockPoints)) {
    for (Block& block : blocks_) {
      block.sums.resize(static_cast<size_t>(entries * kVectorSize));
      block.counts.resize(static_cast<size_t>(entries));
    }
  }

  // Adds up, over all points p, vector(p, v) filled by `gather` under the entry it returns.
  template <typename Gather>
  void Add(int64_t points, ThreadPool& pool, const Gather& gather) {
    const int64_t count = static_cast<int64_t>(blocks_.size());
    pool.Run(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Block& block = blocks_[static_cast<size_t>(b)];
        std::fill(block.sums.begin(), block.sums.end(), 0.0);
        std::fill(block.counts.begin(), block.counts.end(), 0);
        const int64_t last = std::min(points, (b + 1) * kBlockPoints);
        for (int64_t p = b * kBlockPoints; p < last; ++p) {
          std::array<float, kVectorSize> vector;
          const int64_t entry = gather(p, vector);
          double* sums = block.sums.data() + entry * kVectorSize;
          for (size_t j = 0; j < vector.size(); ++j) sums[j] += static_cast<double>(vector[j]);
          ++block.counts[static_cast<size_t>(entry)];
        }
      }
    });
  }

  // Gives every entry that was chosen its mean; returns the others.
  std::vector<int64_t> Store(Book& book) const {
    std::vector<int64_t> unused;
    for (int64_t entry = 0; entry < entries_; ++entry) {
      std::array<double, kVectorSize> sum = {};
      int64_t count = 0;
      for (const Block& block : blocks_) {
        const double* sums = block.sums.data() + entry * kVectorSize;
        for (size_t j = 0; j < sum.size(); ++j) sum[j] += sums[j];
        count += block.counts[static_cast<size_t>(entry)];
      }
      if (count == 0) {
        unused.push_back(entry);
        continue;
      }
      for (size_t j = 0; j < sum.size(); ++j)
        At(book, entry)[j] = static_cast<float>(sum[j] / static_cast<double>(count));
    }
    return unused;
  }

 private:
  struct Block {
    std::vector<double> sums;  // [entries, 8]
    std::vector<int64_t> counts;
  };
  int64_t entries_;
  std::vector<Block> blocks_;
};

class Trainer {
 public:
  Trainer(std::span<const float> points, const TrainingOptions& options, const VectorSearch& search,
          ThreadPool& pool, const Progress& progress)
      : points_(points),
        count_(static_cast<int64_t>(points.size()) / kVectorSize),
        options_(options),
        search_(search),
        pool_(pool),
        progress_(progress),
        random_(options.seed),
        means_(count_, options.codec.entries) {}

  Result<std::vector<Book>> Run() {
    WASTE_TRY(TrainStages());
    WASTE_TRY(RefineTogether());
    return std::move(books_);
  }

 private:
  void CopyPoint(std::span<const float> points, float* entry) {
    const int64_t p = random_.Below(count_);
    std::copy_n(points.data() + p * kVectorSize, kVectorSize, entry);
  }

  Status TrainStages() {
    std::vector<float> left(points_.begin(), points_.end());
    for (int32_t stage = 0; stage < options_.codec.stages; ++stage) {
      Book book(static_cast<size_t>(options_.codec.entries * kVectorSize));
      for (int64_t entry = 0; entry < options_.codec.entries; ++entry)
        CopyPoint(left, At(book, entry));
      WASTE_TRY(FindMeans(left, book));
      RoundToHalf(book);
      SubtractNearest(book, left);
      books_.push_back(std::move(book));
    }
    return Status();
  }

  // Lloyd's rounds: every point to its nearest entry, every entry to the mean of its points. An
  // entry without points starts again at a random one.
  Status FindMeans(const std::vector<float>& points, Book& book) {
    for (int32_t round = 0; round < kMeansRounds; ++round) {
      WASTE_TRY(progress_.CheckCancelled());
      const SearchBook fast = MakeSearchBook(book);
      means_.Add(count_, pool_, [&](int64_t p, std::array<float, kVectorSize>& vector) {
        std::copy_n(points.data() + p * kVectorSize, kVectorSize, vector.begin());
        return search_.nearest(fast, vector.data());
      });
      for (const int64_t entry : means_.Store(book)) CopyPoint(points, At(book, entry));
    }
    return Status();
  }

  void SubtractNearest(const Book& book, std::vector<float>& points) {
    const SearchBook fast = MakeSearchBook(book);
    pool_.Run(count_, kBlockPoints, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float* point = points.data() + p * kVectorSize;
        const float* nearest = At(book, search_.nearest(fast, point));
        for (int64_t j = 0; j < kVectorSize; ++j) point[j] -= nearest[j];
      }
    });
  }

  Status RefineTogether() {
    const int32_t beam = std::min(options_.beam, kJointBeam);
    const size_t stages = books_.size();
    std::vector<uint8_t> indices(static_cast<size_t>(count_) * stages);
    for (int32_t round = 0; round < kJointRounds; ++round) {
      const BeamBooks fast = MakeBeamBooks(books_);
      WASTE_TRY(progress_.CheckCancelled());
      pool_.Run(count_, kBlockPoints, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          search_.encode(fast, points_.data() + p * kVectorSize, beam,
                         indices.data() + static_cast<size_t>(p) * stages);
        }
      });
      for (size_t stage = 0; stage < stages; ++stage) UpdateStage(stage, indices);
    }
    for (Book& book : books_) RoundToHalf(book);
    return Status();
  }

  // Entries that no point uses stay as they are.
  void UpdateStage(size_t stage, const std::vector<uint8_t>& indices) {
    const size_t stages = books_.size();
    means_.Add(count_, pool_, [&](int64_t p, std::array<float, kVectorSize>& vector) {
      const uint8_t* chosen = indices.data() + static_cast<size_t>(p) * stages;
      std::copy_n(points_.data() + p * kVectorSize, kVectorSize, vector.begin());
      for (size_t other = 0; other < stages; ++other) {
        if (other == stage) continue;
        const float* entry = At(books_[other], chosen[other]);
        for (size_t j = 0; j < vector.size(); ++j) vector[j] -= entry[j];
      }
      return int64_t{chosen[stage]};
    });
    static_cast<void>(means_.Store(books_[stage]));
  }

  std::span<const float> points_;
  int64_t count_;
  TrainingOptions options_;
  const VectorSearch& search_;
  ThreadPool& pool_;
  const Progress& progress_;
  Random random_;
  Means means_;
  std::vector<Book> books_;
};

}  // namespace

Result<std::vector<std::vector<float>>> TrainCodebooks(std::span<const float> points,
                                                       const TrainingOptions& options,
                                                       const VectorSearch& search, ThreadPool& pool,
                                                       const Progress& progress) {
  return Trainer(points, options, search, pool, progress).Run();
}

}  // namespace waste
