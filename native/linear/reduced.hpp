// The reduced problem of cutting planes by an active-set method, warm from the last solution.
//
//   minimise  ½ xᵀHx − fᵀx,    E x = e,   x >= 0          t variables, m rows of E, a feasible x to start from
//
// On the active variables A = {x > 0} the minimum follows from M = H + EᵀE, which has the same minimum where E x = e and
// a Cholesky factor wherever the cuts together with E are independent:
//   x_A = M⁻¹(f + Eᵀ(e + y)),   (E M⁻¹ Eᵀ) y = e − E M⁻¹(f + Eᵀe)
// A step towards it ends at the first variable that reaches zero, which leaves A; at the minimum the variable with the
// most negative reduced cost enters. From turn to turn of the cutting planes A hardly changes: a few steps, each O(|A|²).
//
// Near-parallel cuts, or more cuts than features, make M singular. A pivot is then held at kFloor of the diagonal, and the
// step goes on along its direction, which has next to no curvature, to the true minimum on that line or to the bound that
// lets one of the cuts go.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/cutting_plane.hpp"

namespace maxmargin::linear {

class ActiveSet {
 public:
  ActiveSet(const double* H, const double* f, const double* E, const double* e, index_t t, index_t m)
      : H_(H), f_(f), E_(E), e_(e), t_(t), m_(m), shut_(t, 0), work_(t * (m + 3)), schur_(m * m), rhs_(m), diagonal_(t) {
    for (index_t j = 0; j < t; ++j) diagonal_[j] = entry(j, j);
  }

  // x: feasible on entry, optimal on return; y: the multipliers of E x = e. Returns the steps taken.
  index_t solve(double* x, double* y) {
    for (index_t j = 0; j < t_; ++j)
      if (x[j] > 0) enter(j);
    index_t step = 0;
    for (const index_t most = 20 + 10 * t_; step < most; ++step) {
      const index_t first = move(x, minimum(y));
      if (first >= 0) {
        shut_[active_[first]] = !careful_;
        leave(first);
        continue;
      }
      index_t next = entering(x, y);
      if (next < 0 && !careful_ && std::count(shut_.begin(), shut_.end(), 1)) {
        std::fill(shut_.begin(), shut_.end(), 0);
        careful_ = true;
        next = entering(x, y);
      }
      if (next < 0) break;
      enter(next);
    }
    return step;
  }

 private:
  static constexpr double kFloor = 1e-13;  // of a pivot, in units of the diagonal: some hundred roundings
  static constexpr double kClose = 1e-13;  // of a reduced cost, in units of its terms: the same

  // Towards the target, as far as x >= 0 allows; the place in A of the variable that is in the way, or -1.
  // Where E x = e leaves an active variable no room its target is 0, rounded: it is no obstacle.
  //
  // A variable that came in and had to leave before anything moved stays shut while others are tried. When none is left
  // (many balances to keep, all of them by variables at 0) the lowest number goes first, which cannot go in circles.
  index_t move(double* x, const double* target) {
    const index_t count = index_t(active_.size());
    double share = flat() ? reach(x, target) : 1.0, largest = 0, moved = 0;
    for (index_t p = 0; p < count; ++p) largest = std::max(largest, std::fabs(target[p]) * scale(active_[p]));
    const double none = kClose * largest;
    index_t first = -1;
    for (index_t p = 0; p < count; ++p) {
      const double from = x[active_[p]], fall = from - target[p];
      if ((share <= 1 ? -target[p] : fall) * scale(active_[p]) <= none || from > share * fall) continue;
      const double part = from / fall;
      if (careful_ && first >= 0 && part == share && active_[first] < active_[p]) continue;
      share = part, first = p;
    }
    for (index_t p = 0; p < count; ++p) {
      const index_t j = active_[p];
      const double to = p == first ? 0.0 : std::max(0.0, x[j] + share * (target[p] - x[j]));
      moved = std::max(moved, std::fabs(to - x[j]) * scale(j));
      x[j] = to;
    }
    if (moved > none) std::fill(shut_.begin(), shut_.end(), 0), careful_ = false;
    return first;
  }

  // Whether a pivot was held: the target is then the minimum of something stiffer than M.
  bool flat() const {
    for (std::size_t p = 0; p < active_.size(); ++p)
      if (factor_[p][p] * factor_[p][p] <= 2 * kFloor * diagonal_[active_[p]]) return true;
    return false;
  }

