// A part of the samples of one QP: their state (f, beta, bounds) and their slice of the cached kernel rows.
//
// Conventions. A sample has a stable id in [0, n); it sits at a position in this part while it is active. Variable
// h·n + id is half h of sample id (one half: classification; two: regression). beta = s·alpha, so that every formulation
// reads: minimise ½ βᵀKβ − cᵀβ, lo ≤ β ≤ hi, Σ_group β fixed; f = K β per sample; score = c − f.
//   up: β < hi, low: β > lo. Violation of a group: max_up score − min_low score.
//
// A part never looks outside: kernel rows of other samples come in as packed rows, candidates go out.
#pragma once
#include <algorithm>
#include <memory>
#include <numeric>

#include "decomposition/row_cache.hpp"
#include "kernel/square_tile.hpp"

namespace maxmargin {

constexpr int kGroups = 2;  // at most

struct Extremes {  // per group
  double max_up[kGroups], min_low[kGroups];
};

struct Candidates {  // of one group, most violating first
  std::vector<index_t> up, low;
  std::vector<double> up_score, low_score;
};

template <class T>
class Part {
 public:
  // `points` may be null (rows are then handed in). row[id] is the sample's row of the points' matrix.
  Part(const Points<T>* points, std::vector<index_t> row, int halves, const double* center, const double* lo,
       const double* hi, const double* beta, const std::int8_t* group, const double* f, std::size_t cache_bytes,
       int threads)
      : points_(points),
        row_(std::move(row)),
        n_(index_t(row_.size())),
        halves_(halves),
        threads_(threads),
        tile_(n_),
        scratch_(std::max(1, threads)) {
    active_.resize(n_);
    std::iota(active_.begin(), active_.end(), index_t(0));
    position_ = active_;
    const index_t m = n_ * halves;
    center_.assign(center, center + m);
    lo_.assign(lo, lo + m);
    hi_.assign(hi, hi + m);
    beta_.assign(beta, beta + m);
    group_.assign(group, group + m);
    f_.assign(f, f + n_);
    const std::size_t packing = points && !points->sparse() ? stride(n_) * points->features() * sizeof(T) : 0;
    keep_packed_ = packing > 0 && packing <= cache_bytes / 4;
    cache_ = std::make_unique<RowCache<T>>(n_, cache_bytes - (keep_packed_ ? packing : 0), stride(n_));
    repack();
  }

  index_t size() const { return index_t(active_.size()); }
  const std::vector<index_t>& active() const { return active_; }
  const std::vector<double>& f() const { return f_; }
  bool native() const { return points_ != nullptr; }
  index_t cache_slots() const { return cache_->slots(); }

  // NaN if a score is not a finite number: no comparison would tell.
  Extremes extremes() const {
    const double inf = std::numeric_limits<double>::infinity();
    Extremes all{{-inf, -inf}, {inf, inf}};
    double finite = 0;
    for (const auto& [e, zero] : map_slices(size(), slice_size(size(), 2 * halves_), threads_,
                                            [&](index_t begin, index_t end) { return extremes(begin, end); })) {
      finite += zero;
      for (int g = 0; g < kGroups; ++g) {
        all.max_up[g] = std::max(all.max_up[g], e.max_up[g]);
        all.min_low[g] = std::min(all.min_low[g], e.min_low[g]);
      }
    }
    for (int g = 0; g < kGroups; ++g) all.max_up[g] += finite, all.min_low[g] += finite;
    return all;
  }

  // The at most k worst variables of a group on either side: up with score > above, low with score < below.
  Candidates candidates(int group, index_t k, double above, double below) {
    // Each slice offers as many as the whole, so there are few; what is found does not depend on how many.
    const index_t m = size(), most = threads_ > 1 ? 4 * index_t(threads_) : 1;
    const index_t slice = std::max(slice_size(m, 8), (m + most - 1) / most);
    found_.resize(std::max<index_t>(1, (m + slice - 1) / slice));
    for_slices(m, slice, threads_, [&](index_t begin, index_t end) {
      Found& mine = found_[begin / slice];
      const auto [up_from, low_to] = look(group, k, above, below, begin, end);
      collect(mine, group, up_from, low_to, begin, end);
      if ((index_t(mine.up.size()) < k && up_from > above) || (index_t(mine.low.size()) < k && low_to < below))
        collect(mine, group, above, below, begin, end);
      cut(mine.up, k);
      cut(mine.low, k);
    });
    for (std::size_t t = 1; t < found_.size(); ++t) {
      found_[0].up.insert(found_[0].up.end(), found_[t].up.begin(), found_[t].up.end());
      found_[0].low.insert(found_[0].low.end(), found_[t].low.begin(), found_[t].low.end());
    }
    Candidates out;
    take(found_[0].up, k, -1.0, out.up, out.up_score);
    take(found_[0].low, k, 1.0, out.low, out.low_score);
    return out;
  }

