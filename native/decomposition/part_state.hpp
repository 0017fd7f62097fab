// The state of a part of the samples of one QP: f, beta, bounds, who is active; who violates most, who can still move.
//
// Conventions. A sample has an id in [0, total) for all parts together; this part holds ids [first, first + n), known here by
// id − first. It sits at a position: the active ones first, those left out by shrinking behind them. Variable h·total + id is
// half h of a sample (one half: classification; two: regression). beta = s·alpha, so that every formulation reads:
// minimise ½ βᵀKβ − cᵀβ, lo ≤ β ≤ hi, Σ_group β fixed; f = K β per sample; score = c − f.
//   up: β < hi, low: β > lo. Violation of a group: max_up score − min_low score.
//   worked example: a part of ids 10 … 13 of 100, sample 11 left out: positions hold 10, 12, 13 | 11; half 1 of sample 12 is
//   variable 112, its β stands at β[1 · 4 + 1]
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/matrix.hpp"
#include "base/threads.hpp"

namespace maxmargin {

constexpr int kGroups = 2;  // at most

struct Extremes {  // per group
  double max_up[kGroups], min_low[kGroups];
};

struct Candidates {  // of one group, most violating first
  std::vector<index_t> up, low;
  std::vector<double> up_score, low_score;
};

class PartState {
 public:
  // All arrays but f hold [half][sample].
  PartState(index_t n, int halves, const double* center, const double* lo, const double* hi, const double* beta,
            const std::int8_t* group, const double* f, int threads, index_t first, index_t total)
      : n_(n), first_(first), total_(total), active_(n), halves_(halves), threads_(threads), sample_(n) {
    std::iota(sample_.begin(), sample_.end(), index_t(0));
    position_ = sample_;
    stand_at(center, lo, hi, beta, group, f);
  }

  index_t size() const { return active_; }
  index_t samples_held() const { return n_; }
  index_t first() const { return first_; }
  index_t halves() const { return halves_; }
  index_t support() const { return support_; }  // samples whose halves do not cancel
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

  // Positions of active samples that can still move: not those at a bound whose score lies beyond the other side's extreme.
  std::vector<index_t> movable(const Extremes& e) const {
    std::vector<index_t> keep;
    for (index_t j = 0; j < active_; ++j)
      if (can_move(j, e)) keep.push_back(j);
    return keep;
  }

 protected:
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

  // Keep only the samples at these positions (ascending) active.
  void keep_active(const index_t* keep, index_t count) {
    std::vector<index_t> from(keep, keep + count);
    for (index_t j = 0, k = 0; j < active_; ++j)
      if (k < count && keep[k] == j)
        ++k;
      else
        from.push_back(j);
    reorder(0, from);
    active_ = count;
  }

  // Samples left out that can move are active again, behind the others and in the order of their ids.
  void activate(const Extremes& e) {
    std::vector<index_t> from, rest;
    for (index_t j = active_; j < n_; ++j) (can_move(j, e) ? from : rest).push_back(j);
    const index_t count = index_t(from.size());
    std::sort(from.begin(), from.end(), [&](index_t a, index_t b) { return sample_[a] < sample_[b]; });
    from.insert(from.end(), rest.begin(), rest.end());
    reorder(active_, from);
    active_ += count;
  }

  index_t n_, first_, total_, active_, support_ = 0;
  int halves_, threads_;
  std::vector<index_t> sample_, position_;  // the sample at each position, each sample's position
  std::vector<double> f_;

 private:
  // Of the positions [begin, end); and 0, or NaN if a score there is not a finite number.
  std::pair<Extremes, double> extremes(index_t begin, index_t end) const {
    const double inf = std::numeric_limits<double>::infinity();
    double up0 = -inf, up1 = -inf, low0 = inf, low1 = inf, finite = 0;
    for (int h = 0; h < halves_; ++h) {
      const double *c = center_.data() + h * n_, *b = beta_.data() + h * n_, *l = lo_.data() + h * n_, *u = hi_.data() + h * n_;
      const std::int8_t* g = group_.data() + h * n_;
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

  std::vector<double> center_, lo_, hi_, beta_;
  std::vector<std::int8_t> group_;
  std::vector<Found> found_;  // by slice
};

}  // namespace maxmargin
