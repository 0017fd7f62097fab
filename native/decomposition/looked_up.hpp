// Kernel rows put together from each other's values, where a value costs more than to look it up: samples of many features.
//
//   K(i, j) of a new row i is row j's value at i, if row j is there; the others are computed, some rows at a time, and what
//   these hold is there for the next ones
//
//   worked example: 5 samples, row 3 is there, rows 0 and 4 are new: K(0, 3), K(4, 3) from row 3, the rest computed
#pragma once
#include "kernel/tile.hpp"

namespace maxmargin {

constexpr index_t kWide = 512;  // features from which on it pays

template <class T>
class LookedUp {
 public:
  // Row to[i] of the sample at position at[i], which is row[i] of `from`; samples at positions 0, 1, … are the list's. known[j]
  // is the row of position j, or null; the new ones have none yet.
  void complete(const SampleList<T>& list, std::vector<const T*> known, const Points<T>& from, const index_t* row,
                const std::vector<index_t>& at, const std::vector<T*>& to, std::vector<TileScratch<T>>& scratch, int threads) {
    const index_t count = index_t(to.size());
    for (index_t first = 0; first < count; first += kTogether) {
      const index_t some = std::min(kTogether, count - first);
      packed_.pack(from, row + first, some);
      compute(list, known, to.data() + first, some, scratch, threads);
      copy(known, at.data() + first, to.data() + first, some, threads);
      for (index_t i = first; i < first + some; ++i) known[at[i]] = to[i];
    }
  }

 private:
  static constexpr index_t kTogether = 384;  // rows at a time, all of whose values with each other are computed

  // The values that no row has.
  void compute(const SampleList<T>& list, const std::vector<const T*>& known, T* const* to, index_t some,
               std::vector<TileScratch<T>>& scratch, int threads) {
    open_.clear(), open_row_.clear();
    for (index_t j = 0; j < list.count; ++j)
      if (!known[j]) open_.push_back(j), open_row_.push_back(list.row[j]);
    const index_t count = index_t(open_.size()), width = (count + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
    T* wide = wide_.ensure(std::max<index_t>(1, some * width));
    out_.resize(some);
    for (index_t i = 0; i < some; ++i) out_[i] = wide + i * width;
    kernel_rows(SampleList<T>{list.points, open_row_.data(), count}, packed_, out_.data(), scratch, threads);
    for_slices(some, slice_size(some, 2 * count), threads, [&](index_t begin, index_t end) {
      for (index_t i = begin; i < end; ++i)
        for (index_t k = 0; k < count; ++k) to[i][open_[k]] = out_[i][k];
    });
  }

  // The others, a cache line of each new row at a time.
  static void copy(const std::vector<const T*>& known, const index_t* at, T* const* to, index_t some, int threads) {
    constexpr index_t line = 64 / index_t(sizeof(T));
    const index_t count = index_t(known.size());
    for_slices(count, slice_size(count, 4 * some, line), threads, [&](index_t begin, index_t end) {
      for (index_t block = begin; block < end; block += line)
        for (index_t i = 0; i < some; ++i)
          for (index_t j = block; j < std::min(block + line, end); ++j)
            if (known[j]) to[i][j] = known[j][at[i]];
    });
  }

  PackedRows<T> packed_;
  Buffer<T> wide_;
  std::vector<T*> out_;
  std::vector<index_t> open_, open_row_;
};

}  // namespace maxmargin
