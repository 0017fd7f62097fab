// Passes for Crammer & Singer's joint machine of K classes: outputs, worst classes, sums of rows, the search on a line.
//
// Conventions: scores s[i*K + c] = <x_i, w_c> + shift_c. The loss of sample i with label y is
//   max over c of  [c != y] + s_ic - s_iy,   which is 0 at c = y;
// the class that attains it is the sample's worst one.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "linear/descent.hpp"

namespace maxmargin::linear {

// out[i*K + c] = <x_i, w_c> + shift_c for the rows in [begin, end)
inline void joint_outputs(const Matrix& matrix, const double* w, const double* shift, index_t classes, index_t begin,
                          index_t end, double* out, int threads) {
  std::visit(
      [&](const auto& x) {
        const index_t count = end - begin;
        for_slices(count, slice_size(count, per_row(x) * classes), threads, [&](index_t first, index_t last) {
          for (index_t i = begin + first; i < begin + last; ++i)
            for (index_t c = 0; c < classes; ++c) out[i * classes + c] = row_dot(x, i, w + c * x.cols) + shift[c];
        });
      },
      matrix);
}

// Row c of sum (K x d) += Σ_k coef_k * x_{rows_k} over starts_c <= k < starts_{c+1}; a class is one slice.
inline void joint_add(const Matrix& matrix, const index_t* rows, const double* coef, const index_t* starts,
                      index_t classes, double* sum, int threads) {
  std::visit(
      [&](const auto& x) {
        const bool small = starts[classes] * per_row(x) < kSliceWork;
        for_slices(classes, small ? classes : 1, threads, [&](index_t first, index_t last) {
          for (index_t c = first; c < last; ++c)
            add_range(x, rows + starts[c], coef + starts[c], starts[c + 1] - starts[c], sum + c * x.cols);
        });
      },
      matrix);
}

struct Worst {
  index_t at;         // class
  double loss, rise;  // at scores s + k*q, and its derivative by k
};

// Of classes with the same loss the one that rises fastest, so that `rise` is the derivative to the right.
inline Worst worst_class(const double* s, const double* q, double k, index_t classes, index_t own) {
  const double base = s[own] + k * q[own];
  Worst worst{own, 0.0, 0.0};
  for (index_t c = 0; c < classes; ++c) {
    const double loss = 1.0 + (s[c] + k * q[c] - base);
    if (loss < worst.loss || c == own) continue;
    const double rise = q[c] - q[own];
    if (loss > worst.loss || rise > worst.rise) worst = {c, loss, rise};
  }
  return worst;
}

// Σ over [0, count) of value(i), which looks at all classes.
template <class Value>
double sum_samples(index_t count, index_t classes, int threads, const Value& value) {
  return sum_slices(count, slice_size(count, 4 * classes), threads, [&](index_t begin, index_t end) {
    double sum = 0;
    for (index_t i = begin; i < end; ++i) sum += value(i);
    return sum;
  });
}

// out_i = the worst class of sample i at scores (1-mix) * s + mix * other.
inline void joint_worst(const double* s, const double* other, double mix, const index_t* label, index_t n,
                        index_t classes, index_t* out, int threads) {
  for_slices(n, slice_size(n, 4 * classes), threads, [&](index_t begin, index_t end) {
    std::vector<double> mixed(classes);
    for (index_t i = begin; i < end; ++i) {
      const double *a = s + i * classes, *b = other + i * classes;
      for (index_t c = 0; c < classes; ++c) mixed[c] = (1 - mix) * a[c] + mix * b[c];
      out[i] = worst_class(mixed.data(), mixed.data(), 0.0, classes, label[i]).at;
    }
  });
}

// s += k * q; returns the risk Σ weight_i * loss_i there.
inline double joint_advance(double* s, const double* q, double k, const index_t* label, const double* weight,
                            index_t n, index_t classes, int threads) {
  return sum_samples(n, classes, threads, [&](index_t i) {
    double* row = s + i * classes;
    if (k != 0)
      for (index_t c = 0; c < classes; ++c) row[c] += k * q[i * classes + c];
    return weight[i] * worst_class(row, row, 0.0, classes, label[i]).loss;
  });
}

// argmin over 0 <= k <= far of  ½ quad k² + lin k + Σ weight_i * loss_i(s + k q),  by bisection to the last bits.
//
// A sample whose worst class is the same at both ends of the bracket has a straight loss inside it: its rise is added
// up once and for all and the sample is looked at no more. About half of the others leave at each step, so the whole
// search costs some four passes over the scores.
inline double joint_search(const double* s, const double* q, const index_t* label, const double* weight, double quad,
                           double lin, double far, index_t n, index_t classes, int threads) {
  struct Open {
    index_t row, low, high, now;  // worst classes at both ends of the bracket and at the point tried last
    double rise;                  // at that point, times the weight
  };
  std::vector<Open> open(n);
  for (index_t i = 0; i < n; ++i) open[i].row = i;
  double straight = lin;
  const auto slope = [&](double k) {
    const index_t count = index_t(open.size());
    const double bent = sum_samples(count, classes, threads, [&](index_t j) {
      Open& o = open[j];
      const index_t i = o.row;
      const Worst worst = worst_class(s + i * classes, q + i * classes, k, classes, label[i]);
      o.now = worst.at;
      return o.rise = weight[i] * worst.rise;
    });
    return quad * k + straight + bent;
  };
  const auto lower_end = [&] { for (Open& o : open) o.low = o.now; };
  if (slope(0) >= 0) return 0;
  lower_end();
  double low = 0, high = 1;
  for (; slope(high) < 0; low = high, high *= 2) {
    if (high >= far) return far;
    lower_end();
  }
  for (Open& o : open) o.high = o.now;
  for (int step = 0; step < 100; ++step) {
    auto keep = open.begin();
    for (const Open& o : open) {
      if (o.low == o.high) straight += o.rise;
      else *keep++ = o;
    }
    open.erase(keep, open.end());
    const double k = 0.5 * (low + high);
    if (open.empty() || k == low || k == high) break;
    if (slope(k) < 0) {
      low = k;
      lower_end();
    } else {
      high = k;
      for (Open& o : open) o.high = o.now;
    }
  }
  const double k = open.empty() && quad > 0 ? std::min(std::max(-straight / quad, low), high) : high;
  return std::min(k, far);
}

// Dual coordinate descent for the joint machine, all classes of one sample at a time (Keerthi et al., KDD 2008):
//
//   minimise  ½ Σ_c ‖v_c‖² + Σ_ic (offset_c + [c != y_i]) beta_ic,   v_c = Σ_i beta_ic x̃_i,
//   Σ_c beta_ic = 0,   beta_ic <= 0 for c != y_i,   beta_iy <= upper_i
//
// x̃ = (x, bias) carries a constant feature when bias != 0. A sample's minimiser is beta_c = min(bound_c, (level - g_c) / A)
// with A = ‖x̃_i‖² and the level at which they add up to zero: found by sorting the levels at which bounds are met.
// One epoch over rows[0..count), which it shuffles. Returns Σ |step| of beta and the number of samples that moved.
inline std::pair<double, index_t> joint_epoch(const Matrix& matrix, index_t* rows, index_t count, const index_t* label, const double* upper,
                        const double* norms, double bias, const double* offset, double* beta, double* v,
                        index_t classes, std::uint64_t seed) {
  return std::visit(
      [&](const auto& x) {
        double moved = 0;
        index_t steps = 0;
        const index_t size = x.cols + (bias != 0 ? 1 : 0);
        Random random{seed};
        std::vector<double> grad(classes), bends(classes);
        for (index_t k = 0; k < count; ++k) {
          std::swap(rows[k], rows[k + random.below(count - k)]);
          const index_t i = rows[k], own = label[i];
          const double curve = norms[i] + bias * bias;
          if (upper[i] <= 0 || curve <= 0) continue;
          double* b = beta + i * classes;
          for (index_t c = 0; c < classes; ++c) {
            double f = row_dot(x, i, v + c * size) + offset[c];
            if (bias != 0) f += bias * v[c * size + x.cols];
            grad[c] = f + (c != own) - curve * b[c];
            bends[c] = grad[c] + (c == own ? curve * upper[i] : 0.0);
          }
          std::sort(bends.begin(), bends.end(), std::greater<double>());
          double level = bends[0] - curve * upper[i];
          index_t met = 1;
          while (met < classes && level < double(met) * bends[met]) level += bends[met++];
          level /= double(met);
          double total = 0;  // of the other classes; the own one balances it exactly
          for (index_t c = 0; c < classes; ++c)
            if (c != own) total -= (grad[c] = std::min(0.0, (level - grad[c]) / curve));
          const double shrink = total > upper[i] ? upper[i] / total : 1.0;
          grad[own] = total;
          ++steps;
          for (index_t c = 0; c < classes; ++c) {
            const double to = shrink * grad[c], step = to - b[c];
            if (step == 0) continue;
            moved += std::fabs(step);
            b[c] = to;
            row_add(x, i, step, v + c * size);
            if (bias != 0) v[c * size + x.cols] += step * bias;
          }
        }
        return std::pair<double, index_t>{moved, steps};
      },
      matrix);
}

}  // namespace maxmargin::linear
