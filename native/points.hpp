// Samples prepared for kernel tiles: the user's matrix with the kernel's scale and shift, and per-row norms.
//
// T is the type tiles are computed in. Nothing is copied: rows are shifted, scaled and rounded to T as they are packed.
// A panel is kPanel samples side by side, feature by feature: panel[k · kPanel + lane].
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "kernel.hpp"
#include "matrix.hpp"
#include "threads.hpp"

namespace maxmargin {

template <class T>
constexpr int kPanel = 2 * kLanes<T>;

template <class T>
class Points {
 public:
  // The shift is the mean of the given rows, in their order, so that it does not depend on other rows of the matrix.
  Points(const Matrix& matrix, const KernelSpec& spec, const index_t* row, index_t count, int threads)
      : matrix_(matrix), spec_(spec), scale_(spec.scale()) {
    if (spec.shift_invariant()) shift_ = mean(row, count);
    find_norms(threads);
  }
  // Some samples of a larger set, given its shift and largest norm: their kernel values have the same bits as in the set.
  Points(const Matrix& matrix, const KernelSpec& spec, std::vector<double> shift, T largest_norm, int threads)
      : matrix_(matrix), spec_(spec), scale_(spec.scale()), shift_(std::move(shift)), largest_norm_(largest_norm) {
    find_norms(threads);
  }
  // Samples to be compared with `other`, so scaled and shifted like them.
  Points(const Matrix& matrix, const Points& other, int threads)
      : matrix_(matrix), spec_(other.spec_), scale_(other.scale_), shift_(other.shift_) {
    find_norms(threads);
  }

  const Matrix& matrix() const { return matrix_; }
  const KernelSpec& spec() const { return spec_; }
  index_t size() const { return rows(matrix_); }
  index_t features() const { return cols(matrix_); }
  bool sparse() const { return matrix_.index() >= 2; }
  T norm(index_t row) const { return norm_[row]; }
  T largest_norm() const { return largest_norm_; }
  const std::vector<double>& shift() const { return shift_; }
  T scale() const { return T(scale_); }

  // Dense only: `count` ≤ kPanel rows into a panel of [features][kPanel]; missing lanes are zero.
  void pack(const index_t* row, int count, T* panel) const {
    std::visit(
        [&](const auto& m) {
          if constexpr (std::decay_t<decltype(m)>::dense) pack_dense(m, row, count, panel);
        },
        matrix_);
  }

  // Dense only: one row, contiguous.
  void pack_row(index_t row, T* out) const {
    std::visit(
        [&](const auto& m) {
          if constexpr (std::decay_t<decltype(m)>::dense) {
            const auto* x = m.row(row);
            for (index_t k = 0; k < m.cols; ++k) out[k] = value(x[k], k);
          }
        },
        matrix_);
  }

  // Sparse only: how many entries a row stores.
  index_t count(index_t row) const {
    return std::visit(
        [&](const auto& m) -> index_t {
          if constexpr (std::decay_t<decltype(m)>::dense)
            return 0;
          else
            return m.indptr[row + 1] - m.indptr[row];
        },
        matrix_);
  }

  // Sparse only: calls visit(feature, scaled value) for each stored entry of a row, in storage order.
  template <class Visit>
  void entries(index_t row, Visit&& visit) const {
    std::visit(
        [&](const auto& m) {
          if constexpr (!std::decay_t<decltype(m)>::dense)
            for (auto t = m.indptr[row]; t < m.indptr[row + 1]; ++t) visit(index_t(m.indices[t]), T(m.data[t] * scale_));
        },
        matrix_);
  }

  // Σ (x − z)² of two rows from the user's own numbers, free of cancellation. Same kind of matrix on both sides.
  double squared_distance(index_t row, const Points& other, index_t other_row) const {
    return std::visit(
        [&](const auto& a) {
          const auto* b = std::get_if<std::decay_t<decltype(a)>>(&other.matrix_);
          return b ? distance(a, row, *b, other_row) : -1.0;
        },
        matrix_);
  }

 private:
  template <class V>
  T value(V x, index_t k) const {
    return shift_.empty() ? T(double(x) * scale_) : T((double(x) - shift_[k]) * scale_);
  }

