// SMO on a gathered tile (seed 003 section 3.3, with second-order selection of the second variable).
//
//   minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_{v in group} β_v fixed          score = c − Kβ
//   a step on (i, j): β_i += t, β_j −= t, score −= t (K_i − K_j);  i: largest score of those that can rise;
//   j: of those that can fall, the largest (score_i − score_j)² / (K_ii + K_jj − 2 K_ij)
//   stop: max_up score − min_low score ≤ tol, the larger of the groups'
// Without groups a step moves one variable: the largest score² / K_ii among those free to follow it.
//
// Cost: two passes of q elements per step, each one fused loop over vectors. Curvatures are kept ≥ kTau, so duplicate
// rows (curvature 0) take a long step to a bound instead of dividing by zero.
#pragma once
#include <algorithm>
#include <vector>

#include "matrix.hpp"
#include "simd.hpp"

namespace maxmargin {

struct SmoReport {
  index_t steps;
  double violation;
};

template <class T>
class InnerSmo {
 public:
  // tile[i · ld + j], ld a multiple of the vector width and zero-padded. score, beta: in and out.
  InnerSmo(const T* tile, index_t q, index_t ld, double* beta, const double* lo, const double* hi, double* score,
           const std::int8_t* group, int groups)
      : tile_(tile), q_(q), ld_(ld), beta_(beta), lo_(lo), hi_(hi), score_out_(score), groups_(groups) {
    score_.assign(ld, T(0));
    diagonal_.assign(ld, T(1));
    for (index_t v = 0; v < q; ++v) {
      score_[v] = T(score[v]);
      diagonal_[v] = tile[v * ld + v];
    }
    const int sets = std::max(groups, 1);
    up_.assign(sets, std::vector<T>(ld, -inf));
    low_.assign(sets, std::vector<T>(ld, inf));
    group_.assign(group, group + q);
    for (index_t v = 0; v < q; ++v) flag(v);
  }

  SmoReport run(double tol, index_t max_steps) {
    const SmoReport report = groups_ == 0 ? run_single(tol, max_steps) : run_pairs(tol, max_steps);
    for (index_t v = 0; v < q_; ++v) score_out_[v] = double(score_[v]);
    return report;
  }

 private:
  static constexpr T inf = std::numeric_limits<T>::infinity();
  static constexpr T kTau = T(1e-12);
  static constexpr int L = kLanes<T>;

  struct Best {
    T value;
    index_t at;
  };

  // Which way β_v may move, as numbers to add to a score: 0, or an infinity that rules it out.
  void flag(index_t v) {
    const int set = groups_ == 0 ? 0 : group_[v];
    up_[set][v] = beta_[v] < hi_[v] ? T(0) : -inf;
    low_[set][v] = beta_[v] > lo_[v] ? T(0) : inf;
  }

  static Best reduce(Vec<T> best, IVec<T> at) {
    Best b{best[0], index_t(at[0])};
    for (int l = 1; l < L; ++l)
      if (best[l] > b.value || (best[l] == b.value && at[l] < b.at)) b = {best[l], index_t(at[l])};
    return b;
  }
  static IVec<T> lane_numbers() {
    IVec<T> v{};
    for (int l = 0; l < L; ++l) v[l] = l;
    return v;
  }
  static T smallest(Vec<T> v) {
    T m = v[0];
    for (int l = 1; l < L; ++l) m = std::min(m, v[l]);
    return m;
  }

  SmoReport run_pairs(double tol, index_t max_steps) {
    std::vector<Best> top(groups_);
    std::vector<T> bottom(groups_);
    for (index_t step = 0;; ++step) {
      // Largest score that can rise, smallest that can fall; the group with the larger difference goes first.
      int set = 0;
      double violation = -1;
      for (int g = 0; g < groups_; ++g) {
        if (step == 0 || groups_ == 2) std::tie(top[g], bottom[g]) = scan(g);
        if (double(top[g].value) - double(bottom[g]) > violation) {
          violation = double(top[g].value) - double(bottom[g]);
          set = g;
        }
      }
      if (!(violation > tol) || step >= max_steps) return {step, std::max(violation, 0.0)};
      const index_t i = top[set].at, j = partner(i, set);
      const T *ki = tile_ + i * ld_, *kj = tile_ + j * ld_;
      const double curvature = std::max(double(diagonal_[i]) + double(diagonal_[j]) - 2 * double(ki[j]), double(kTau));
      double t = (double(score_[i]) - double(score_[j])) / curvature;
      if (t >= hi_[i] - beta_[i] || t >= beta_[j] - lo_[j]) {
        t = std::min(hi_[i] - beta_[i], beta_[j] - lo_[j]);
        beta_[i] = t == hi_[i] - beta_[i] ? hi_[i] : beta_[i] + t;
        beta_[j] = t == beta_[j] - lo_[j] ? lo_[j] : beta_[j] - t;
      } else {
        beta_[i] += t;
        beta_[j] -= t;
      }
      flag(i);
      flag(j);
      // Move the scores; in the same pass find the next extremes of the first group.
      const T* up = up_[0].data();
      const T* low = low_[0].data();
      Vec<T> best = splat(-inf), least = splat(inf);
      IVec<T> at{}, lane = lane_numbers();
      const Vec<T> tt = splat(T(t));
      for (index_t v = 0; v < ld_; v += L, lane += L) {
        const Vec<T> s = load(&score_[v]) - tt * (load(ki + v) - load(kj + v));
        store(&score_[v], s);
        const Vec<T> rise = s + load(up + v), fall = s + load(low + v);
        const auto better = rise > best;
        best = better ? rise : best;
        at = better ? lane : at;
        least = fall < least ? fall : least;
      }
      top[0] = reduce(best, at);
      bottom[0] = smallest(least);
    }
  }