  // The minimum on the line from x through the target, in units of their distance; 1e300 where rounding hides it.
  double reach(const double* x, const double* target) const {
    double gain = 0, curve = 0, size = 0;
    for (std::size_t p = 0; p < active_.size(); ++p) {
      const index_t i = active_[p];
      double left = f_[i], bend = 0, bends = 0;
      for (std::size_t q = 0; q < active_.size(); ++q) {
        const double h = H_[i * t_ + active_[q]];
        const double d = target[q] - x[active_[q]];
        left -= h * x[active_[q]], bend += h * d, bends += std::fabs(h * d);
      }
      const double d = target[p] - x[i];
      gain += left * d, curve += bend * d, size += bends * std::fabs(d);
    }
    return gain <= 0 ? 0.0 : curve > kClose * size ? gain / curve : 1e300;
  }

  double scale(index_t j) const { return std::sqrt(diagonal_[j]); }

  double entry(index_t i, index_t j) const {
    double value = H_[i * t_ + j];
    for (index_t r = 0; r < m_; ++r) value += E_[r * t_ + i] * E_[r * t_ + j];
    return value;
  }

  // One more row of the factor.
  void enter(index_t j) {
    const index_t k = index_t(active_.size());
    std::vector<double> row(k + 1);
    for (index_t p = 0; p < k; ++p) row[p] = (entry(active_[p], j) - dot(factor_[p].data(), row.data(), p)) / factor_[p][p];
    row[k] = std::sqrt(std::max(diagonal_[j] - dot(row.data(), row.data(), k), kFloor * diagonal_[j]));
    factor_.push_back(std::move(row));
    active_.push_back(j);
  }

  // Row p leaves the factor; rotations of neighbouring columns make the rows below it triangular again.
  void leave(index_t p) {
    factor_.erase(factor_.begin() + p);
    active_.erase(active_.begin() + p);
    for (index_t i = p, k = index_t(active_.size()); i < k; ++i) {
      const double a = factor_[i][i], b = factor_[i][i + 1], size = std::hypot(a, b), c = a / size, s = b / size;
      for (index_t r = i; r < k; ++r) {
        double &left = factor_[r][i], &right = factor_[r][i + 1], moved = c * left + s * right;
        right = c * right - s * left;
        left = moved;
      }
      factor_[i].resize(i + 1);
    }
  }

  void forward(double* v) const {
    for (index_t p = 0; p < index_t(active_.size()); ++p) v[p] = (v[p] - dot(factor_[p].data(), v, p)) / factor_[p][p];
  }
  void backward(double* v) const {
    for (index_t p = index_t(active_.size()) - 1; p >= 0; --p) {
      const double value = v[p] /= factor_[p][p];
      for (index_t q = 0; q < p; ++q) v[q] -= factor_[p][q] * value;
    }
  }

  // The minimum on the active variables; y is moved only as far as they determine it.
  const double* minimum(double* y) {
    const index_t k = index_t(active_.size());
    double *x = work_.data(), *rows = x + t_;
    for (index_t p = 0; p < k; ++p) {
      const index_t j = active_[p];
      x[p] = f_[j];
      for (index_t r = 0; r < m_; ++r) x[p] += E_[r * t_ + j] * (e_[r] + y[r]), rows[r * k + p] = E_[r * t_ + j];
    }
    forward(x);
    for (index_t r = 0; r < m_; ++r) {
      forward(rows + r * k);
      for (index_t s = 0; s <= r; ++s) schur_[r * m_ + s] = dot(rows + r * k, rows + s * k, k);
      rhs_[r] = e_[r] - dot(rows + r * k, x, k);
    }
    correct();
    for (index_t r = 0; r < m_; ++r) {
      y[r] += rhs_[r];
      for (index_t p = 0; p < k; ++p) x[p] += rhs_[r] * rows[r * k + p];
    }
    backward(x);
    return x;
  }

