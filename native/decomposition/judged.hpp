// What is known of the point that a small problem has come to, from its β and f = Kβ; as decomposition/ending.py says it of one
// large problem.
//
//   score = c − f,   b_g: the mean score of a group's free variables, or else the middle of what its bounds allow
//   dual  = cᵀβ − ½ βᵀf,   gap = Σ (hi − β) max(0, score − b) + (β − lo) max(0, b − score): no term is negative
//   violation: the largest over groups of max_up score − min_low score, or of the scores themselves without a group
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/matrix.hpp"

namespace maxmargin {

// The variables of one problem.
struct ProblemView {
  index_t n;
  const double *center, *lo, *hi, *beta, *f;
  const std::int8_t* group;
  int groups;
};

struct Judged {
  double dual = 0, gap = 0, violation = 0, b[2] = {0, 0};
  double support = 0;              // variables that are not 0
  double off[2] = {0, 0};          // how far a group's sum is from its target,
  double mass[2] = {0, 0};         // and Σ|β| of it
  double largest = 0;              // magnitude m of a sample, |K(i, j)| ≤ m_i m_j
  double absolute = 0, square = 0;  // Σ |β| m, Σ (β m)²
};

// Σ x to about the rounding of the result (Neumaier).
class ExactSum {
 public:
  void add(double x) {
    const double t = sum_ + x;
    rest_ += std::abs(sum_) >= std::abs(x) ? (sum_ - t) + x : (x - t) + sum_;
    sum_ = t;
  }
  double value() const { return sum_ + rest_; }

 private:
  double sum_ = 0, rest_ = 0;
};

// The multiplier of a group, or of all variables without one.
inline double multiplier(const ProblemView& p, int g, double top, double bottom) {
  ExactSum sum;
  double near = std::isfinite(top) ? top : 0.0;  // the mean of differences is more accurate than that of scores
  index_t number = 0;
  for (index_t v = 0; v < p.n; ++v)
    if (p.group[v] == g && p.beta[v] > p.lo[v] && p.beta[v] < p.hi[v]) {
      sum.add(p.center[v] - p.f[v] - near);
      ++number;
    }
  if (number > 0) return near + sum.value() / double(number);
  const double some = std::isfinite(top) ? top : std::isfinite(bottom) ? bottom : 0.0;
  return some + 0.5 * ((std::isfinite(bottom) ? bottom : some) - some);
}

// target: one per group; magnitude(v): of the sample of variable v.
template <class Magnitude>
Judged judge(const ProblemView& p, const double* target, Magnitude&& magnitude) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  Judged out;
  double nothing = 0;
  ExactSum sum[2], dual, gap;
  double top[2] = {-inf, -inf}, bottom[2] = {inf, inf};
  for (index_t v = 0; v < p.n; ++v) {
    const int g = p.groups > 1 ? p.group[v] : 0;
    const double beta = p.beta[v], score = p.center[v] - p.f[v], m = magnitude(v);
    nothing += score - score;  // NaN for ever, if it is not a finite number
    if (beta < p.hi[v]) top[g] = std::max(top[g], score);
    if (beta > p.lo[v]) bottom[g] = std::min(bottom[g], score);
    sum[g].add(beta);
    dual.add((p.center[v] - 0.5 * p.f[v]) * beta);
    out.mass[g] += std::abs(beta);
    out.support += beta != 0;
    out.largest = std::max(out.largest, m);
    out.absolute += std::abs(beta) * m;
    out.square += beta * m * beta * m;
  }
  if (p.groups == 0) out.violation = std::max({top[0], -bottom[0], 0.0});
  for (int g = 0; g < p.groups; ++g) {
    if (top[g] - bottom[g] > -inf) out.violation = std::max(out.violation, top[g] - bottom[g]);  // of who can move
    out.off[g] = std::abs(sum[g].value() - target[g]);
    out.b[g] = multiplier(p, g, top[g], bottom[g]);
  }
  for (index_t v = 0; v < p.n; ++v) {
    const double short_of = p.center[v] - p.f[v] - (p.groups > 0 ? out.b[p.group[v]] : 0.0);
    gap.add(short_of > 0 ? (p.hi[v] - p.beta[v]) * short_of : (p.lo[v] - p.beta[v]) * short_of);
  }
  out.dual = dual.value() + nothing;
  out.gap = gap.value() + nothing;
  out.violation += nothing;
  return out;
}

}  // namespace maxmargin
