// Coordinate descent for linear machines under the 1-norm, feature by feature (Yuan et al., JMLR 2010, algorithm 3).
//
//   minimise  Σ_j penalty_j |w_j| + Σ_i ½ curve_i max(0, u_i)²,     u_i = 1 - Σ_j z_ij w_j
//
// The matrix holds a row per feature: z_ij = sign_i x_ij, the constant feature of an intercept among them. One feature takes
// one Newton step for its weight, soft-thresholded, and is halved until the objective falls enough; u is kept up to date.
#pragma once
#include "linear/descent.hpp"

namespace maxmargin::linear {

template <class T, class Visit>
void each_entry(const Dense<T>& z, index_t j, Visit&& visit) {
  const T* row = z.row(j);
  for (index_t i = 0; i < z.cols; ++i) visit(i, double(row[i]));
}
template <class T, class I, class Visit>
void each_entry(const Csr<T, I>& z, index_t j, Visit&& visit) {
  for (I k = z.indptr[j]; k < z.indptr[j + 1]; ++k) visit(index_t(z.indices[k]), double(z.data[k]));
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

// One pass over features[0..count) in random order; violation_k becomes that of features_k (as shuffled) before its step.
// `most_bend`: Σ_i curve_i z_ij² per feature, an upper bound on the curvature of its loss. Returns the largest violation.
inline double one_norm_epoch(const Matrix& matrix, index_t* features, index_t count, const double* curve,
                             const double* penalty, const double* most_bend, double* w, double* u, double* violation,
                             std::uint64_t seed) {
  return std::visit(
      [&](const auto& z) {
        constexpr double enough = 0.01;  // of the decrease that the model promises
        Random random{seed};
        double largest = 0;
        for (index_t k = 0; k < count; ++k) std::swap(features[k], features[k + random.below(count - k)]);
        for (index_t k = 0; k < count; ++k) {
          const index_t j = features[k];
          double grad = 0, bend = 0;
          each_entry(z, j, [&](index_t i, double v) {
            const double c = u[i] > 0 ? curve[i] * v : 0.0;
            grad -= c * u[i];
            bend += c * v;
          });
          violation[k] = one_norm_violation(w[j], grad, penalty[j]);
          largest = std::max(largest, violation[k]);
          bend = std::max(bend, 1e-12 * most_bend[j]);
          if (violation[k] == 0 || !(bend > 0)) continue;
          double step = soft_step(w[j], grad, bend, penalty[j]);
          for (int halvings = 0; step != 0 && halvings < 30; ++halvings, step *= 0.5) {
            const double norm = penalty[j] * (std::fabs(w[j] + step) - std::fabs(w[j])), promised = norm + grad * step;
            double change = promised + 0.5 * most_bend[j] * step * step;
            if (change > enough * promised) {
              change = norm;
              each_entry(z, j, [&](index_t i, double v) {
                const double before = std::max(u[i], 0.0), after = std::max(u[i] - step * v, 0.0);
                change += 0.5 * curve[i] * (after - before) * (after + before);
              });
            }
            if (change <= enough * promised) {
              row_add(z, j, -step, u);
              w[j] += step;
              break;
            }
          }
        }
        return largest;
      },
      matrix);
}

}  // namespace maxmargin::linear
