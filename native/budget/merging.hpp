// The merging problem and the search for the best partner. Section 3 of Glasmachers and Qaadan, "Speeding Up Budgeted
// SGD SVM Training with Precomputed Golden Section Search".
//
// x_i (length p, the smallest of the model) is merged with x_j (length q >= p) of the same label into z = h x_i +
// (1-h) x_j. With t = gamma |x_i - x_j|^2, kappa = exp(-t), k1 = kappa^((1-h)^2), k2 = kappa^(h^2), ratio r = q/p and
// rho the cosine between the two coefficient vectors (1 when there is one output), the weight degradation is
//
//     WD = p^2 * [ 1 + r^2 + 2 rho r kappa - max_h (k1^2 + r^2 k2^2 + 2 rho r k1 k2) ]
//
// With m = 1/(1+r) <= 1/2 the maximum has h <= 1/2. For rho = 1 it solves a = ln(r) + t tanh(a/2), h = 1/(1 + e^a),
// taking the largest root a; the right side is concave in a > 0, so Newton's method from a = ln(r) + t falls
// monotonically on it. For rho in [0, 1], with x = k1 / (r k2) = exp(-t (1-2h)) / r, it solves
//
//     h = phi(x),   phi(x) = x (x + rho) / (1 + 2 rho x + x^2),   phi'(x) = (rho (1 + x^2) + 2 x) / (1 + 2 rho x + x^2)^2
//
// which is the same equation with sinh(a) / (cosh(a) + rho) for tanh(a/2), a = -ln(x): also concave, so Newton's method
// from h = 0 rises monotonically to the smallest root.
//
// Tables. Scaled, ours: WD = p^2 (1-kappa)^2 G(m, v), v = t/(4+t). G is smooth and lies between 1/2 and 2 on the whole
// half square, so WD is exact to the table's relative error as kappa -> 1 and exactly p^2 as kappa -> 0; p^2 is common to
// all partners. Uniform, the paper's: WD = (p+q)^2 W(m, kappa) on the whole unit square. Both are for rho = 1; with
// several outputs rho is a third parameter, and kLookupWd takes Newton steps for all candidates side by side instead.
// The paper does not say which h the pair chosen by kLookupWd is merged with; here it is solved for, with either table.
//
// Drop rule, ours, which can be turned off: when even the best partner leaves all but 1e-4 of p^2, the merge is a removal
// in all but name, and is made one: which of many equally useless partners came first would be up to rounding.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "budget/simd.hpp"
#include "base/matrix.hpp"

namespace maxmargin::budget {

enum class Search : int { kLookupWd = 0, kLookupH = 1, kGolden = 2, kGoldenPrecise = 3 };

// G and h on a grid: row a is m = a / (2 (size - 1)), column b is v = b / (size - 1). If uniform, W and h: row a is
// m = a / (size - 1), column b is kappa = b / (size - 1).
struct MergeTable {
  int size;
  bool uniform;
  std::vector<float> degradation, mixing;
};

// 1 - exp(-t) of one number for t >= 0 to full relative precision: by its series where the difference would cancel.
[[gnu::always_inline]] inline double one_minus_exp(double t) {
  const double s = t < 0.35 ? t : 0.35;
  double p = 1 - s * (1.0 / 14);  // t - t^2/2! + t^3/3! ..., nested; the remainder is below 0.35^14 / 15! = 3e-19
  p = 1 - s * (1.0 / 13) * p;
  p = 1 - s * (1.0 / 12) * p;
  p = 1 - s * (1.0 / 11) * p;
  p = 1 - s * (1.0 / 10) * p;
  p = 1 - s * (1.0 / 9) * p;
  p = 1 - s * (1.0 / 8) * p;
  p = 1 - s * (1.0 / 7) * p;
  p = 1 - s * (1.0 / 6) * p;
  p = 1 - s * (1.0 / 5) * p;
  p = 1 - s * (1.0 / 4) * p;
  p = 1 - s * (1.0 / 3) * p;
  p = 1 - s * (1.0 / 2) * p;
  return t < 0.35 ? s * p : 1 - exp(-t);
}

// WD / p^2 at a given h. Differences that vanish with t, or with h for a large ratio, are formed without cancellation.
[[gnu::always_inline]] inline double degradation(double t, double h, double ratio, double rho) {
  const double far = t * (1 - h) * (1 - h), near = t * h * h;
  return one_minus_exp(2 * far) + ratio * ratio * one_minus_exp(2 * near) -
         2 * rho * ratio * exp(-(far + near)) * one_minus_exp(2 * t * h * (1 - h));
}

// The optimal h for rho = 1.
inline double exact_mixing(double t, double ratio) {
  const double b = std::log(ratio);
  double a = b + t;
  for (int i = 0; i < 60; ++i) {
    const double e = std::exp(-a), th = (1 - e) / (1 + e);
    const double slope = 1 - 0.5 * t * (1 - th * th);
    if (!(slope > 0)) break;
    const double step = (a - b - t * th) / slope;
    a -= step;
    if (!(std::abs(step) > 1e-14 * (1 + a))) break;
  }
  return 1 / (1 + std::exp(a > 0 ? a : 0.0));
}

constexpr index_t kRemove = -2;
constexpr double kUseless = 1 - 1e-4;
// Largest ratio that is told from infinity: its square is a number, and h is 0 to any precision.
template <class Real>
constexpr Real kLongest = sizeof(Real) == 4 ? Real(1e30) : Real(1e150);

struct Partner {
  index_t slot = -1;  // -1: nobody has the label; kRemove: no partner is of any use
  double score = std::numeric_limits<double>::infinity();  // WD / p^2 at this h
  double h = 0;
};

// Candidates of one search, one entry per slot (padded to whole panels): t to x_i, the ratio |a_j| / |a_i| (0: not a
// candidate) and rho.
template <class Real>
struct Candidates {
  explicit Candidates(index_t slots) : ratio(slots), rho(slots) {}
  const Real* t = nullptr;
  index_t slots = 0;
  bool single = true;  // rho == 1 everywhere
  Aligned<Real> ratio, rho;
};

template <class Real>
class PartnerSearch {
 public:
  PartnerSearch(std::shared_ptr<const MergeTable> table, index_t slots)
      : table_(std::move(table)), offset_(slots), wm_(slots), wv_(slots), d2_(slots), h_(slots), score_(slots) {}

