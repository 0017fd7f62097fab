// Coordinate descent for linear machines under the 1-norm, feature by feature (Yuan et al., JMLR 2010, algorithm 3).
//
//   minimise  Σ_j penalty_j |w_j| + Σ_i ½ curve_i max(0, u_i)²,     u_i = 1 - Σ_j z_ij w_j
//
// The matrix holds a row per feature: z_ij = sign_i x_ij, the constant feature of an intercept among them. One feature takes
// one Newton step for its weight, soft-thresholded, and is halved until the objective falls enough; u is kept up to date.
// A feature costs two reads of its entries: one for the derivatives, and one that moves u and sees how the loss changes.
#pragma once
#include "linear/descent.hpp"

namespace maxmargin::linear {

template <class T>
struct DenseEntries {
  const T* value;
  index_t count;
  index_t at(index_t k) const { return k; }
  double4 four(const double* u, index_t k) const { return widen(u + k); }  // of entries k to k + 3
};
template <class T, class I>
struct SparseEntries {
  const T* value;
  const I* index;
  index_t count;
  index_t at(index_t k) const { return index_t(index[k]); }
  double4 four(const double* u, index_t k) const {
    return double4{u[index[k]], u[index[k + 1]], u[index[k + 2]], u[index[k + 3]]};
  }
};

// curve_i of the samples: the same for all of most fits, and then one load less per entry.
struct Even {
  double value;
  double operator()(index_t) const { return value; }
  template <class Entries>
  double4 four(const Entries&, index_t) const {
    return double4{value, value, value, value};
  }
};
struct Uneven {
  const double* value;
  double operator()(index_t i) const { return value[i]; }
  template <class Entries>
  double4 four(const Entries& z, index_t k) const {
    return z.four(value, k);
  }
};
// Calls with the curves in the form that they have.
template <class Call>
auto by_evenness(const double* curve, index_t count, Call&& call) {
  const bool even = count && std::all_of(curve, curve + count, [&](double c) { return c == curve[0]; });
  return even ? call(Even{curve[0]}) : call(Uneven{curve});
}
template <class T>
DenseEntries<T> entries(const Dense<T>& z, index_t j) {
  return {z.row(j), z.cols};
}
template <class T, class I>
SparseEntries<T, I> entries(const Csr<T, I>& z, index_t j) {
  return {z.data + z.indptr[j], z.indices + z.indptr[j], index_t(z.indptr[j + 1] - z.indptr[j])};
}

// How far 0 is from the subgradients of a weight w whose loss has derivative `grad`.
inline double one_norm_violation(double w, double grad, double penalty) {
  if (w > 0) return std::fabs(grad + penalty);
  if (w < 0) return std::fabs(grad - penalty);
  return std::max(0.0, std::fabs(grad) - penalty);
}

// The step of a weight for the model grad * d + ½ bend d² + penalty |w + d|.
inline double soft_step(double w, double grad, double bend, double penalty) {
  if (grad + penalty <= bend * w) return -(grad + penalty) / bend;
  if (grad - penalty >= bend * w) return -(grad - penalty) / bend;
  return -w;
}

struct Derivatives {
  double grad, bend;
};

inline double sum(const double4& v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// Derivatives of the loss by the weight of a feature. Four samples at a time, and a choice in place of a branch: half of the
// branches would go astray.
template <class Entries, class Curve>
Derivatives derivatives(const Entries& z, const double* u, const Curve& curve) {
  const double4 zero{};
  double4 grads{}, bends{};
  index_t k = 0;
  for (; k + 4 <= z.count; k += 4) {
    const double4 now = z.four(u, k), v = widen(z.value + k), c = curve.four(z, k) * (now > zero ? v : zero);
    grads -= c * now;
    bends += c * v;
  }
  double grad = sum(grads), bend = sum(bends);
  for (; k < z.count; ++k) {
    const index_t i = z.at(k);
    const double v = double(z.value[k]), c = curve(i) * (u[i] > 0 ? v : 0.0);
    grad -= c * u[i];
    bend += c * v;
  }
  return {grad, bend};
}

// Σ_i curve_i z_ij²: the most that the second derivative can be.
template <class Entries, class Curve>
double most_bend(const Entries& z, const Curve& curve) {
  double4 bends{};
  index_t k = 0;
  for (; k + 4 <= z.count; k += 4) {
    const double4 v = widen(z.value + k);
    bends += curve.four(z, k) * v * v;
  }
  double bend = sum(bends);
  for (; k < z.count; ++k) bend += curve(z.at(k)) * double(z.value[k]) * double(z.value[k]);
  return bend;
}

// u -= step * z; returns the change of the loss. An entry's sample is no other entry's: four can move at once.
template <class Entries, class Curve>
double moved(const Entries& z, double step, double* u, const Curve& curve) {
  const double4 zero{}, steps = {step, step, step, step};
  double4 changes{};
  index_t k = 0;
  for (; k + 4 <= z.count; k += 4) {
    const double4 old = z.four(u, k), now = old - steps * widen(z.value + k);
    const double4 before = old > zero ? old : zero, after = now > zero ? now : zero;
    for (int lane = 0; lane < 4; ++lane) u[z.at(k + lane)] = now[lane];
    changes += curve.four(z, k) * (after - before) * (after + before);
  }
  double change = sum(changes);
  for (; k < z.count; ++k) {
    const index_t i = z.at(k);
    const double old = u[i], now = old - step * double(z.value[k]);
    const double before = std::max(old, 0.0), after = std::max(now, 0.0);
    u[i] = now;
    change += curve(i) * (after - before) * (after + before);
  }
  return 0.5 * change;
}

struct OneNormEpoch {
  index_t left;    // features still in play: features[0 .. left)
  double largest;  // violation seen
  index_t reads;   // of entries
};

// One pass over features[0..count), in a random order if `fresh`, else in the order they have; features at 0 that do not
// violate leave the list, unless it is fresh. `most_bend`: Σ_i curve_i z_ij² per feature, an upper bound on the curvature of
// its loss. An order that stays makes epochs the steps of one smooth map, which the caller extrapolates.
template <class Z, class Curve>
OneNormEpoch one_norm_pass(const Z& z, index_t* features, index_t count, bool fresh, const Curve& curve,
                           const double* penalty, const double* most_bend, double* w, double* u, std::uint64_t seed) {
  constexpr double enough = 0.01;  // of the decrease that the model promises
  OneNormEpoch epoch{0, 0.0, 0};
  Random random{seed};
  for (index_t k = 0; fresh && k < count; ++k) std::swap(features[k], features[k + random.below(count - k)]);
  for (index_t k = 0; k < count; ++k) {
    const index_t j = features[k];
    const auto column = entries(z, j);
    auto [grad, bend] = derivatives(column, u, curve);
    epoch.reads += column.count;
    const double violation = one_norm_violation(w[j], grad, penalty[j]);
    epoch.largest = std::max(epoch.largest, violation);
    if (fresh || violation > 0 || w[j] != 0 || penalty[j] == 0) features[epoch.left++] = j;
    bend = std::max(bend, 1e-12 * most_bend[j]);
    if (violation == 0 || !(bend > 0)) continue;
    double step = soft_step(w[j], grad, bend, penalty[j]);
    for (int halvings = 0; step != 0 && halvings < 30; ++halvings, step *= 0.5) {
      const double norm = penalty[j] * (std::fabs(w[j] + step) - std::fabs(w[j])), promised = norm + grad * step;
      const double change = norm + moved(column, step, u, curve);
      epoch.reads += column.count;
      // The bound is needed where steps are so small that rounding is all that the change shows.
      if (change <= enough * promised || promised + 0.5 * most_bend[j] * step * step <= enough * promised) {
        w[j] += step;
        break;
      }
      moved(column, -step, u, curve);
      epoch.reads += column.count;
    }
  }
  return epoch;
}

inline OneNormEpoch one_norm_epoch(const Matrix& matrix, index_t* features, index_t count, bool fresh, const double* curve,
                                   const double* penalty, const double* most_bend, double* w, double* u,
                                   std::uint64_t seed) {
  return std::visit(
      [&](const auto& z) {
        return by_evenness(curve, z.cols, [&](const auto& curves) {
          return one_norm_pass(z, features, count, fresh, curves, penalty, most_bend, w, u, seed);
        });
      },
      matrix);
}

}  // namespace maxmargin::linear