  std::pair<Best, T> scan(int g) const {
    Vec<T> best = splat(-inf), least = splat(inf);
    IVec<T> at{}, lane = lane_numbers();
    for (index_t v = 0; v < ld_; v += L, lane += L) {
      const Vec<T> s = load(&score_[v]);
      const Vec<T> rise = s + load(&up_[g][v]), fall = s + load(&low_[g][v]);
      const auto better = rise > best;
      best = better ? rise : best;
      at = better ? lane : at;
      least = fall < least ? fall : least;
    }
    return {reduce(best, at), smallest(least)};
  }

  index_t partner(index_t i, int set) const {
    const T* ki = tile_ + i * ld_;
    const T* low = low_[set].data();
    const Vec<T> top = splat(score_[i]), kii = splat(diagonal_[i]), tau = splat(kTau);
    Vec<T> best = splat(-inf);
    IVec<T> at{}, lane = lane_numbers();
    for (index_t v = 0; v < ld_; v += L, lane += L) {
      const Vec<T> difference = top - (load(&score_[v]) + load(low + v));
      const Vec<T> raw = (kii - load(ki + v)) + (load(&diagonal_[v]) - load(ki + v));
      const Vec<T> curvature = raw > tau ? raw : tau;
      const Vec<T> gain = difference * difference / curvature;
      const auto better = (difference > Vec<T>{}) & (gain > best);
      best = better ? gain : best;
      at = better ? lane : at;
    }
    return reduce(best, at).at;
  }

  SmoReport run_single(double tol, index_t max_steps) {
    const T* up = up_[0].data();
    const T* low = low_[0].data();
    for (index_t step = 0;; ++step) {
      Vec<T> best = splat(T(0)), worst = splat(T(0));
      IVec<T> at{}, lane = lane_numbers();
      const Vec<T> tau = splat(kTau);
      for (index_t v = 0; v < ld_; v += L, lane += L) {
        const Vec<T> s = load(&score_[v]);
        const Vec<T> rise = s + load(up + v), fall = -(s + load(low + v));
        Vec<T> move = rise > fall ? rise : fall;  // ≤ 0 where neither direction helps
        move = move > Vec<T>{} ? move : Vec<T>{};
        const Vec<T> d = load(&diagonal_[v]);
        const Vec<T> gain = move * move / (d > tau ? d : tau);
        const auto better = gain > best;
        best = better ? gain : best;
        at = better ? lane : at;
        worst = move > worst ? move : worst;
      }
      const double violation = -double(smallest(-worst));
      if (!(violation > tol) || step >= max_steps) return {step, violation};
      const index_t i = reduce(best, at).at;
      const double before = beta_[i];
      const double curvature = std::max(double(diagonal_[i]), double(kTau));
      beta_[i] = std::clamp(before + double(score_[i]) / curvature, lo_[i], hi_[i]);
      flag(i);
      const Vec<T> tt = splat(T(beta_[i] - before));
      const T* ki = tile_ + i * ld_;
      for (index_t v = 0; v < ld_; v += L) store(&score_[v], load(&score_[v]) - tt * load(ki + v));
    }
  }

  const T* tile_;
  index_t q_, ld_;
  double* beta_;
  const double *lo_, *hi_;
  double* score_out_;
  int groups_;
  std::vector<T> score_, diagonal_;
  std::vector<std::vector<T>> up_, low_;
  std::vector<std::int8_t> group_;
};

}  // namespace maxmargin
