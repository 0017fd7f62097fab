// A step on all free variables of an inner QP at once: what takes SMO, two variables at a time, very many steps.
//
//   minimise ½ dᵀKd − sᵀd over the free variables,     Σ_{v in group} d_v = 0,     down ≤ d ≤ up
//
// From d = 0 straight to the minimum under the equalities; where a bound is nearer, to that bound, which from then on is one
// equality more, d_v fixed, and on to the minimum that is left (a primal active set method; bounds are never let go: SMO
// does that afterwards). K is factored once. With C the columns of the equalities and a = K⁻¹s, the way to the minimum is
// a − K⁻¹C μ with (Cᵀ K⁻¹ C) μ = Cᵀ a, and after the part t of a way d, a becomes a − t d: a bound that is hit costs one
// solution with the factor.
//
// K + ridge in its place: near-singular matrices are the rule. The caller judges the step by K itself.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/matrix.hpp"
#include "base/simd.hpp"

namespace maxmargin {

class FreeStep {
 public:
  // For a problem that begins.
  void reset() { past_ = {}; }
  // A step of SMO was taken; whether a look at the price of this one is due.
  bool spend() { return ++past_.spent >= past_.price; }
  // Whether steps of SMO over q variables since the last one have cost what this one would, of `count` free ones. (`vector`:
  // bytes of a score. Cycles, as measured.)
  bool due(index_t count, index_t q, std::size_t vector) {
    const double m = double(count), step = double(vector) / 8 * double(q) + 100;
    const double cycles = m * (m * m / 12 + (4.0 + double(past_.hits)) * m + 0.5 * double(q));
    past_.price = past_.patience * std::max(kSeldom, index_t(cycles / step));
    if (past_.spent < past_.price) return false;
    past_.spent = 0;
    return kFewest <= count && count <= kMost;
  }

  // Rows of the lower triangle of K of `size` variables, for the caller to fill.
  void begin(index_t size) {
    size_ = size;
    ld_ = (size + kWidth - 1) / kWidth * kWidth;
    if (factor_.size() < std::size_t(size_ * ld_)) factor_.resize(std::size_t(size_ * ld_));
  }
  double* row(index_t i) { return factor_.data() + i * ld_; }

  // Cholesky's factor of K + ridge in the place of K; false if it has none.
  bool factor(double ridge) {
    for (index_t i = 0; i < size_; ++i) row(i)[i] += ridge;
    for (index_t panel = 0; panel < size_; panel += kPanel) {
      const index_t end = std::min(size_, panel + kPanel);
      for (index_t j = 0; j + 2 <= panel; j += 2)
        for (index_t i = panel; i < end; i += 4) two_columns(i, std::min<index_t>(4, end - i), j);
      for (index_t j = panel; j < end; ++j) {
        double* own = row(j);
        const double pivot = own[j] - dot(own, own, j);
        if (!(pivot > 0.5 * ridge)) return false;
        own[j] = std::sqrt(pivot);
        for (index_t i = j + 1; i < end; ++i) row(i)[j] = (row(i)[j] - dot(row(i), own, j)) / own[j];
      }
    }
    return true;
  }

  // d; of `down` and `up` what is left, 0 for a variable that ends at its bound.
  void solve(const double* s, const std::int8_t* group, int groups, std::vector<double>& down, std::vector<double>& up,
             std::vector<double>& d) {
    group_ = group;
    groups_ = groups;
    // Where many are free of a matrix of low rank, one step after the other sends them to bounds: no reason to wait.
    const bool fewer = double(size_) < kFewer * double(std::exchange(past_.last, size_));
    if (walk(s, down, up, d) || fewer)
      past_.patience = 1;
    else
      give_up();
    for (int g = 0; g < groups; ++g) {  // what rounding has left of each group's sum, from those that end at no bound
      const auto inside = [&](index_t v) { return in(g, v) && down[v] != 0 && up[v] != 0; };
      double sum = 0, count = 0;
      for (index_t v = 0; v < size_; ++v) sum += in(g, v) ? d[v] : 0.0, count += inside(v);
      for (index_t v = 0; v < size_; ++v)
        if (inside(v)) d[v] -= sum / count;
    }
  }
  // The next step later: this one ran into too many bounds, or its matrix has no factor.
  void give_up() { past_.patience = std::min(2 * past_.patience, kPatience); }

