// K between the samples of a working set, made from the last one's: only rows of newcomers are computed.
//
//   tile[i · ld + j] = K(sample i, sample j), ld a multiple of the panel width, rows padded with zeros
#pragma once
#include "tile.hpp"

namespace maxmargin {

template <class T>
struct TileView {
  const T* data;
  index_t ld;
};

template <class T>
class SquareTile {
 public:
  explicit SquareTile(index_t ids) : place_(ids, -1) {}

  // For distinct ids, ascending; row[i] is the row of id[i] in the points' matrix.
  TileView<T> make(const Points<T>& points, const index_t* id, const std::vector<index_t>& row,
                   std::vector<TileScratch<T>>& scratch, int threads) {
    const index_t count = index_t(row.size()), ld = (count + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
    T* out = memory_[turn_ ^ 1].ensure(ld * ld);
    kept_.clear(), from_.clear(), fresh_.clear(), fresh_row_.clear(), to_.clear();
    for (index_t i = 0; i < count; ++i) {
      if (place_[id[i]] >= 0) {
        kept_.push_back(i);
        from_.push_back(place_[id[i]]);
      } else {
        fresh_.push_back(i);
        fresh_row_.push_back(row[i]);
        to_.push_back(out + i * ld);
      }
    }
    if (!fresh_.empty()) {
      newcomers_.pack(points, fresh_row_.data(), index_t(fresh_.size()));
      kernel_rows(SampleList<T>{&points, row.data(), count}, newcomers_, to_.data(), scratch, threads);
      for (T* begin : to_) std::fill(begin + count, begin + ld, T(0));
    }
    keep(memory_[turn_].data(), out, count, ld, threads);
    for (index_t i : id_) place_[i] = -1;
    id_.assign(id, id + count);
    for (index_t i = 0; i < count; ++i) place_[id[i]] = i;
    ld_ = ld;
    turn_ ^= 1;
    return {out, ld};
  }

 private:
  // The rows of those that stay: their old values, and the newcomers' rows mirrored, a cache line of columns at a time.
  void keep(const T* last, T* out, index_t count, index_t ld, int threads) const {
    constexpr index_t line = 64 / index_t(sizeof(T));
    const index_t stay = index_t(kept_.size());
#pragma omp parallel for num_threads(threads) schedule(static) if (count > 256)
    for (index_t begin = 0; begin < stay; begin += line) {
      const index_t end = std::min(begin + line, stay);
      for (index_t i = begin; i < end; ++i) {
        const T* old = last + from_[i] * ld_;
        T* to = out + kept_[i] * ld;
        for (index_t j = 0; j < stay; ++j) to[kept_[j]] = old[from_[j]];
        std::fill(to + count, to + ld, T(0));
      }
      for (index_t f : fresh_)
        for (index_t i = begin; i < end; ++i) out[kept_[i] * ld + f] = out[f * ld + kept_[i]];
    }
  }

  Buffer<T> memory_[2];
  int turn_ = 0;
  index_t ld_ = 0;
  std::vector<index_t> id_, place_;  // of the last tile, and where each id stands in it or -1
  std::vector<index_t> kept_, from_, fresh_, fresh_row_;
  std::vector<T*> to_;
  PackedRows<T> newcomers_;
};

}  // namespace maxmargin
