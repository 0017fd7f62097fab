// A part of the samples of one QP, and the only owner of their state (part_state.hpp, with its conventions) and of their columns
// of the cached kernel rows.
//
// A part never looks outside: the features of samples in a tile or an update come in as rows of a Points, candidates go out.
#pragma once
#include <algorithm>
#include <memory>

#include "decomposition/looked_up.hpp"
#include "decomposition/part_state.hpp"
#include "decomposition/row_cache.hpp"
#include "kernel/square_tile.hpp"

namespace maxmargin {

template <class T>
class Part : public PartState {
 public:
  // `points` may be null (kernel rows are then handed in). row[i] is the row of sample first + i in the points' matrix; the
  // state holds [half][sample].
  Part(const Points<T>* points, std::vector<index_t> row, int halves, const double* center, const double* lo,
       const double* hi, const double* beta, const std::int8_t* group, const double* f, std::size_t cache_bytes,
       int threads, index_t first, index_t total)
      : PartState(index_t(row.size()), halves, center, lo, hi, beta, group, f, threads, first, total),
        points_(points),
        row_(std::move(row)),
        tile_(total, 2 * n_ >= total),
        scratch_(std::max(1, threads)),
        dear_(points && !points->sparse() && n_ == total && points->features() >= kWide) {
    const std::size_t packing = points && !points->sparse() ? stride(n_) * points->features() * sizeof(T) : 0;
    keep_packed_ = packing > 0 && packing <= cache_bytes / 4;
    cache_ = std::make_unique<RowCache<T>>(total, 2 * n_ >= total, cache_bytes - (keep_packed_ ? packing : 0), stride(n_));
    repack();
  }

  // Another problem of the same samples, none of which has been left out: cached rows and the tile are kept.
  void restart(const double* center, const double* lo, const double* hi, const double* beta, const std::int8_t* group,
               const double* f) {
    if (active_ != n_) throw std::logic_error("Part.restart: some samples have been left out");
    stand_at(center, lo, hi, beta, group, f);
  }

  bool native() const { return points_ != nullptr; }
  index_t cache_slots() const { return cache_->slots(); }

  // K between the given samples (distinct), row[i] of `from` being id[i], and where each of them stands in it. It is complete
  // when take_rows() has brought the rows of `awaited` newcomers (numbers among the ids), which somebody else computes.
  TileView<T> tile_of(const Points<T>& from, const index_t* id, const index_t* row, index_t count, index_t* place,
                      const std::vector<index_t>& awaited) {
    const std::vector<index_t> rows(row, row + count);
    if (!dear_) return tile_.make(from, id, rows, place, scratch_, threads_, awaited);
    if (active_ <= kFew && cache_->slots() >= active_) fetch_newcomers(from, id, row, count);
    const std::vector<index_t> held = newcomers(id, count, true);
    const TileView<T> tile = tile_.make(from, id, rows, place, scratch_, threads_, held);
    if (!held.empty()) take_held(held, id, count);
    return tile;
  }
  index_t members() const { return tile_.members(); }  // of the last tile
  void take_rows(const std::vector<index_t>& awaited, const T* values, index_t width) {
    tile_.take(awaited, values, width, threads_);
  }

  std::vector<index_t> missing(const index_t* id, index_t count) const {
    std::vector<index_t> out;
    for (index_t i = 0; i < count; ++i)
      if (!cache_->find(id[i])) out.push_back(id[i]);
    return out;
  }

  // Rows from outside (callable, precomputed): block[i · size() + j]. All must fit; the caller sends few enough.
  void put(const index_t* id, index_t count, const double* block) {
    cache_->begin_turn();
    const auto to = cache_->place(std::vector<index_t>(id, id + count));
    for (std::size_t i = 0; i < to.size(); ++i)
      for (index_t j = 0; j < size(); ++j) to[i][j] = T(block[index_t(i) * size() + j]);
  }