 private:
  static constexpr index_t kFewest = 16, kMost = 2048;  // free variables of a step; its matrix: 32 MB
  static constexpr index_t kSeldom = 300;               // steps of SMO between two, at least
  static constexpr int kPatience = 16;
  static constexpr double kFewer = 0.9;  // of the variables of the last one
  static constexpr index_t kHits = 64;  // bounds that one step may run into, or half of its variables, within
  static constexpr index_t kProducts = 500'000'000;  // some tenths of a second: nobody can stop it on the way
  static constexpr int kWidth = kLanes<double>;
  static constexpr index_t kPanel = 32;  // rows: they and two more stay in the caches

  // Of the problem so far.
  struct Past {
    index_t spent = 0, price = kSeldom;  // in steps of SMO
    int patience = 1;                    // prices to wait
    index_t last = 2 * kMost, hits = kHits;  // variables of the last step, and bounds that it ran into
  };

  bool in(index_t g, index_t v) const { return groups_ == 1 || group_[v] == g; }

  // Whether the minimum was reached.
  bool walk(const double* s, std::vector<double>& down, std::vector<double>& up, std::vector<double>& d) {
    const index_t most = std::max(kHits, std::min(size_ / 2, kProducts / (size_ * size_)));
    schur_ld_ = most + groups_;
    schur_.resize(std::size_t(schur_ld_ * schur_ld_));
    d.assign(size_, 0.0);
    way_.assign(s, s + size_);
    solve_factor(way_.data());
    columns_.clear();
    which_.clear();
    past_.hits = 0;
    for (int g = 0; g < groups_; ++g) {
      std::vector<double> column(size_);
      bool any = false;
      for (index_t v = 0; v < size_; ++v) any |= (column[v] = in(g, v)) != 0;
      if (any && !add_equality(std::move(column), -1 - g)) return false;
    }
    for (;; ++past_.hits) {
      const index_t count = index_t(columns_.size());
      mu_.resize(count);
      for (index_t r = 0; r < count; ++r) mu_[r] = along(r, way_.data());
      solve_equalities();
      left_ = way_;
      for (index_t r = 0; r < count; ++r) subtract(mu_[r], columns_[r].data(), left_.data(), size_);
      for (index_t v : which_)
        if (v >= 0) left_[v] = 0;
      double part = 1;
      index_t first = -1;
      for (index_t v = 0; v < size_; ++v) {
        const double length = std::abs(left_[v]), room = std::max(left_[v] > 0 ? up[v] : -down[v], 0.0);
        if (length * part > room) part = room / length, first = v;
      }
      if (!(part >= 0)) return false;
      for (index_t v = 0; v < size_; ++v) {
        const double move = part * left_[v];
        d[v] += move;
        way_[v] -= move;
        up[v] -= move;
        down[v] -= move;
      }
      if (first < 0) return true;
      (left_[first] > 0 ? up : down)[first] = 0;
      if (past_.hits == most) return false;
      std::vector<double> column(size_, 0.0);
      column[first] = 1;
      if (!add_equality(std::move(column), first)) return false;
    }
  }