  template <class M>
  void pack_dense(const M& m, const index_t* row, int count, T* panel) const {
    constexpr int width = kPanel<T>;
    if (count < width) std::fill(panel, panel + m.cols * width, T(0));
    for (int lane = 0; lane < count; ++lane) {
      const auto* x = m.row(row[lane]);
      if (lane + 2 < count) __builtin_prefetch(m.row(row[lane + 2]));
      if (shift_.empty())
        for (index_t k = 0; k < m.cols; ++k) panel[k * width + lane] = T(double(x[k]) * scale_);
      else
        for (index_t k = 0; k < m.cols; ++k) panel[k * width + lane] = T((double(x[k]) - shift_[k]) * scale_);
    }
  }

  // Column means of dense rows, from about 4096 rows spread over the list: any point near the data serves.
  std::vector<double> mean(const index_t* row, index_t count) const {
    return std::visit(
        [&](const auto& m) {
          std::vector<double> sum;
          if constexpr (std::decay_t<decltype(m)>::dense) {
            sum.assign(m.cols, 0.0);
            const index_t step = std::max<index_t>(1, count / 4096);
            index_t taken = 0;
            for (index_t i = 0; i < count; i += step, ++taken)
              for (index_t k = 0; k < m.cols; ++k) sum[k] += m.row(row[i])[k];
            for (auto& s : sum) s /= double(std::max<index_t>(1, taken));
          }
          return sum;
        },
        matrix_);
  }

  void find_norms(int threads) {
    norm_.assign(size(), T(0));
    if (spec_.kind != Kind::rbf) return;
    const index_t n = size(), d = features();
    if (sparse()) {
#pragma omp parallel for num_threads(threads) schedule(static)
      for (index_t i = 0; i < n; ++i) {
        T sum = 0;
        entries(i, [&](index_t, T x) { sum += x * x; });
        norm_[i] = T(0.5) * sum;
      }
    } else {
      constexpr int width = kPanel<T>;
#pragma omp parallel num_threads(threads)
      {
        std::vector<T> panel(std::max<index_t>(d, 1) * width);
        index_t row[width];
#pragma omp for schedule(static)
        for (index_t first = 0; first < n; first += width) {
          const int count = int(std::min<index_t>(width, n - first));
          for (int l = 0; l < count; ++l) row[l] = first + l;
          pack(row, count, panel.data());
          for (int half = 0; half < 2; ++half) {
            Vec<T> sum{};
            for (index_t k = 0; k < d; ++k) {
              const Vec<T> x = load(&panel[k * width + half * kLanes<T>]);
              sum = combine<T, Kind::rbf>(sum, x, x);
            }
            for (int l = 0; l < kLanes<T>; ++l)
              if (half * kLanes<T> + l < count) norm_[first + half * kLanes<T> + l] = T(0.5) * sum[l];
          }
        }
      }
    }
    for (T x : norm_) largest_norm_ = std::max(largest_norm_, x);
  }

  template <class V>
  static double distance(const Dense<V>& a, index_t i, const Dense<V>& b, index_t j) {
    const V *x = a.row(i), *z = b.row(j);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index_t k = 0; k < a.cols; ++k) {
      const double d = double(x[k]) - double(z[k]);
      sum += d * d;
    }
    return sum;
  }
  template <class V, class I>
  static double distance(const Csr<V, I>& a, index_t i, const Csr<V, I>& b, index_t j) {
    I s = a.indptr[i], t = b.indptr[j];
    const I send = a.indptr[i + 1], tend = b.indptr[j + 1];
    double sum = 0;
    while (s < send || t < tend) {
      double d;
      if (t == tend || (s < send && a.indices[s] < b.indices[t]))
        d = a.data[s++];
      else if (s == send || b.indices[t] < a.indices[s])
        d = b.data[t++];
      else
        d = double(a.data[s++]) - double(b.data[t++]);
      sum += d * d;
    }
    return sum;
  }

  Matrix matrix_;
  KernelSpec spec_;
  double scale_;
  std::vector<double> shift_;
  std::vector<T> norm_;
  T largest_norm_ = 0;
};

}  // namespace maxmargin
