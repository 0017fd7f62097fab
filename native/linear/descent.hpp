// Dual coordinate descent for linear machines (Hsieh et al., ICML 2008, algorithm 3), one epoch at a time.
//
//   minimise  ½ ‖Σ alpha_i sign_i x̃_i‖² + Σ ½ diag_i alpha_i² - Σ (1 - offset*sign_i) alpha_i,   0 <= alpha_i <= upper_i
//
// x̃ = (x, bias) carries a constant feature when bias != 0; w = Σ alpha_i sign_i x̃_i is kept up to date.
// One coordinate costs one or two reads of a row. Rows stuck at a bound are set aside (shrunk) until the caller
// restores the list of active rows.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "linear/cutting_plane.hpp"

namespace maxmargin::linear {

struct Random {  // splitmix64: one multiplication chain per number, the seed is the state
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  index_t below(index_t n) { return index_t((static_cast<unsigned __int128>(next()) * std::uint64_t(n)) >> 64); }
};

struct Epoch {
  index_t active;          // rows still in play: active_rows[0 .. active)
  double largest, smallest;  // of the projected gradients seen
  double moved;              // Σ |step| of alpha
  index_t steps;
};

// One pass over active[0..count) in random order. `above`, `below` are the shrinking thresholds of the last epoch
// (+-infinity: none).
inline Epoch descent_epoch(const Matrix& matrix, index_t* active, index_t count, const double* sign,
                           const double* upper, const double* diag, const double* norms, double bias, double offset,
                           double above, double below, double* alpha, double* w, std::uint64_t seed) {
  return std::visit(
      [&](const auto& x) {
        Random random{seed};
        double largest = -std::numeric_limits<double>::infinity(), smallest = -largest;
        for (index_t k = 0; k < count; ++k) std::swap(active[k], active[k + random.below(count - k)]);
        double moved = 0;
        index_t k = 0, steps = 0;
        while (k < count) {
          const index_t i = active[k];
          double f = row_dot(x, i, w) + offset;
          if (bias != 0) f += bias * w[x.cols];
          const double grad = sign[i] * f - 1 + diag[i] * alpha[i];
          double projected = grad;
          if (alpha[i] <= 0) {
            if (grad > above) {
              std::swap(active[k], active[--count]);
              continue;
            }
            projected = std::min(grad, 0.0);
          } else if (alpha[i] >= upper[i]) {
            if (grad < below) {
              std::swap(active[k], active[--count]);
              continue;
            }
            projected = std::max(grad, 0.0);
          }
          largest = std::max(largest, projected);
          smallest = std::min(smallest, projected);
          if (std::fabs(projected) > 1e-12) {
            const double curve = norms[i] + bias * bias + diag[i], old = alpha[i];
            const double target = curve > 0 ? old - grad / curve : (grad < 0 ? upper[i] : 0.0);
            alpha[i] = std::min(std::max(target, 0.0), upper[i]);
            const double step = sign[i] * (alpha[i] - old);
            if (step != 0) {
              moved += std::fabs(step), ++steps;
              row_add(x, i, step, w);
              if (bias != 0) w[x.cols] += step * bias;
            }
          }
          ++k;
        }
        return Epoch{count, largest, smallest, moved, steps};
      },
      matrix);
}

}  // namespace maxmargin::linear
