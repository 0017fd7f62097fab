// Dual coordinate descent for linear machines (Hsieh et al., ICML 2008, algorithm 3), one epoch at a time.
//
//   minimise  ½ ‖Σ alpha_i sign_i x̃_i‖² + Σ ½ diag_i alpha_i² - Σ (target_i - offset*sign_i) alpha_i
//   subject to 0 <= alpha_i <= upper_i
//
// x̃ = (x, bias) carries a constant feature when bias != 0; w = Σ alpha_i sign_i x̃_i is kept up to date.
// A sample has one hinge (target 1), or two: hinges i and i + rows are those of sample i, and one read of its row serves
// both. A sample costs one or two reads of its row. Samples all of whose hinges are stuck at a bound are set aside
// (shrunk) until the caller restores the list of active ones.
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

// One pass over the samples active[0..count) in random order. `above`, `below` are the shrinking thresholds of the last
// epoch (+-infinity: none). `hinges`: of all samples; `target` null: 1 for each.
inline Epoch descent_epoch(const Matrix& matrix, index_t* active, index_t count, index_t hinges, const double* sign,
                           const double* target, const double* upper, const double* diag, const double* norms, double bias,
                           double offset, double above, double below, double* alpha, double* w, std::uint64_t seed) {
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
          const double bend = norms[i] + bias * bias;
          // Of two hinges the one that pulls goes first: the other has nothing to do until that one has let go.
          const bool second = hinges > x.rows && alpha[i + x.rows] > 0;
          double total = 0;
          bool stuck = true;
          for (index_t part = 0; part < hinges; part += x.rows) {
            const index_t j = second ? i + x.rows - part : i + part;
            const double grad = sign[j] * f - (target ? target[j] : 1.0) + diag[j] * alpha[j];
            double projected = grad;
            if (alpha[j] <= 0) {
              if (grad > above) continue;
              projected = std::min(grad, 0.0);
            } else if (alpha[j] >= upper[j]) {
              if (grad < below) continue;
              projected = std::max(grad, 0.0);
            }
            stuck = false;
            largest = std::max(largest, projected);
            smallest = std::min(smallest, projected);
            if (std::fabs(projected) > 1e-12) {
              const double curve = bend + diag[j], old = alpha[j];
              const double best = curve > 0 ? old - grad / curve : (grad < 0 ? upper[j] : 0.0);
              alpha[j] = std::min(std::max(best, 0.0), upper[j]);
              const double step = sign[j] * (alpha[j] - old);
              moved += std::fabs(step), f += bend * step, total += step;
            }
          }
          if (stuck) {
            std::swap(active[k], active[--count]);
            continue;
          }
          if (total != 0) {
            ++steps;
            row_add(x, i, total, w);
            if (bias != 0) w[x.cols] += total * bias;
          }
          ++k;
        }
        return Epoch{count, largest, smallest, moved, steps};
      },
      matrix);
}

}  // namespace maxmargin::linear
