// K between the samples of a working set, made from the last one's: members keep their places, only newcomers' rows are
// computed, or taken from who has computed them.
//
//   tile[place i · ld + place j] = K(sample i, sample j), ld a multiple of the panel width; columns from the number of
//   samples on hold finite numbers of no meaning
#pragma once
#include "base/id_map.hpp"
#include "kernel/tile.hpp"

namespace maxmargin {

template <class T>
struct TileView {
  const T* data;
  index_t ld;
};

template <class T>
class SquareTile {
 public:
  SquareTile(index_t ids, bool array) : place_(ids, array) {}

  // For distinct ids; row[i] is the row of id[i] in the points' matrix. place[i] tells where id[i] stands. The rows of
  // awaited ids, given by their numbers, are left to take().
  TileView<T> make(const Points<T>& points, const index_t* id, const std::vector<index_t>& row, index_t* place,
                   std::vector<TileScratch<T>>& scratch, int threads, const std::vector<index_t>& awaited = {}) {
    const index_t count = index_t(row.size());
    reserve(count);
    seat(id, count, place);
    row_at_.resize(count);
    for (index_t i = 0; i < count; ++i) row_at_[place[i]] = row[i];
    place_of_.assign(place, place + count);
    is_awaited_.assign(count, 0);
    for (index_t i : awaited) is_awaited_[place[i]] = 1;
    fresh_row_.clear(), to_.clear();
    for (index_t p : fresh_) {
      std::fill(at(p) + count, at(p) + ld_, T(0));
      if (is_awaited_[p]) continue;
      fresh_row_.push_back(row_at_[p]);
      to_.push_back(at(p));
    }
    if (!to_.empty()) {
      newcomers_.pack(points, fresh_row_.data(), index_t(to_.size()));
      const auto then = [this](index_t begin, index_t end) { mirror(begin, end); };  // while its caches have them
      kernel_rows(SampleList<T>{&points, row_at_.data(), count}, newcomers_, to_.data(), scratch, threads,
                  awaited.empty() ? Then(then) : Then());
      for (T* begin : to_) std::fill(begin + count, begin + ld_, T(0));
    }
    return {memory_.data(), ld_};
  }

  // The rows that were awaited, in that order: values[k · width + i] is K with the i-th id.
  void take(const std::vector<index_t>& awaited, const T* values, index_t width, int threads) {
    const index_t count = members();
    for (std::size_t k = 0; k < awaited.size(); ++k) {
      const T* from = values + index_t(k) * width;
      T* to = at(place_of_[awaited[k]]);
      for (index_t i = 0; i < count; ++i) to[place_of_[i]] = from[i];
    }
    const index_t copies = 4 * index_t(fresh_.size());  // each costs as much as some multiplications
    for_slices(count, slice_size(count, copies, kLine), threads, [&](index_t begin, index_t end) { mirror(begin, end); });
  }

  index_t members() const { return index_t(place_of_.size()); }
  bool has(index_t id) const { return place_.find(id) >= 0; }

 private:
  // Room for `count` rows, those that are there at their places.
  void reserve(index_t count) {
    const index_t ld = (count + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
    if (ld <= ld_) return;
    Buffer<T> larger;
    T* to = larger.ensure(ld * ld);
    std::fill(to, to + ld * ld, T(0));
    for (std::size_t p = 0; p < member_.size(); ++p) {
      const T* from = memory_.data() + index_t(p) * ld_;
      std::copy(from, from + member_.size(), to + index_t(p) * ld);
    }
    std::swap(memory_, larger);
    ld_ = ld;
  }

  // Who was in stays, the others take the places that are left, in their order.
  void seat(const index_t* id, index_t count, index_t* place) {
    std::vector<index_t> now(count, -1);
    for (index_t i = 0; i < count; ++i) {
      const index_t p = place_.find(id[i]);
      place[i] = p < count ? p : -1;
      if (place[i] >= 0) now[p] = id[i];
    }
    fresh_.clear();
    is_fresh_.assign(count, 0);
    index_t next = 0;
    for (index_t i = 0; i < count; ++i) {
      if (place[i] >= 0) continue;
      while (now[next] >= 0) ++next;
      now[next] = id[i];
      place[i] = next;
      fresh_.push_back(next);
      is_fresh_[next] = 1;
    }
    for (index_t i : member_) place_.drop(i);
    member_.swap(now);
    for (index_t i = 0; i < count; ++i) place_.put(id[i], place[i]);
  }

  T* at(index_t place) { return memory_.data() + place * ld_; }

  static constexpr index_t kLine = 64 / index_t(sizeof(T));

  // The newcomers' rows at places [first, last) as columns of the others there, a cache line of each row at a time.
  void mirror(index_t first, index_t last) {
    T* tile = memory_.data();
    for (index_t begin = first; begin < last; begin += kLine) {
      index_t others[kLine], size = 0;
      for (index_t i = begin; i < std::min(begin + kLine, last); ++i)
        if (!is_fresh_[i]) others[size++] = i;
      if (size == 0) continue;
      for (index_t f : fresh_)
        for (index_t o = 0; o < size; ++o) tile[others[o] * ld_ + f] = tile[f * ld_ + others[o]];
    }
  }

  Buffer<T> memory_;
  index_t ld_ = 0;
  std::vector<index_t> member_;  // the id at each place
  IdMap place_;
  std::vector<index_t> row_at_, place_of_, fresh_, fresh_row_;  // place_of_: by number of the last ids
  std::vector<char> is_fresh_, is_awaited_;
  std::vector<T*> to_;
  PackedRows<T> newcomers_;
};

}  // namespace maxmargin
