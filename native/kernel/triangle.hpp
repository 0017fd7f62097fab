// K between all samples of a list, each value once: a group of rows at a time, from the group's first column on.
//
//   worked example, groups of 2 and 5 samples: rows 0 and 1 hold columns 0 … 4, rows 2 and 3 columns 2 … 4, row 4 column 4;
//   K(3, 1) is found as K(1, 3)
#pragma once
#include "kernel/tile.hpp"

namespace maxmargin {

template <class T>
class Triangle {
 public:
  Triangle(const Points<T>& points, const std::vector<index_t>& row, bool packed) : points_(points), row_(row) {
    const index_t n = index_t(row_.size());
    at_.push_back(0);
    for (index_t first = 0; first < n; first += kGroup)
      at_.push_back(at_.back() + std::min(kGroup, n - first) * stride(first));
    memory_.ensure(std::max<index_t>(1, at_.back()));
    if (!packed || points.sparse()) return;
    T* out = packed_.ensure(std::max<index_t>(1, stride(0) * points.features()));
    for (index_t j = 0; j < n; j += kPanel<T>)
      points.pack(&row_[j], int(std::min<index_t>(kPanel<T>, n - j)), out + j * points.features());
  }

  // What n samples take, for the values and, where they are packed, for themselves.
  static std::size_t bytes(index_t n, index_t features, bool packed) {
    const std::size_t whole = std::size_t(n) + kGroup + kPanel<T>;
    return (std::size_t(n) * whole / 2 + (packed ? whole * std::size_t(features) : 0)) * sizeof(T);
  }

  bool complete() const { return done_ + 1 >= at_.size(); }
  // The next group of rows.
  void advance(std::vector<TileScratch<T>>& scratch, int threads) {
    const index_t first = index_t(done_) * kGroup, n = index_t(row_.size()), count = std::min(kGroup, n - first);
    T* to[kGroup];
    for (index_t i = 0; i < count; ++i) to[i] = memory_.data() + at_[done_] + i * stride(first);
    group_.pack(points_, &row_[first], count);
    const T* packed = packed_.data() ? packed_.data() + first * points_.features() : nullptr;
    kernel_rows(SampleList<T>{&points_, &row_[first], n - first, packed}, group_, to, scratch, threads);
    ++done_;
    if (complete()) packed_ = Buffer<T>();
  }

  // out[i · ld + j] = K(first + i, other + j): what stands in the rows of `first`, then what is found in columns of the
  // others' rows, a cache line of each at a time.
  void copy(index_t first, index_t rows, index_t other, index_t columns, T* out, index_t ld) const {
    for (index_t i = first; i < first + rows; ++i) {
      const index_t from = std::max(other, group_of(i)), count = other + columns - from;
      if (count > 0) std::copy(at(i, from), at(i, from) + count, out + (i - first) * ld + from - other);
    }
    constexpr index_t line = 64 / index_t(sizeof(T));
    for (index_t begin = first; begin < first + rows; begin += line) {
      const index_t end = std::min(begin + line, first + rows);
      for (index_t j = other; j < std::min(other + columns, group_of(end - 1)); ++j)
        for (index_t i = std::max(begin, next_group(j)); i < end; ++i) out[(i - first) * ld + j - other] = *at(j, i);
    }
  }

 private:
  // Whole panels and register tiles; of 1,000 samples a tenth more than the half.
  static constexpr index_t kGroup = 96;
  static_assert(kGroup % kRows == 0 && kGroup % kPanel<T> == 0);

  static index_t group_of(index_t i) { return i / kGroup * kGroup; }
  static index_t next_group(index_t i) { return group_of(i) + kGroup; }
  index_t stride(index_t first) const {
    return (index_t(row_.size()) - group_of(first) + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
  }
  // K(i, j) and what follows in its row, for j from i's group on.
  const T* at(index_t i, index_t j) const {
    return memory_.data() + at_[i / kGroup] + i % kGroup * stride(i) + (j - group_of(i));
  }

  const Points<T>& points_;
  const std::vector<index_t>& row_;
  std::vector<index_t> at_;  // where each group begins
  std::size_t done_ = 0;
  Buffer<T> memory_, packed_;
  PackedRows<T> group_;
};

}  // namespace maxmargin
