// Σ β of some variables moved to its target, within bounds: the rule of warm starts (problem/formulations.py).
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/matrix.hpp"

namespace maxmargin {

// Variables between their bounds give first, in proportion to their distance from the nearer one, then in proportion to their
// room; then those at a bound, one after the other. mine(v): whether v is of the sum.
template <class Mine>
void restore(double* beta, const double* lo, const double* hi, index_t variables, Mine&& mine, double target) {
  constexpr double rounding = 4 * std::numeric_limits<double>::epsilon();
  const auto free = [&](index_t v) { return beta[v] > lo[v] && beta[v] < hi[v]; };
  const auto near = [&](index_t v) { return std::min(beta[v] - lo[v], hi[v] - beta[v]); };
  const auto next = [&](index_t v, double step) { beta[v] = std::clamp(beta[v] + step, lo[v], hi[v]); };
  for (int pass = 0; pass < 8; ++pass) {  // the first does it but for rounding, of which each leaves a part
    long double sum = 0, size = 0;
    double shy = 0, inside = 0;
    for (index_t v = 0; v < variables; ++v)
      if (mine(v)) sum += beta[v], size += std::abs(beta[v]);
    const double excess = double(sum - (long double)(target));
    if (std::abs(excess) <= rounding * double(size)) return;
    const auto room = [&](index_t v) { return excess > 0 ? beta[v] - lo[v] : hi[v] - beta[v]; };
    for (index_t v = 0; v < variables; ++v)
      if (mine(v) && free(v)) shy += near(v), inside += room(v);
    double left = std::abs(excess);
    const bool gently = shy >= left, enough = inside >= left;
    const double by = excess > 0 ? -1.0 : 1.0;
    for (index_t v = 0; v < variables; ++v) {
      if (!mine(v) || !free(v)) continue;
      const double share = gently ? near(v) * (left / shy) : enough ? room(v) * (left / inside) : room(v);
      next(v, by * share);
    }
    if (enough || gently) continue;
    left -= inside;
    for (index_t v = 0; v < variables && left > 0; ++v) {
      if (!mine(v) || !(room(v) > 0)) continue;
      const double share = std::min(left, room(v));
      left -= share;
      next(v, by * share);
    }
  }
}

// The same by as few variables as can: those farthest from their bounds, none of which comes nearer to one than half way. Left
// as it is where they cannot. For starts of which f follows by a row for each variable that moves (selection/chain.py too).
template <class Mine>
void mend(double* beta, const double* lo, const double* hi, index_t variables, Mine&& mine, double target,
          std::vector<std::pair<double, index_t>>& order) {
  constexpr double gives = 0.5;
  long double sum = 0;
  double room = 0;
  order.clear();
  for (index_t v = 0; v < variables; ++v) {
    if (!mine(v)) continue;
    sum += beta[v];
    const double near = std::min(beta[v] - lo[v], hi[v] - beta[v]);
    if (near > 0) order.push_back({-near, v}), room += gives * near;
  }
  const double excess = double(sum - (long double)(target));
  if (room < std::abs(excess)) return;
  std::sort(order.begin(), order.end());
  double near = 0;
  std::size_t count = 0;
  while (count < order.size() && gives * near < std::abs(excess)) near -= order[count++].first;
  for (std::size_t i = 0; i < count; ++i) {
    double& b = beta[order[i].second];
    b = std::clamp(b + order[i].first * (excess / near), lo[order[i].second], hi[order[i].second]);
  }
}

}  // namespace maxmargin
