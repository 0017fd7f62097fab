// A part of the samples of one QP, and the only owner of their state: f, beta, bounds, who is active, and their columns of the
// cached kernel rows.
//
// Conventions. A sample has an id in [0, total) for all parts together; this part holds ids [first, first + n), known here by
// id − first. It sits at a position: the active ones first, those left out by shrinking behind them. Variable h·total + id is
// half h of a sample (one half: classification; two: regression). beta = s·alpha, so that every formulation reads:
// minimise ½ βᵀKβ − cᵀβ, lo ≤ β ≤ hi, Σ_group β fixed; f = K β per sample; score = c − f.
//   up: β < hi, low: β > lo. Violation of a group: max_up score − min_low score.
//   worked example: a part of ids 10 … 13 of 100, sample 11 left out: positions hold 10, 12, 13 | 11; half 1 of sample 12 is
//   variable 112, its β stands at β[1 · 4 + 1]
//
// A part never looks outside: the features of samples in a tile or an update come in as rows of a Points, candidates go out.
#pragma once
#include <algorithm>
#include <memory>
#include <numeric>

#include "decomposition/looked_up.hpp"
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
  // `points` may be null (kernel rows are then handed in). row[i] is the row of sample first + i in the points' matrix; the
  // state holds [half][sample].
  Part(const Points<T>* points, std::vector<index_t> row, int halves, const double* center, const double* lo,
       const double* hi, const double* beta, const std::int8_t* group, const double* f, std::size_t cache_bytes,
       int threads, index_t first, index_t total)
      : points_(points),
        row_(std::move(row)),
        n_(index_t(row_.size())),
        first_(first),
        total_(total),
        active_(n_),
        halves_(halves),
        threads_(threads),
        tile_(total, 2 * n_ >= total),
        scratch_(std::max(1, threads)),
        dear_(points && !points->sparse() && n_ == total && points->features() >= kWide) {
    sample_.resize(n_);
    std::iota(sample_.begin(), sample_.end(), index_t(0));
    position_ = sample_;
    stand_at(center, lo, hi, beta, group, f);
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

  index_t size() const { return active_; }
  index_t samples_held() const { return n_; }
  index_t first() const { return first_; }
  index_t halves() const { return halves_; }
  index_t support() const { return support_; }  // samples whose halves do not cancel
  bool native() const { return points_ != nullptr; }
  index_t cache_slots() const { return cache_->slots(); }
  bool holds(index_t id) const { return id >= first_ && id < first_ + n_; }
  std::vector<index_t> active() const {  // ids
    std::vector<index_t> ids(active_);
    for (index_t j = 0; j < active_; ++j) ids[j] = first_ + sample_[j];
    return ids;
  }
  bool is_active(index_t id) const { return position_[id - first_] < active_; }
  // By sample, whatever their positions.
  void f(double* out) const {
    for (index_t j = 0; j < n_; ++j) out[sample_[j]] = f_[j];
  }
  void beta(double* out) const {
    for (int h = 0; h < halves_; ++h)
      for (index_t j = 0; j < n_; ++j) out[h * n_ + sample_[j]] = beta_[h * n_ + j];
  }

  // Of the active samples, or of all. NaN if a score is not a finite number: no comparison would tell.
  Extremes extremes(bool everyone = false) const {
    const index_t count = everyone ? n_ : active_;
    const double inf = std::numeric_limits<double>::infinity();
    Extremes all{{-inf, -inf}, {inf, inf}};
    double finite = 0;
    for (const auto& [e, zero] : map_slices(count, slice_size(count, 2 * halves_), threads_,
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
    if (active_ == 0) return {};
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

  // State of some samples of this part: [half][sample], and f by sample.
  void read(const index_t* id, index_t count, double* beta, double* lo, double* hi, double* center, std::int8_t* group,
            double* f) const {
    for (index_t i = 0; i < count; ++i) {
      const index_t j = position_[id[i] - first_];
      f[i] = f_[j];
      for (int h = 0; h < halves_; ++h) {
        const index_t v = h * n_ + j, to = h * count + i;
        beta[to] = beta_[v];
        lo[to] = lo_[v];
        hi[to] = hi_[v];
        center[to] = center_[v];
        group[to] = group_[v];
      }
    }
  }
  // New β of some samples, [half][sample], of which those that this part holds matter here.
  void write(const index_t* id, index_t count, const double* beta) {
    for (index_t i = 0; i < count; ++i) {
      if (!holds(id[i])) continue;
      const index_t j = position_[id[i] - first_];
      support_ -= coef(j) != 0;
      for (int h = 0; h < halves_; ++h) beta_[h * n_ + j] = beta[h * count + i];
      support_ += coef(j) != 0;
    }
  }
  // f of some samples of this part.
  void add(const index_t* id, index_t count, const double* values) {
    for (index_t i = 0; i < count; ++i) f_[position_[id[i] - first_]] += values[i];
  }
  // f of the active samples, in the order of their positions.
  void add_active(const double* values) {
    for (index_t j = 0; j < active_; ++j) f_[j] += values[j];
  }

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

  // Positions of active samples that can still move: not those at a bound whose score lies beyond the other side's extreme.
  std::vector<index_t> movable(const Extremes& e) const {
    std::vector<index_t> keep;
    for (index_t j = 0; j < active_; ++j)
      if (can_move(j, e)) keep.push_back(j);
    return keep;
  }

  // Keep only the samples at these positions (ascending) active.
  void restrict_to(const index_t* keep, index_t count) {
    cache_->shrink(keep, count, stride(count), threads_);
    std::vector<index_t> from(keep, keep + count);
    for (index_t j = 0, k = 0; j < active_; ++j)
      if (k < count && keep[k] == j)
        ++k;
      else
        from.push_back(j);
    reorder(0, from);
    active_ = count;
    repack();
  }

  // Samples left out that can move are active again, in the order of their ids. The rows in the cache have no values for them
  // until fill() has seen all of these rows; with no native kernel there are none then.
  void take_back(const Extremes& e) {
    std::vector<index_t> from, rest;
    for (index_t j = active_; j < n_; ++j) (can_move(j, e) ? from : rest).push_back(j);
    const index_t m = active_, count = index_t(from.size());
    std::sort(from.begin(), from.end(), [&](index_t a, index_t b) { return sample_[a] < sample_[b]; });
    from.insert(from.end(), rest.begin(), rest.end());
    reorder(m, from);
    active_ += count;
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
  // State by sample; everyone is at the position of its number.
  void stand_at(const double* center, const double* lo, const double* hi, const double* beta, const std::int8_t* group,
                const double* f) {
    const index_t m = n_ * halves_;
    center_.assign(center, center + m);
    lo_.assign(lo, lo + m);
    hi_.assign(hi, hi + m);
    beta_.assign(beta, beta + m);
    group_.assign(group, group + m);
    f_.assign(f, f + n_);
    support_ = 0;
    for (index_t j = 0; j < n_; ++j) support_ += coef(j) != 0;
  }
  // Of the positions [begin, end); and 0, or NaN if a score there is not a finite number.
  std::pair<Extremes, double> extremes(index_t begin, index_t end) const {
    const double inf = std::numeric_limits<double>::infinity();
    double up0 = -inf, up1 = -inf, low0 = inf, low1 = inf, finite = 0;
    for (int h = 0; h < halves_; ++h) {
      const double *c = &center_[h * n_], *b = &beta_[h * n_], *l = &lo_[h * n_], *u = &hi_[h * n_];
      const std::int8_t* g = &group_[h * n_];
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

  double coef(index_t j) const { return halves_ == 1 ? beta_[j] : beta_[j] + beta_[n_ + j]; }

  bool can_move(index_t j, const Extremes& e) const {
    for (int h = 0; h < halves_; ++h) {
      const index_t v = h * n_ + j;
      const double score = center_[v] - f_[j];
      const int g = group_[v];
      if ((beta_[v] < hi_[v] && score >= e.min_low[g]) || (beta_[v] > lo_[v] && score <= e.max_up[g])) return true;
    }
    return false;
  }

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
        const index_t v = h * n_ + j;
        const double score = center_[v] - f_[j];
        if (score > above && beta_[v] < hi_[v] && group_[v] == group) to.up.push_back({-score, h * total_ + first_ + sample_[j]});
        if (score < below && beta_[v] > lo_[v] && group_[v] == group) to.low.push_back({score, h * total_ + first_ + sample_[j]});
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

  // Positions begin, begin + 1, … get the samples that were at from[0], from[1], …
  void reorder(index_t begin, const std::vector<index_t>& from) {
    for (auto* a : {&center_, &lo_, &hi_, &beta_}) reorder(*a, begin, from, halves_);
    reorder(group_, begin, from, halves_);
    reorder(f_, begin, from, 1);
    reorder(sample_, begin, from, 1);
    for (index_t j = begin; j < n_; ++j) position_[sample_[j]] = j;
  }
  template <class V>
  void reorder(std::vector<V>& a, index_t begin, const std::vector<index_t>& from, int halves) const {
    std::vector<V> moved(from.size());
    for (int h = 0; h < halves; ++h) {
      for (std::size_t k = 0; k < from.size(); ++k) moved[k] = a[h * n_ + from[k]];
      std::copy(moved.begin(), moved.end(), a.begin() + h * n_ + begin);
    }
  }

  const Points<T>* points_;
  std::vector<index_t> row_;
  index_t n_, first_, total_, active_, support_ = 0;
  int halves_, threads_;
  std::vector<index_t> sample_, position_, active_row_;  // the sample at each position, each sample's position
  std::vector<double> center_, lo_, hi_, beta_, f_;
  std::vector<std::int8_t> group_;
  bool keep_packed_ = false;
  SquareTile<T> tile_;
  Buffer<T> packed_, wide_;
  PackedRows<T> packed_rows_;
  std::vector<TileScratch<T>> scratch_;
  bool dear_;  // whether its kernel values are
  LookedUp<T> looked_up_;
  std::unique_ptr<RowCache<T>> cache_;
  std::vector<Found> found_;  // by slice
};

}  // namespace maxmargin