  // f += Σ_i coef_i K(·, id_i), or `sum` instead of f: cached rows are read, missing ones computed together from row[i] of
  // `from` and kept where there is room. Returns how many were found in the cache.
  index_t update(const Points<T>* from, const index_t* id, const index_t* row, index_t count, const double* coef,
                 double* sum = nullptr) {
    if (active_ == 0) return 0;
    if (!sum) sum = f_.data();
    cache_->begin_turn();
    std::vector<const T*> held;
    std::vector<double> held_coef, missing_coef;
    std::vector<index_t> absent, absent_row;
    for (index_t i = 0; i < count; ++i)
      if (const T* found = cache_->find(id[i])) {
        cache_->touch(id[i]);
        held.push_back(found);
        held_coef.push_back(coef[i]);
      } else {
        absent.push_back(id[i]);
        absent_row.push_back(row[i]);
        missing_coef.push_back(coef[i]);
      }
    const index_t hits = index_t(held.size());
    const std::vector<T*> fresh = cache_->place(absent);
    const index_t stored = index_t(fresh.size()), loose = index_t(absent.size()) - stored;
    const SampleList<T> list = samples();
    const auto sums = [&](index_t first, T* const* keep) {
      return Sums<T>{missing_coef.data() + first, 1, 0, sum, 0, keep};
    };
    if (dear_ && stored > 0) {  // put together from each other, then they are rows like the others
      put_together(*from, absent, absent_row.data(), fresh);
      held.insert(held.end(), fresh.begin(), fresh.end());
      held_coef.insert(held_coef.end(), missing_coef.begin(), missing_coef.begin() + stored);
    }
    add_rows(held, held_coef, sum);
    if (!dear_ && stored > 0) {
      packed_rows_.pack(*from, absent_row.data(), stored);
      kernel_sum(list, packed_rows_, sums(0, fresh.data()), scratch_, threads_);
    }
    if (loose > 0) {
      packed_rows_.pack(*from, absent_row.data() + stored, loose);
      kernel_sum(list, packed_rows_, sums(stored, nullptr), scratch_, threads_);
    }
    return hits;
  }

  // Keep only the samples at these positions (ascending) active.
  void restrict_to(const index_t* keep, index_t count) {
    cache_->shrink(keep, count, stride(count), threads_);
    keep_active(keep, count);
    repack();
  }

  // Samples left out that can move are active again, in the order of their ids. The rows in the cache have no values for them
  // until fill() has seen all of these rows; with no native kernel there are none then.
  void take_back(const Extremes& e) {
    const index_t m = active_;
    activate(e);
    if (!points_) cache_->clear();
    cache_->grow(m, stride(active_));
    repack();
  }

  std::vector<index_t> cached() const { return cache_->ids(); }

  // The cached rows of these ids, row[i] of `from` being id[i], at positions from `begin` on.
  void fill(index_t begin, const Points<T>& from, const index_t* id, const index_t* row, index_t count) {
    if (begin == active_ || count == 0) return;
    // Tiles write whole panels, so they go through a buffer of some rows at a time.
    const index_t added = active_ - begin, width = stride(added);
    const index_t step = std::clamp<index_t>((index_t(1) << 22) / std::max<index_t>(1, width), 16, count + 16);
    for (index_t first = 0; first < count; first += step) {
      const index_t some = std::min(step, count - first);
      std::vector<T*> to(some);
      T* wide = wide_.ensure(width * step);
      for (index_t i = 0; i < some; ++i) to[i] = wide + i * width;
      packed_rows_.pack(from, row + first, some);
      kernel_rows(SampleList<T>{points_, &active_row_[begin], added}, packed_rows_, to.data(), scratch_, threads_);
      for (index_t i = 0; i < some; ++i)
        if (T* held = cache_->find(id[first + i])) std::copy(to[i], to[i] + added, held + begin);
    }
  }

 private:
  // ---- samples of many features (looked_up.hpp) ----------------------------------------------------------------------

  static constexpr index_t kFew = 4096;  // samples up to which whole rows come before the tile: most of a working set will move

  // Those of the samples, by their numbers, that are not in the tile and have a row in the cache, or have none.
  std::vector<index_t> newcomers(const index_t* id, index_t count, bool held) const {
    std::vector<index_t> out;
    for (index_t i = 0; i < count; ++i)
      if (!tile_.has(id[i]) && (cache_->find(id[i]) != nullptr) == held) out.push_back(i);
    return out;
  }