  // rhs ← schur⁻¹ rhs; rows of E that the others already determine on the active variables get 0.
  void correct() {
    std::vector<char> used(m_, 1);
    for (index_t r = 0; r < m_; ++r) {
      const double before = schur_[r * m_ + r];
      for (index_t s = 0; s <= r; ++s) {
        if (!used[s]) continue;
        double value = schur_[r * m_ + s];
        for (index_t q = 0; q < s; ++q)
          if (used[q]) value -= schur_[r * m_ + q] * schur_[s * m_ + q];
        if (s < r) schur_[r * m_ + s] = value / schur_[s * m_ + s];
        else if (value > kFloor * before && value > 0) schur_[r * m_ + r] = std::sqrt(value);
        else used[r] = 0;
      }
    }
    for (index_t r = 0; r < m_; ++r) {
      if (!used[r]) continue;
      for (index_t q = 0; q < r; ++q)
        if (used[q]) rhs_[r] -= schur_[r * m_ + q] * rhs_[q];
      rhs_[r] /= schur_[r * m_ + r];
    }
    for (index_t r = m_ - 1; r >= 0; --r) {
      if (!used[r]) {
        rhs_[r] = 0;
        continue;
      }
      for (index_t q = r + 1; q < m_; ++q)
        if (used[q]) rhs_[r] -= schur_[q * m_ + r] * rhs_[q];
      rhs_[r] /= schur_[r * m_ + r];
    }
  }

  // The variable whose entry promises most, or -1 at the optimum.
  index_t entering(const double* x, const double* y) {
    std::vector<char> inside(t_, 0);
    for (index_t j : active_) inside[j] = 1;
    index_t best = -1;
    double most = 0;
    for (index_t j = 0; j < t_; ++j) {
      if (inside[j] || shut_[j]) continue;
      double cost = -f_[j], size = std::fabs(f_[j]);
      for (index_t i : active_) cost += H_[j * t_ + i] * x[i], size += std::fabs(H_[j * t_ + i] * x[i]);
      for (index_t r = 0; r < m_; ++r) {
        const double row = E_[r * t_ + j];
        cost -= row * y[r], size += std::fabs(row * y[r]);
      }
      if (!(cost < -kClose * size && cost * cost > most * diagonal_[j])) continue;
      most = cost * cost / diagonal_[j], best = j;
      if (careful_) break;
    }
    return best;
  }

  const double *H_, *f_, *E_, *e_;
  const index_t t_, m_;
  std::vector<index_t> active_;
  std::vector<std::vector<double>> factor_;
  std::vector<char> shut_;
  std::vector<double> work_, schur_, rhs_, diagonal_;
  bool careful_ = false;
};

// maximise over β  C·⟨offset, β⟩ − ½C² βᵀGβ,   β >= 0,  Σβ <= 1,  balance·β = 0 (rows × t), from a feasible β.
//
// In variables x_j = β_j·size_j·C/level and a slack for Σβ <= 1, so that values, products and balances are of order one.
// `gram` holds G in the first t rows and columns of a matrix of `pitch` columns. Returns the intercepts: the multipliers of
// the balances.
inline std::vector<double> reduced_problem(const double* gram, index_t pitch, const double* offset, double C,
                                           const double* balance, index_t rows, const double* size, double level,
                                           index_t t, double* beta) {
  const index_t n = t + 1, m = rows + 1;
  std::vector<double> H(n * n, 0.0), f(n, 0.0), E(m * n, 0.0), e(m, 0.0), x(n), y(m, 0.0), unit(rows);
  for (index_t i = 0; i < t; ++i)
    for (index_t j = 0; j < t; ++j) H[i * n + j] = gram[i * pitch + j] / size[i] / size[j] * level;
  double used = 0;
  for (index_t j = 0; j < t; ++j) {
    f[j] = offset[j] / size[j];
    E[j] = level / (C * size[j]);
    x[j] = beta[j] / E[j];
    used += beta[j];
  }
  E[t] = e[0] = 1;
  x[t] = std::max(0.0, 1 - used);
  for (index_t r = 0; r < rows; ++r) {  // classes of little weight count as much as others
    unit[r] = std::numeric_limits<double>::min();
    for (index_t j = 0; j < t; ++j) unit[r] = std::max(unit[r], std::fabs(balance[r * t + j] / size[j]));
    for (index_t j = 0; j < t; ++j) E[(r + 1) * n + j] = balance[r * t + j] / size[j] / unit[r];
  }
  ActiveSet(H.data(), f.data(), E.data(), e.data(), n, m).solve(x.data(), y.data());
  const double largest = *std::max_element(x.begin(), x.end() - 1);
  for (index_t j = 0; j < t; ++j) beta[j] = x[j] > 1e-13 * largest ? x[j] * E[j] : 0.0;  // the rest is rounding
  for (index_t r = 0; r < rows; ++r) unit[r] = y[r + 1] / unit[r];
  return unit;
}

}  // namespace maxmargin::linear