  // The partner of least degradation as this method sees it; `score` is what merging with it at its h really costs.
  Partner find(Search method, const Candidates<Real>& c) {
    Partner best = search(method, c);
    if (best.slot >= 0) best.score = degradation(c.t[best.slot], best.h, c.ratio[best.slot], c.rho[best.slot]);
    return best;
  }

 private:
  Partner search(Search method, const Candidates<Real>& c) {
    switch (method) {
      case Search::kLookupWd:
        return c.single ? lookup_degradation(c) : newton(c);
      case Search::kLookupH:
        return lookup_mixing(c);
      case Search::kGolden:
        return golden(c, 1.0, kCoarseSteps);
      default:
        return golden(c, 0.5, kPreciseSteps);
    }
  }

  static constexpr double kGoldenRatio = 0.61803398874989484820;
  static constexpr int kCoarseSteps = 10;   // 0.618^10 < 0.01, the paper's epsilon, on [0, 1]
  static constexpr int kPreciseSteps = 47;  // 0.5 * 0.618^47 < 1e-10 on [0, 1/2], where the higher mode is

  // After 4 steps WD is within 3e-4 of the least (worst at r = 1, t = 2, where the root is double), within 1e-7 as a rule.
  static constexpr int kNewtonSteps = 4;
  static constexpr Real kLeastSlope = Real(1e-3);  // the slope vanishes at the double root alone

  // Cell and place in the cell of every candidate, and (1-kappa)^2 for the scaled table.
  void locate(const Candidates<Real>& c) {
    if (table_->uniform) return locate_uniform(c);
    const int n = table_->size;
    const Real scale = Real(n - 1);
    const Real* t = c.t;
    const Real* ratio = c.ratio.data();
    int* offset = offset_.data();
    Real *wm = wm_.data(), *wv = wv_.data(), *d2 = d2_.data();
#pragma omp simd
    for (index_t j = 0; j < c.slots; ++j) {
      const Real m = Real(2) / (1 + (ratio[j] > 1 ? ratio[j] : Real(1))) * scale;
      const Real v = t[j] / (4 + t[j]);
      const Real column = v * scale;
      // 1 - exp(-t), by its series where the difference would cancel (error below t^5/120 = 5e-8 of t).
      const Real series = t[j] * (1 - t[j] * (Real(1. / 2) - t[j] * (Real(1. / 6) - t[j] * Real(1. / 24))));
      const Real distance = t[j] < Real(0.05) ? series : 1 - exp(-t[j]);
      int a = int(m), b = int(column);
      a = a < n - 2 ? a : n - 2;
      b = b < n - 2 ? b : n - 2;
      offset[j] = a * n + b;
      wm[j] = m - Real(a);
      wv[j] = column - Real(b);
      d2[j] = distance * distance;
    }
  }

  void locate_uniform(const Candidates<Real>& c) {
    const int n = table_->size;
    const Real scale = Real(n - 1);
    const Real* t = c.t;
    const Real* ratio = c.ratio.data();
    int* offset = offset_.data();
    Real *wm = wm_.data(), *wv = wv_.data();
#pragma omp simd
    for (index_t j = 0; j < c.slots; ++j) {
      const Real m = scale / (1 + (ratio[j] > 1 ? ratio[j] : Real(1)));
      const Real column = exp(-t[j]) * scale;
      int a = int(m), b = int(column);
      a = a < n - 2 ? a : n - 2;
      b = b < n - 2 ? b : n - 2;
      offset[j] = a * n + b;
      wm[j] = m - Real(a);
      wv[j] = column - Real(b);
    }
  }

  Real bilinear(const float* cell, Real wm, Real wv) const {
    const float* below = cell + table_->size;
    const Real first = cell[0] + wv * (cell[1] - cell[0]);
    const Real second = below[0] + wv * (below[1] - below[0]);
    return first + wm * (second - first);
  }

