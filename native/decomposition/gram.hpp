// A whole kernel matrix in fixed point: 31 bits of the largest value that it can have, 4 bytes each.
//
//   value(i, j) = entry(i, j) · unit        |error| ≤ unit / 2,  unit = largest / (2³¹ − 1)
//
// As small as float and, where values are of the size of the largest one, a hundred times as fine: sums of them in double
// tell a violation of 1e-3 apart where coefficients of 1e4 are summed, which float cannot. Converting an entry to double
// costs one instruction, as from float.
//
// What kernels of all gammas have in common is kept in the same form, and a matrix is filled from it:
//   rbf   |x − z|, of which exp(−γ |x − z|²)      the root, so that small distances are as fine as large ones need be
//   laplacian  Σ|x − z|,   poly, sigmoid, linear  xᵀz
#pragma once
#include <cmath>

#include "base/threads.hpp"
#include "kernel/packed_rows.hpp"

namespace maxmargin {

// Σ row · weight.
inline double dot(const std::int32_t* row, const double* weight, index_t count) {
  constexpr int D = kLanes<double>;
  typedef std::int32_t Part __attribute__((vector_size(D * sizeof(std::int32_t))));
  const auto product = [&](index_t j) {
    Part part;
    std::memcpy(&part, row + j, sizeof part);
    return __builtin_convertvector(part, Vec<double>) * load(weight + j);
  };
  Vec<double> a{}, b{};
  index_t j = 0;
  for (; j + 2 * D <= count; j += 2 * D) a += product(j), b += product(j + D);
  a += b;
  double sum = 0;
  for (int l = 0; l < D; ++l) sum += a[l];
  for (; j < count; ++j) sum += double(row[j]) * weight[j];
  return sum;
}

class Gram {
 public:
  Gram(index_t n, double largest)
      : n_(n), ld_((n + 15) / 16 * 16), unit_(std::max(largest, std::numeric_limits<double>::min()) / kWhole) {
    std::int32_t* all = memory_.ensure(std::max<std::size_t>(1, std::size_t(n_) * std::size_t(ld_)));
    for (index_t i = 0; i < n_; ++i) std::fill(all + i * ld_ + n_, all + (i + 1) * ld_, 0);
  }

  index_t size() const { return n_; }
  double unit() const { return unit_; }
  const std::int32_t* row(index_t i) const { return memory_.data() + i * ld_; }
  double value(index_t i, index_t j) const { return unit_ * double(row(i)[j]); }

  // Rows first, first + 1, … from numbers.
  void put(index_t first, index_t count, const double* values, int threads) {
    each_row(count, threads, [&](index_t i) {
      const double* from = values + i * n_;
      std::int32_t* to = mutable_row(first + i);
      for (index_t j = 0; j < n_; ++j) to[j] = entry(from[j] / unit_);
    });
  }
  // The same of |x − z| from dot products and squared norms.
  void put_distances(index_t first, index_t count, const double* dots, const double* norm, int threads) {
    each_row(count, threads, [&](index_t i) {
      const double* from = dots + i * n_;
      std::int32_t* to = mutable_row(first + i);
      const double own = norm[first + i], by = 1 / unit_;
      for (index_t j = 0; j < n_; ++j) to[j] = entry(std::sqrt(std::max(0.0, own + norm[j] - 2 * from[j])) * by);
      to[first + i] = 0;
    });
  }

  // K of a kernel from what all gammas have in common.
  void fill(const Gram& base, const KernelSpec& spec, int threads) {
    const index_t blocks = (n_ + kBlock - 1) / kBlock;
    auto some = [&](int, index_t b) {
      for (index_t c = b; c < blocks; ++c) fill_block(base, spec, b * kBlock, c * kBlock);
    };
    threading::share(blocks, threads, some);
  }

 private:
  static constexpr double kWhole = 2147483647.0;
  static constexpr index_t kBlock = 64;

  static std::int32_t entry(double x) { return std::int32_t(std::lrint(std::clamp(x, -kWhole, kWhole))); }
  std::int32_t* mutable_row(index_t i) { return memory_.data() + i * ld_; }
  template <class Run>
  void each_row(index_t count, int threads, Run&& run) {
    auto one = [&](int, index_t i) { run(i); };
    threading::share(count, threads, one);
  }

  // Of a symmetric matrix the block (a, b), and by it (b, a).
  void fill_block(const Gram& base, const KernelSpec& spec, index_t a, index_t b) {
    const index_t rows = std::min(kBlock, n_ - a), columns = std::min(kBlock, n_ - b);
    for (index_t i = a; i < a + rows; ++i) {
      const std::int32_t* from = base.row(i) + b;
      std::int32_t* to = mutable_row(i) + b;
      if (spec.kind == Kind::rbf)
        exponentials(from, to, columns, -spec.gamma * base.unit_ * base.unit_, true);
      else if (spec.kind == Kind::laplacian)
        exponentials(from, to, columns, -spec.gamma * base.unit_, false);
      else
        for (index_t j = 0; j < columns; ++j) to[j] = entry(of_dot(spec, base.unit_ * double(from[j])) / unit_);
    }
    if (a != b)
      for (index_t j = b; j < b + columns; ++j)
        for (index_t i = a; i < a + rows; ++i) mutable_row(j)[i] = mutable_row(i)[j];
  }

  static double of_dot(const KernelSpec& spec, double dot) {
    if (spec.kind == Kind::linear) return dot;
    const double inner = spec.gamma * dot + spec.coef0;
    return spec.kind == Kind::poly ? std::pow(inner, spec.degree) : std::tanh(inner);
  }

  void exponentials(const std::int32_t* from, std::int32_t* to, index_t count, double factor, bool squared) const {
    constexpr int D = kLanes<double>;
    typedef std::int32_t Part __attribute__((vector_size(D * sizeof(std::int32_t))));
    const Vec<double> by = splat(factor), largest = splat(1 / unit_);
    for (index_t j = 0; j < count; j += D) {  // a row has room for whole vectors
      Part part;
      std::memcpy(&part, from + j, sizeof part);
      Vec<double> x = __builtin_convertvector(part, Vec<double>);
      x = exp(by * (squared ? x * x : x)) * largest;
      const Part rounded = __builtin_convertvector(smaller(x, splat(kWhole)) + 0.5, Part);
      std::memcpy(to + j, &rounded, sizeof rounded);
    }
  }

  index_t n_, ld_;
  double unit_;
  Buffer<std::int32_t> memory_;
};

}  // namespace maxmargin