  // State of some active variables.
  void read(const index_t* variable, index_t count, double* beta, double* lo, double* hi, double* score,
            std::int8_t* group) const {
    for (index_t i = 0; i < count; ++i) {
      const index_t v = place(variable[i]);
      beta[i] = beta_[v];
      lo[i] = lo_[v];
      hi[i] = hi_[v];
      group[i] = group_[v];
      score[i] = center_[v] - f_[position_[variable[i] % n_]];
    }
  }
  void write(const index_t* variable, index_t count, const double* beta) {
    for (index_t i = 0; i < count; ++i) beta_[place(variable[i])] = beta[i];
  }

  // K between the given samples (distinct), and where each of them stands in it; native kernels only.
  TileView<T> tile_of(const index_t* id, index_t count, index_t* place) {
    std::vector<index_t> rows(count);
    for (index_t i = 0; i < count; ++i) rows[i] = row_[id[i]];
    return tile_.make(*points_, id, rows, place, scratch_, threads_);
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

  // f += Σ_i coef_i K(·, id_i): cached rows are read, missing ones computed together and kept where there is room.
  // Returns how many were found in the cache.
  index_t update(const index_t* id, index_t count, const double* coef) {
    cache_->begin_turn();
    std::vector<const T*> held;
    std::vector<double> held_coef, missing_coef;
    std::vector<index_t> absent, row;
    for (index_t i = 0; i < count; ++i)
      if (const T* found = cache_->find(id[i])) {
        cache_->touch(id[i]);
        held.push_back(found);
        held_coef.push_back(coef[i]);
      } else {
        absent.push_back(id[i]);
        row.push_back(row_[id[i]]);
        missing_coef.push_back(coef[i]);
      }
    const index_t hits = index_t(held.size());
    const std::vector<T*> fresh = cache_->place(absent);
    const index_t stored = index_t(fresh.size()), loose = index_t(absent.size()) - stored;
    const SampleList<T> list = samples();
    const auto sums = [&](index_t first, T* const* keep) {
      return Sums<T>{missing_coef.data() + first, 1, 0, f_.data(), 0, keep};
    };
    add_rows(held, held_coef);
    if (stored > 0) {
      packed_rows_.pack(*points_, row.data(), stored);
      kernel_sum(list, packed_rows_, sums(0, fresh.data()), scratch_, threads_);
    }
    if (loose > 0) {
      packed_rows_.pack(*points_, row.data() + stored, loose);
      kernel_sum(list, packed_rows_, sums(stored, nullptr), scratch_, threads_);
    }
    return hits;
  }

  // Positions of samples that can still move: not those at a bound whose score lies beyond the other side's extreme.
  std::vector<index_t> movable(const Extremes& e) const {
    const index_t m = size();
    std::vector<index_t> keep;
    for (index_t j = 0; j < m; ++j)
      for (int h = 0; h < halves_; ++h) {
        const index_t v = h * m + j;
        const double score = center_[v] - f_[j];
        const int g = group_[v];
        if ((beta_[v] < hi_[v] && score >= e.min_low[g]) || (beta_[v] > lo_[v] && score <= e.max_up[g])) {
          keep.push_back(j);
          break;
        }
      }
    return keep;
  }

  // Keep only the samples at these positions (ascending).
  void restrict_to(const index_t* keep, index_t count) {
    const index_t m = size();
    cache_->shrink(keep, count, stride(count), threads_);
    for (auto* a : {&center_, &lo_, &hi_, &beta_}) compact(*a, m, keep, count);
    compact(group_, m, keep, count);
    std::fill(position_.begin(), position_.end(), index_t(-1));
    for (index_t j = 0; j < count; ++j) {
      f_[j] = f_[keep[j]];
      active_[j] = active_[keep[j]];
      position_[active_[j]] = j;
    }
    f_.resize(count);
    active_.resize(count);
    repack();
  }

  // Take samples in again. The arrays hold [half][added]; cached rows get their new columns computed.
  // With no native kernel the cached rows are dropped instead.
  void extend(const index_t* id, index_t count, const double* center, const double* lo, const double* hi,
              const double* beta, const std::int8_t* group, const double* f) {
    const index_t m = size();
    splice(center_, center, m, count);
    splice(lo_, lo, m, count);
    splice(hi_, hi, m, count);
    splice(beta_, beta, m, count);
    splice(group_, group, m, count);
    f_.insert(f_.end(), f, f + count);
    for (index_t j = 0; j < count; ++j) {
      position_[id[j]] = m + j;
      active_.push_back(id[j]);
    }
    if (!points_) cache_->clear();
    cache_->grow(m, stride(m + count));
    repack();
    if (points_) fill_columns(m);
  }

 private:
  // Of the positions [begin, end); and 0, or NaN if a score there is not a finite number.
  std::pair<Extremes, double> extremes(index_t begin, index_t end) const {
    const double inf = std::numeric_limits<double>::infinity();
    const index_t m = size();
    double up0 = -inf, up1 = -inf, low0 = inf, low1 = inf, finite = 0;
    for (int h = 0; h < halves_; ++h) {
      const double *c = &center_[h * m], *b = &beta_[h * m], *l = &lo_[h * m], *u = &hi_[h * m];
      const std::int8_t* g = &group_[h * m];
#pragma omp simd reduction(max : up0, up1) reduction(min : low0, low1) reduction(+ : finite)
      for (index_t j = begin; j < end; ++j) {
        const double score = c[j] - f_[j];
        finite += score - score;  // 0, or NaN for ever
        const double as_up = b[j] < u[j] ? score : -inf, as_low = b[j] > l[j] ? score : inf;
        up0 = std::max(up0, g[j] == 0 ? as_up : -inf);
        up1 = std::max(up1, g[j] == 0 ? -inf : as_up);
        low0 = std::min(low0, g[j] == 0 ? as_low : inf);
        low1 = std::min(low1, g[j] == 0 ? inf : as_low);
      }
    }
    return {{{up0, up1}, {low0, low1}}, finite};
  }

  static index_t stride(index_t n) { return (n + kPanel<T> - 1) / kPanel<T> * kPanel<T>; }
  index_t place(index_t variable) const { return variable / n_ * size() + position_[variable % n_]; }

  SampleList<T> samples() const {
    return {points_, active_row_.data(), size(), keep_packed_ ? packed_.data() : nullptr};
  }

  // Rows of the active samples in their order, and their panels if these have a place in the budget.
  void repack() {
    active_row_.resize(active_.size());
    for (index_t j = 0; j < size(); ++j) active_row_[j] = row_[active_[j]];
    if (!keep_packed_) return;
    T* out = packed_.ensure(stride(n_) * points_->features());
    const index_t d = points_->features();
    for_slices(size(), slice_size(size(), 4 * d, kPanel<T>), threads_, [&](index_t begin, index_t end) {
      for (index_t j = begin; j < end; j += kPanel<T>)
        points_->pack(&active_row_[j], int(std::min<index_t>(kPanel<T>, end - j)), out + j * d);
    });
  }

  void add_rows(const std::vector<const T*>& row, const std::vector<double>& coef) {
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
            f_[j] += (p * double(a[j]) + q * double(b[j])) + (r * double(c[j]) + s * double(d[j]));
        }
        for (; i < count; ++i)
          for (index_t j = begin; j < end; ++j) f_[j] += coef[i] * double(row[i][j]);
      }
    });
  }

  void fill_columns(index_t from) {
    const auto ids = cache_->ids();
    std::vector<index_t> rows;
    for (index_t id : ids) rows.push_back(row_[id]);
    if (rows.empty() || from == size()) return;
    // Tiles write whole panels, so they go through a buffer of some rows at a time.
    const index_t added = size() - from, width = stride(added), count = index_t(rows.size());
    const index_t step = std::clamp<index_t>((index_t(1) << 22) / std::max<index_t>(1, width), 16, count + 16);
    for (index_t first = 0; first < count; first += step) {
      const index_t some = std::min(step, count - first);
      std::vector<T*> to(some);
      T* wide = wide_.ensure(width * step);
      for (index_t i = 0; i < some; ++i) to[i] = wide + i * width;
      packed_rows_.pack(*points_, rows.data() + first, some);
      kernel_rows(SampleList<T>{points_, &active_row_[from], added}, packed_rows_, to.data(), scratch_, threads_);
      for (index_t i = 0; i < some; ++i) std::copy(to[i], to[i] + added, cache_->find(ids[first + i]) + from);
    }
  }

  using Scored = std::vector<std::pair<double, index_t>>;  // (key, variable), smallest key first wanted
  struct Found {
    Scored up, low;
  };

  // What of every `step`th of positions [begin, end) may be among the worst: up with a score above, low with one below.
  void collect(Found& to, int group, double above, double below, index_t begin, index_t end, index_t step = 1) const {
    to.up.clear();
    to.low.clear();
    for (int h = 0; h < halves_; ++h)
      for (index_t j = begin; j < end; j += step) {
        const index_t v = h * size() + j;
        const double score = center_[v] - f_[j];
        if (score > above && beta_[v] < hi_[v] && group_[v] == group) to.up.push_back({-score, h * n_ + active_[j]});
        if (score < below && beta_[v] > lo_[v] && group_[v] == group) to.low.push_back({score, h * n_ + active_[j]});
      }
  }

  // Narrower bounds, which about twice k of positions [begin, end) are beyond, by a look at some of them. Bounds may turn
  // out too narrow, then k are not found.
  std::pair<double, double> look(int group, index_t k, double above, double below, index_t begin, index_t end) const {
    constexpr index_t some = 512;
    const index_t step = (end - begin) / some;
    if (step < 2) return {above, below};
    const index_t enough = 8 + 2 * k / step;
    Found few;
    collect(few, group, above, below, begin, end, step);
    const auto bound = [&](Scored& all, double otherwise, double sign) {
      if (index_t(all.size()) <= enough) return otherwise;
      std::nth_element(all.begin(), all.begin() + enough, all.end());
      return sign * all[enough].first;
    };
    return {bound(few.up, above, -1.0), bound(few.low, below, 1.0)};
  }

  static void cut(Scored& all, index_t k) {
    if (index_t(all.size()) <= k) return;
    std::nth_element(all.begin(), all.begin() + k, all.end());
    all.resize(k);
  }
  static void take(Scored& all, index_t k, double sign, std::vector<index_t>& ids, std::vector<double>& scores) {
    cut(all, k);
    std::sort(all.begin(), all.end());
    for (const auto& [key, id] : all) {
      ids.push_back(id);
      scores.push_back(sign * key);
    }
  }

  template <class V>
  void compact(std::vector<V>& a, index_t m, const index_t* keep, index_t count) const {
    for (int h = 0; h < halves_; ++h)
      for (index_t j = 0; j < count; ++j) a[h * count + j] = a[h * m + keep[j]];
    a.resize(halves_ * count);
  }
  template <class V>
  void splice(std::vector<V>& a, const V* more, index_t m, index_t count) const {
    std::vector<V> out;
    out.reserve(halves_ * (m + count));
    for (int h = 0; h < halves_; ++h) {
      out.insert(out.end(), a.begin() + h * m, a.begin() + (h + 1) * m);
      out.insert(out.end(), more + h * count, more + (h + 1) * count);
    }
    a.swap(out);
  }

  const Points<T>* points_;
  std::vector<index_t> row_;
  index_t n_;
  int halves_, threads_;
  std::vector<index_t> active_, position_, active_row_;
  std::vector<double> center_, lo_, hi_, beta_, f_;
  std::vector<std::int8_t> group_;
  bool keep_packed_ = false;
  SquareTile<T> tile_;
  Buffer<T> packed_, wide_;
  PackedRows<T> packed_rows_;
  std::vector<TileScratch<T>> scratch_;
  std::unique_ptr<RowCache<T>> cache_;
  std::vector<Found> found_;  // by slice
};

}  // namespace maxmargin
