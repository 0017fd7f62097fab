// The tile of a working set, gathered from a whole matrix: who stays in the set keeps its place, and its values.
//
// Sets follow one another, and most of a set was in the one before. Its values are not gathered again: a member that is new
// takes the place of one that has gone (or the next one), its row is gathered and its column copied from the row; of a tile
// that is all new, the rows up to the diagonal.
//
//   worked example: places hold variables 3 8 5 9; the set 8 9 11: 8 keeps place 1, 9 would stand past the end and is
//   treated as new, as is 11: places 9 8 11, and rows and columns 0 and 2 are gathered.
//
// Where each stands depends on the sets since `clear` only, so that a problem is solved by the same steps on any thread.
#pragma once
#include <algorithm>
#include <vector>

#include "decomposition/gram.hpp"
#include "decomposition/inner_smo.hpp"

namespace maxmargin {

template <class T>
class KeptTile {
 public:
  // Nobody is in it; of so many variables, at most `largest` at once.
  void clear(index_t variables, index_t largest) {
    member_.clear();
    place_.assign(variables, -1);
    largest_ = std::min(variables, largest);
  }

  // The tile of `set`, which is put in the order of their places. sample(v): the row of the matrix of a variable.
  template <class Sample>
  void arrange(std::vector<index_t>& set, const Gram& gram, Sample&& sample) {
    allocate();
    seat(set);
    const index_t q = index_t(member_.size());
    column_.resize(q);
    for (index_t i = 0; i < q; ++i) column_[i] = std::int32_t(sample(member_[i]));
    const T unit = T(gram.unit());
    const bool all = index_t(fresh_.size()) == q;
    for (index_t i : fresh_) {
      const std::int32_t* from = gram.row(column_[i]);
      T* to = values_.data() + i * ld_;
      const index_t end = all ? i + 1 : q;
      for (index_t j = 0; j < end; ++j) to[j] = unit * T(from[column_[j]]);
    }
    copy_columns(q, all);
    set = member_;
  }

  const T* data() const { return values_.data(); }
  index_t ld() const { return ld_; }

 private:
  static constexpr index_t kBlock = 16;  // columns that are copied at once: a cache line of each row

  void allocate() {
    // Whole vectors past the last column; an odd number of cache lines, so that a column's are not all in one set of a cache.
    const index_t ld = (largest_ + 15) / 16 * 16 | 16;
    if (ld == ld_) return;
    ld_ = ld;
    values_.assign(std::size_t(ld_) * std::size_t(ld_), T(0));
  }

  // Who goes, who comes, and where to.
  void seat(const std::vector<index_t>& set) {
    const index_t q = index_t(set.size()), before = index_t(member_.size());
    wanted_.assign(place_.size(), 0);
    for (index_t v : set) wanted_[v] = 1;
    for (index_t p = 0; p < before; ++p)
      if (p >= q || !wanted_[member_[p]]) place_[member_[p]] = -1;
    fresh_.clear();
    index_t next = 0;
    const auto vacant = [&](index_t p) { return p >= before || place_[member_[p]] != p; };
    for (index_t v : set) {
      if (place_[v] >= 0) continue;
      while (!vacant(next)) ++next;
      fresh_.push_back(next);
      came_.push_back(v);
      ++next;
    }
    member_.resize(q);
    for (std::size_t i = 0; i < fresh_.size(); ++i) {
      member_[fresh_[i]] = came_[i];
      place_[came_[i]] = std::int32_t(fresh_[i]);
    }
    came_.clear();
  }

  // The columns of who is new from their rows, or all above the diagonal from what is below.
  void copy_columns(index_t q, bool all) {
    for (index_t first = 0; first < q; first += kBlock) {
      for (index_t i : fresh_) {
        const index_t count = std::min(kBlock, (all ? i : q) - first);
        const T* from = values_.data() + i * ld_ + first;
        T* to = values_.data() + first * ld_ + i;
        for (index_t j = 0; j < count; ++j) to[j * ld_] = from[j];
      }
    }
  }

  index_t ld_ = 0, largest_ = 0;
  std::vector<T> values_;
  std::vector<index_t> member_, fresh_, came_;
  std::vector<std::int32_t> place_, column_;
  std::vector<std::int8_t> wanted_;
};

// Rows of the whole matrix as a tile of all variables of a problem: nothing is gathered, two rows at a time are converted.
template <class T>
class WholeRows {
 public:
  // range: where the samples of the problem begin and end, twice; halves: variables per sample.
  WholeRows(const Gram& gram, const index_t* range, index_t halves)
      : gram_(gram), range_(range), m_(range[1] - range[0] + range[3] - range[2]), halves_(halves), width_(m_ * halves) {
    for (auto& r : row_) r.assign((width_ + 15) / 16 * 16, T(0));
  }

  const T* row(index_t v, const Wishes<T>&) {
    const std::int32_t* from = gram_.row(sample(v));
    T* to = row_[next_ ^= 1].data();  // the row before is still in use
    const T unit = T(gram_.unit());
    const index_t first = range_[1] - range_[0];
    for (index_t j = 0; j < first; ++j) to[j] = unit * T(from[range_[0] + j]);
    for (index_t j = first; j < m_; ++j) to[j] = unit * T(from[range_[2] - first + j]);
    if (halves_ == 2) std::copy(to, to + m_, to + m_);
    return to;
  }
  T diagonal(index_t v) const { return T(gram_.value(sample(v), sample(v))); }

 private:
  index_t sample(index_t v) const {
    const index_t p = v % m_, first = range_[1] - range_[0];
    return p < first ? range_[0] + p : range_[2] + p - first;
  }
  const Gram& gram_;
  const index_t* range_;
  index_t m_, halves_, width_;
  std::vector<T> row_[2];
  int next_ = 0;
};

}  // namespace maxmargin
