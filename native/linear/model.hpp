// Coordinate descent on a quadratic model under the 1-norm, and the copy of the samples by features that it begins with.
//
//   minimise over w    Σ_j penalty_j |w_j| + ½ (w − w₀)ᵀ H (w − w₀) + gradᵀ (w − w₀)
//
// A weight that moves costs one row of H, one that rests costs nothing: epochs over the samples cost all their entries.
#pragma once
#include <vector>

#include "linear/one_norm.hpp"

namespace maxmargin::linear {

struct Sweeps {
  index_t count;
  double largest;  // violation that the last one saw
};

// Sweeps over all weights, until the largest violation seen is at most `calm`. H: size × size, symmetric; `grad`: of the
// quadratic part at w. Both w and grad are kept up to date.
inline Sweeps model_sweeps(const double* H, index_t size, const double* penalty, double* w, double* grad, double calm,
                           index_t most) {
  Sweeps sweeps{0, std::numeric_limits<double>::infinity()};
  while (sweeps.count < most && sweeps.largest > calm) {
    ++sweeps.count;
    sweeps.largest = 0;
    for (index_t j = 0; j < size; ++j) {
      const double violation = one_norm_violation(w[j], grad[j], penalty[j]), bend = H[j * size + j];
      if (violation == 0 || !(bend > 0)) continue;
      sweeps.largest = std::max(sweeps.largest, violation);
      const double step = soft_step(w[j], grad[j], bend, penalty[j]);
      const double* const row = H + j * size;
      w[j] += step;
#pragma omp simd
      for (index_t i = 0; i < size; ++i) grad[i] += step * row[i];
    }
  }
  return sweeps;
}

// The lower triangle of a square matrix from the upper one, in blocks that the first cache holds.
inline void mirror(double* H, index_t size) {
  constexpr index_t block = 32;
  for (index_t a = 0; a < size; a += block)
    for (index_t b = a; b < size; b += block)
      for (index_t i = a; i < std::min(size, a + block); ++i)
        for (index_t j = std::max(b, i + 1); j < std::min(size, b + block); ++j) H[j * size + i] = H[i * size + j];
}

constexpr index_t kFronts = 2048;  // features whose next entries the second cache holds

// sign_i x_ij as rows by feature, the constant feature `bias` last unless 0, and Σ_i curve_i x_ij² of every feature.
template <class T, class I>
void by_feature(const Matrix& matrix, const double* sign, const double* curve, double bias, T* value, I* index, I* start,
                double* squares) {
  std::visit(
      [&](const auto& x) {
        if constexpr (!std::decay_t<decltype(x)>::dense) {
          const index_t size = x.cols + (bias != 0 ? 1 : 0);
          std::fill(start, start + size + 1, I(0));
          for (auto k = x.indptr[0]; k < x.indptr[x.rows]; ++k) ++start[x.indices[k] + 1];
          for (index_t j = 0; j < x.cols; ++j) start[j + 1] += start[j];
          std::vector<I> next(start, start + x.cols);
          constexpr index_t ahead = 32;  // entries: about the time that memory takes
          const auto last = x.indptr[x.rows] - 1;
          const bool far = x.cols > kFronts;
          for (index_t i = 0; i < x.rows; ++i)
            for (auto k = x.indptr[i]; k < x.indptr[i + 1]; ++k) {
              if (far) {
                const I soon = next[x.indices[std::min<index_t>(k + ahead, last)]];
                __builtin_prefetch(index + soon, 1);
                __builtin_prefetch(value + soon, 1);
              }
              const I at = next[x.indices[k]]++;
              index[at] = I(i);
              value[at] = T(sign[i] * double(x.data[k]));
            }
          if (bias != 0) {
            start[size] = start[x.cols] + I(x.rows);
            for (index_t i = 0; i < x.rows; ++i) {
              index[start[x.cols] + i] = I(i);
              value[start[x.cols] + i] = T(sign[i] * bias);
            }
          }
          // Not among the scattered writes above: they wait for memory as it is.
          const Csr<T, I> z{value, index, start, size, x.rows};
          by_evenness(curve, x.rows, [&](const auto& curves) {
            for (index_t j = 0; j < size; ++j) squares[j] = most_bend(entries(z, j), curves);
          });
        }
      },
      matrix);
}

}  // namespace maxmargin::linear
