// Vector types for the budget engine and an exp that the compiler vectorises.
//
// A vec<Real> is as wide as the instruction set this file is compiled for. A panel (budget/panels.hpp) is kPanelLanes
// support vectors wide: a whole number of vectors on every level, so the layout does not depend on the level.
#pragma once
#include <cmath>
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

// a * b + sum, rounded as in loops over vectors: once where the level has fma, else twice. Of a plain scalar sum the
// compiler may vectorise the products alone, and round differently.
template <class Real>
inline Real multiply_add(Real a, Real b, Real sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, sum);
#else
  return a * b + sum;
#endif
}

// exp(-t) of one number for t >= 0, for loops that also do other things (simd.hpp has exp of a vector), branch-free:
// exp(x) = 2^n exp(r), |r| <= ln2/2, n rounded by adding and subtracting 1.5*2^23 (1.5*2^52 in double), whose low bits
// then hold n. Always inlined: a call would keep the loop around it from being vectorised.
// Relative error below 2e-7 (float) and 3e-16 (double). Arguments beyond the underflow limit give a value below 1e-37
// (1e-307), not exactly zero.
[[gnu::always_inline]] inline float exp_minus(float t) {
  float x = t < 87.0f ? -t : -87.0f;
  const float magic = 12582912.0f;
  float shifted = x * 1.44269504088896341f + magic;
  float n = shifted - magic;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float q = 0.0013814609f;  // the polynomial of simd.hpp: minimax of (e^r - 1 - r) / r^2
  q = q * r + 0.0083687103f;
  q = q * r + 0.0416683875f;
  q = q * r + 0.1666652068f;
  q = q * r + 0.4999999345f;
  const float p = q * (r * r) + r + 1.0f;
  std::uint32_t bits, scale;
  std::memcpy(&bits, &shifted, 4);
  scale = (bits + (127u - 0x4b400000u)) << 23;
  float power;
  std::memcpy(&power, &scale, 4);
  return p * power;
}

[[gnu::always_inline]] inline double exp_minus(double t) {
  double x = t < 708.0 ? -t : -708.0;
  const double magic = 6755399441055744.0;
  double shifted = x * 1.4426950408889634074 + magic;
  double n = shifted - magic;
  double r = x - n * 6.93147180369123816490e-01;
  r = r - n * 1.90821492927058770002e-10;
  // Taylor to r^13: the remainder is 0.35^14 / 14! = 5e-18.
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  std::uint64_t bits, scale;
  std::memcpy(&bits, &shifted, 8);
  scale = (bits + (1023ull - 0x4338000000000000ull)) << 52;
  double power;
  std::memcpy(&power, &scale, 8);
  return p * power;
}

// 1 - exp(-t) of one number for t >= 0 to full relative precision: by its series where the difference would cancel.
[[gnu::always_inline]] inline double one_minus_exp(double t) {
  const double s = t < 0.35 ? t : 0.35;
  double p = 1 - s * (1.0 / 14);  // t - t^2/2! + t^3/3! ..., nested; the remainder is below 0.35^14 / 15! = 3e-19
  p = 1 - s * (1.0 / 13) * p;
  p = 1 - s * (1.0 / 12) * p;
  p = 1 - s * (1.0 / 11) * p;
  p = 1 - s * (1.0 / 10) * p;
  p = 1 - s * (1.0 / 9) * p;
  p = 1 - s * (1.0 / 8) * p;
  p = 1 - s * (1.0 / 7) * p;
  p = 1 - s * (1.0 / 6) * p;
  p = 1 - s * (1.0 / 5) * p;
  p = 1 - s * (1.0 / 4) * p;
  p = 1 - s * (1.0 / 3) * p;
  p = 1 - s * (1.0 / 2) * p;
  return t < 0.35 ? s * p : 1 - exp_minus(t);
}

}  // namespace maxmargin::budget