  Partner lookup_degradation(const Candidates<Real>& c) {
    locate(c);
    const float* table = table_->degradation.data();
    const bool uniform = table_->uniform;
    Partner best;
    double lowest = std::numeric_limits<double>::infinity();
    for (index_t j = 0; j < c.slots; ++j) {
      if (!(c.ratio[j] > 0)) continue;
      const double sum = 1 + double(c.ratio[j]), factor = uniform ? sum * sum : double(d2_[j]);
      const double score = factor * double(bilinear(table + offset_[j], wm_[j], wv_[j]));
      if (score < lowest) {
        lowest = score;
        best.slot = j;
      }
    }
    if (best.slot >= 0) best.h = exact_mixing(c.t[best.slot], c.ratio[best.slot]);
    return best;
  }

  Partner lookup_mixing(const Candidates<Real>& c) {
    locate(c);
    const float* table = table_->mixing.data();
    for (index_t j = 0; j < c.slots; ++j) h_[j] = bilinear(table + offset_[j], wm_[j], wv_[j]);
    return evaluate(c);
  }

  // h of every candidate by Newton steps, one step for all of them at a time so that lanes run over the candidates.
  Partner newton(const Candidates<Real>& c) {
    const Real *t_ = c.t, *ratio = c.ratio.data(), *rho_ = c.rho.data();
    double* h_io = h_.data();
    std::fill(h_io, h_io + c.slots, 0.0);
    for (int step = 0; step < kNewtonSteps; ++step)
#pragma omp simd
      for (index_t j = 0; j < c.slots; ++j) {
        const Real t = t_[j], rho = rho_[j], h = Real(h_io[j]), r = ratio[j] > 1 ? ratio[j] : Real(1);
        const Real x = exp(-t * (1 - 2 * h)) / r, scale = 1 / (1 + x * (2 * rho + x));
        const Real slope = 1 - 2 * t * x * (rho * (1 + x * x) + 2 * x) * scale * scale;
        const Real next = h + (x * (x + rho) * scale - h) / (slope > kLeastSlope ? slope : kLeastSlope);
        const Real positive = next > 0 ? next : Real(0);  // rho < 0, which only a refit can bring about
        h_io[j] = positive < Real(0.5) ? positive : Real(0.5);
      }
    return evaluate(c);
  }

  // WD / p^2 of every candidate at its h; the first of the smallest wins.
  Partner evaluate(const Candidates<Real>& c) {
    const Real *t_ = c.t, *ratio_ = c.ratio.data(), *rho_ = c.rho.data();
    const double* h_in = h_.data();
    double* score = score_.data();
#pragma omp simd
    for (index_t j = 0; j < c.slots; ++j) {
      const double wd = degradation(t_[j], h_in[j], ratio_[j], rho_[j]);
      score[j] = ratio_[j] > 0 ? wd : std::numeric_limits<double>::infinity();
    }
    Partner best;
    for (index_t j = 0; j < c.slots; ++j)
      if (score[j] < best.score) best = {j, score[j], h_in[j]};
    return best;
  }

  static double length(double t, double h, double r, double rho) {
    const double k1 = exp(-t * (1 - h) * (1 - h)), k2 = exp(-t * h * h);
    return k1 * k1 + r * r * k2 * k2 + 2 * rho * r * k1 * k2;
  }

  // Golden section search for the longest z on [0, high], all candidates of a block side by side.
  Partner golden(const Candidates<Real>& c, double high, int steps) {
    constexpr int W = 16;
    for (index_t first = 0; first < c.slots; first += W) {
      double t[W], r[W], rho[W], low[W], width[W], inner[W], outer[W];
      for (int i = 0; i < W; ++i) {
        t[i] = c.t[first + i], r[i] = c.ratio[first + i], rho[i] = c.rho[first + i];
        low[i] = 0;
        width[i] = high;
      }
#pragma omp simd
      for (int i = 0; i < W; ++i) {
        inner[i] = length(t[i], (1 - kGoldenRatio) * high, r[i], rho[i]);
        outer[i] = length(t[i], kGoldenRatio * high, r[i], rho[i]);
      }
      for (int s = 0; s < steps; ++s) {
#pragma omp simd
        for (int i = 0; i < W; ++i) {
          const bool left = inner[i] > outer[i];
          low[i] = left ? low[i] : low[i] + (1 - kGoldenRatio) * width[i];
          width[i] *= kGoldenRatio;
          const double h = low[i] + (left ? 1 - kGoldenRatio : kGoldenRatio) * width[i];
          const double value = length(t[i], h, r[i], rho[i]);
          const double kept = left ? inner[i] : outer[i];
          inner[i] = left ? value : kept;
          outer[i] = left ? kept : value;
        }
      }
      for (int i = 0; i < W; ++i) h_[first + i] = low[i] + 0.5 * width[i];
    }
    return evaluate(c);
  }

  std::shared_ptr<const MergeTable> table_;
  Aligned<int> offset_;
  Aligned<Real> wm_, wv_, d2_;
  Aligned<double> h_, score_;
};

}  // namespace maxmargin::budget
