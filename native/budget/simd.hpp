// Vector types and storage of the budget engine.
//
// A vec<Real> is as wide as the instruction set this file is compiled for. A panel (budget/panels.hpp) is kPanelLanes
// support vectors wide: a whole number of vectors on every level, so the layout does not depend on the level.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/simd.hpp"

namespace maxmargin::budget {

template <class Real>
using vec = Vec<Real>;

constexpr int kPanelLanes = 32;  // support vectors per panel: 4 AVX2 float vectors
template <class Real>
constexpr int kVectors = kPanelLanes * int(sizeof(Real)) / kVectorBytes;  // vectors per panel row
// Independent accumulators hide the latency of fma (4 cycles, 2 per cycle: 8 in flight).
template <class Real>
constexpr int kBlock = kVectors<Real> < 8 ? 8 / kVectors<Real> : 1;  // samples (dense) or panels (sparse) at a time

// Zeroed storage on a cache-line boundary.
template <class Real>
class Aligned {
 public:
  explicit Aligned(std::size_t size = 0) : lines_((size * sizeof(Real) + 63) / 64) {
    if (!lines_.empty()) std::memset(data(), 0, lines_.size() * 64);
  }
  Real* data() { return reinterpret_cast<Real*>(lines_.data()); }
  const Real* data() const { return reinterpret_cast<const Real*>(lines_.data()); }
  Real& operator[](std::size_t i) { return data()[i]; }
  Real operator[](std::size_t i) const { return data()[i]; }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::vector<Line> lines_;
};

}  // namespace maxmargin::budget