  void fetch_newcomers(const Points<T>& from, const index_t* id, const index_t* row, index_t count) {
    std::vector<index_t> absent, absent_row;
    for (index_t i : newcomers(id, count, false)) absent.push_back(id[i]), absent_row.push_back(row[i]);
    cache_->begin_turn();
    put_together(from, absent, absent_row.data(), cache_->place(absent));
  }

  // Rows of the tile from the cache.
  void take_held(const std::vector<index_t>& held, const index_t* id, index_t count) {
    T* values = wide_.ensure(index_t(held.size()) * count);
    std::vector<index_t> at(count);
    for (index_t i = 0; i < count; ++i) at[i] = position_[id[i] - first_];
    for_slices(index_t(held.size()), slice_size(index_t(held.size()), 4 * count), threads_, [&](index_t first, index_t last) {
      for (index_t k = first; k < last; ++k) {
        const T* row = cache_->find(id[held[k]]);
        for (index_t i = 0; i < count; ++i) values[k * count + i] = row[at[i]];
      }
    });
    tile_.take(held, values, count, threads_);
  }

  // The rows of the first of these samples, as many as have a place `to`.
  void put_together(const Points<T>& from, const std::vector<index_t>& id, const index_t* row, const std::vector<T*>& to) {
    std::vector<const T*> known(active_);  // by position
    for (index_t j = 0; j < active_; ++j) known[j] = cache_->find(first_ + sample_[j]);
    std::vector<index_t> at(to.size());
    for (std::size_t i = 0; i < to.size(); ++i) known[at[i] = position_[id[i] - first_]] = nullptr;
    looked_up_.complete(samples(), std::move(known), from, row, at, to, scratch_, threads_);
  }

  static index_t stride(index_t n) { return (n + kPanel<T> - 1) / kPanel<T> * kPanel<T>; }

  SampleList<T> samples() const {
    return {points_, active_row_.data(), size(), keep_packed_ ? packed_.data() : nullptr};
  }

  // Rows of the active samples in their order, and their panels if these have a place in the budget.
  void repack() {
    active_row_.resize(active_);
    for (index_t j = 0; j < size(); ++j) active_row_[j] = row_[sample_[j]];
    if (!keep_packed_) return;
    T* out = packed_.ensure(stride(n_) * points_->features());
    const index_t d = points_->features();
    for_slices(size(), slice_size(size(), 4 * d, kPanel<T>), threads_, [&](index_t begin, index_t end) {
      for (index_t j = begin; j < end; j += kPanel<T>)
        points_->pack(&active_row_[j], int(std::min<index_t>(kPanel<T>, end - j)), out + j * d);
    });
  }

  void add_rows(const std::vector<const T*>& row, const std::vector<double>& coef, double* sum) {
    constexpr index_t block = 2048;  // 16 kB of f: stays in L1 while the rows stream by
    const index_t m = size(), count = index_t(row.size());
    if (count == 0) return;
    for_slices(m, slice_size(m, count, block), threads_, [&](index_t first, index_t last) {
      for (index_t begin = first; begin < last; begin += block) {
        const index_t end = std::min(begin + block, last);
        index_t i = 0;
        for (; i + 4 <= count; i += 4) {
          const T *a = row[i], *b = row[i + 1], *c = row[i + 2], *d = row[i + 3];
          const double p = coef[i], q = coef[i + 1], r = coef[i + 2], s = coef[i + 3];
          for (index_t j = begin; j < end; ++j)
            sum[j] += (p * double(a[j]) + q * double(b[j])) + (r * double(c[j]) + s * double(d[j]));
        }
        for (; i < count; ++i)
          for (index_t j = begin; j < end; ++j) sum[j] += coef[i] * double(row[i][j]);
      }
    });
  }

  const Points<T>* points_;
  std::vector<index_t> row_, active_row_;
  bool keep_packed_ = false;
  SquareTile<T> tile_;
  Buffer<T> packed_, wide_;
  PackedRows<T> packed_rows_;
  std::vector<TileScratch<T>> scratch_;
  bool dear_;  // whether its kernel values are
  LookedUp<T> looked_up_;
  std::unique_ptr<RowCache<T>> cache_;
};

}  // namespace maxmargin