  // cᵀx for the column c of an equality: a variable, or all of a group.
  double along(index_t r, const double* x) const {
    if (which_[r] >= 0) return x[which_[r]];
    double sum = 0;
    for (index_t v = 0; v < size_; ++v) sum += in(-1 - which_[r], v) ? x[v] : 0.0;
    return sum;
  }
  // One equality more: its column of K⁻¹C, and its row of the factor of CᵀK⁻¹C. False where it follows from the others.
  bool add_equality(std::vector<double> column, index_t which) {
    solve_factor(column.data());
    columns_.push_back(std::move(column));
    which_.push_back(which);
    const index_t last = index_t(columns_.size()) - 1;
    double* own = schur_row(last);
    for (index_t c = 0; c <= last; ++c) {
      own[c] = along(last, columns_[c].data());
      const double* other = schur_row(c);
      for (index_t k = 0; k < c; ++k) own[c] -= own[k] * other[k];
      if (c < last) own[c] /= other[c];
    }
    if (!(own[last] > 0)) return false;
    own[last] = std::sqrt(own[last]);
    return true;
  }
  double* schur_row(index_t r) { return schur_.data() + r * schur_ld_; }
  // mu_ ← (CᵀK⁻¹C)⁻¹ mu_
  void solve_equalities() {
    const index_t n = index_t(mu_.size());
    for (index_t i = 0; i < n; ++i) {
      const double* own = schur_row(i);
      for (index_t k = 0; k < i; ++k) mu_[i] -= own[k] * mu_[k];
      mu_[i] /= own[i];
    }
    for (index_t i = n - 1; i >= 0; --i) {
      const double* own = schur_row(i);
      mu_[i] /= own[i];
      for (index_t k = 0; k < i; ++k) mu_[k] -= own[k] * mu_[i];
    }
  }
  static void subtract(double by, const double* x, double* from, index_t n) {
    const Vec<double> all = splat(by);
    index_t k = 0;
    for (; k + kWidth <= n; k += kWidth) store(from + k, load(from + k) - all * load(x + k));
    for (; k < n; ++k) from[k] -= by * x[k];
  }

  static double sum(Vec<double> v) {
    double s = 0;
    for (int l = 0; l < kWidth; ++l) s += v[l];
    return s;
  }
  static double dot(const double* a, const double* b, index_t n) {
    Vec<double> s0{}, s1{}, s2{}, s3{};
    index_t k = 0;
    for (; k + 4 * kWidth <= n; k += 4 * kWidth) {
      s0 += load(a + k) * load(b + k);
      s1 += load(a + k + kWidth) * load(b + k + kWidth);
      s2 += load(a + k + 2 * kWidth) * load(b + k + 2 * kWidth);
      s3 += load(a + k + 3 * kWidth) * load(b + k + 3 * kWidth);
    }
    double s = sum((s0 + s1) + (s2 + s3));
    for (; k < n; ++k) s += a[k] * b[k];
    return s;
  }

  // Columns j and j + 1, which the rows above the panel have, of rows i … i + count.
  void two_columns(index_t i, index_t count, index_t j) {
    const double *x = row(j), *y = row(j + 1);
    if (count == 4) {
      double *r[4] = {row(i), row(i + 1), row(i + 2), row(i + 3)};
      Vec<double> sx[4]{}, sy[4]{};
      index_t k = 0;
      for (; k + kWidth <= j; k += kWidth) {
        const Vec<double> vx = load(x + k), vy = load(y + k);
#pragma GCC unroll 4
        for (int l = 0; l < 4; ++l) {
          const Vec<double> v = load(r[l] + k);
          sx[l] += v * vx;
          sy[l] += v * vy;
        }
      }
      for (int l = 0; l < 4; ++l) {
        double a = sum(sx[l]), b = sum(sy[l]);
        for (index_t m = k; m < j; ++m) a += r[l][m] * x[m], b += r[l][m] * y[m];
        r[l][j] = (r[l][j] - a) / x[j];
        r[l][j + 1] = (r[l][j + 1] - b - r[l][j] * y[j]) / y[j + 1];
      }
      return;
    }
    for (index_t l = i; l < i + count; ++l) {
      row(l)[j] = (row(l)[j] - dot(row(l), x, j)) / x[j];
      row(l)[j + 1] = (row(l)[j + 1] - dot(row(l), y, j + 1)) / y[j + 1];
    }
  }

  // x ← (L Lᵀ)⁻¹ x
  void solve_factor(double* x) {
    for (index_t i = 0; i < size_; ++i) x[i] = (x[i] - dot(row(i), x, i)) / row(i)[i];
    for (index_t i = size_ - 1; i >= 0; --i) {
      const double* own = row(i);
      x[i] /= own[i];
      subtract(x[i], own, x, i);
    }
  }

  Past past_;
  index_t size_ = 0, ld_ = 0, schur_ld_ = 0;
  const std::int8_t* group_ = nullptr;  // of the variables of one call of solve()
  int groups_ = 0;
  std::vector<double> factor_, way_, left_, schur_, mu_;
  std::vector<std::vector<double>> columns_;  // K⁻¹ of each equality's
  std::vector<index_t> which_;                // the variable of an equality, or −1 − its group
};

}  // namespace maxmargin
