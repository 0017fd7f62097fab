// Kernel functions as "combine over features, then finish": what a tile's inner loop accumulates and what it becomes.
//
//   kind       accumulated over features            finish                       samples are scaled by   shifted
//   rbf        sum x z (x, z scaled)                 exp(dot − nx − nz)           sqrt(2 gamma)           by the mean
//   laplacian  sum |x − z| (scaled)                  exp(−sum)                    gamma                   by the mean
//   linear     sum x z                               dot                          1                       no
//   poly       sum x z                               (gamma dot + coef0)^degree   1                       no
//   sigmoid    sum x z                               tanh(gamma dot + coef0)      1                       no
//
// RBF values of dense samples below exp(kFar), which is far below what an accumulated float or double can tell from 0,
// are exactly 0: so blocks of them need not be computed (boxes.hpp), and whether they are changes no bit.
//
// nx is half the self dot product of the scaled sample, accumulated in the same order as every other dot product, so
// that a sample and its copy have exactly K = 1.
#pragma once
#include <cmath>
#include <stdexcept>
#include <string>

#include "base/simd.hpp"

namespace maxmargin {

enum class Kind { linear, poly, rbf, sigmoid, laplacian };

struct KernelSpec {
  Kind kind = Kind::rbf;
  double gamma = 1, coef0 = 0;
  int degree = 3;

  static Kind parse(const std::string& name) {
    if (name == "linear") return Kind::linear;
    if (name == "poly") return Kind::poly;
    if (name == "rbf") return Kind::rbf;
    if (name == "sigmoid") return Kind::sigmoid;
    if (name == "laplacian") return Kind::laplacian;
    throw std::invalid_argument("unknown kernel " + name);
  }
  double scale() const {
    if (kind == Kind::rbf) return std::sqrt(2 * gamma);
    return kind == Kind::laplacian ? gamma : 1.0;
  }
  bool shift_invariant() const { return kind == Kind::rbf || kind == Kind::laplacian; }
};

template <class T>
constexpr T kFar = sizeof(T) == 4 ? T(-25) : T(-45);

template <class T>
inline Vec<T> powi(Vec<T> base, int degree) {
  Vec<T> result = splat(T(1));
  for (; degree > 0; degree >>= 1, base *= base)
    if (degree & 1) result *= base;
  return result;
}

// One step of the accumulation: acc += x·z, or acc += |x − z|.
template <class T, Kind kind>
inline Vec<T> combine(Vec<T> acc, Vec<T> x, Vec<T> z) {
  if constexpr (kind == Kind::laplacian) {
    const Vec<T> d = x - z;
    return acc + (d < Vec<T>{} ? -d : d);
  } else {
    return acc + x * z;
  }
}

template <class T, Kind kind>
inline Vec<T> finish(const KernelSpec& spec, Vec<T> acc, Vec<T> nx, Vec<T> nz) {
  if constexpr (kind == Kind::linear) {
    return acc;
  } else if constexpr (kind == Kind::poly) {
    return powi<T>(acc * T(spec.gamma) + T(spec.coef0), spec.degree);
  } else if constexpr (kind == Kind::sigmoid) {
    const Vec<T> e = exp((acc * T(spec.gamma) + T(spec.coef0)) * T(2));
    return T(1) - T(2) / (e + T(1));
  } else if constexpr (kind == Kind::laplacian) {
    return exp(-acc);
  } else {
    const Vec<T> e = acc - (nx + nz);
    const Vec<T> k = exp(smaller(Vec<T>{}, e));  // in this order NaN stays NaN
    return e < splat(kFar<T>) ? Vec<T>{} : k;
  }
}

}  // namespace maxmargin
