// Samples prepared for kernel tiles: the user's matrix with the kernel's scale and shift, and per-row norms.
//
// T is the type tiles are computed in. Nothing is copied: rows are shifted, scaled and rounded to T as they are packed.
// A panel is kPanel samples side by side, feature by feature: panel[k · kPanel + lane].
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "kernel/kernel.hpp"
#include "base/matrix.hpp"
#include "base/threads.hpp"

namespace maxmargin {

template <class T>
constexpr int kPanel = 2 * kLanes<T>;

template <class T>
class Points {
 public:
  // The shift is the mean of the given rows, in their order, and the largest norm is theirs: neither depends on other rows
  // of the matrix.
  Points(const Matrix& matrix, const KernelSpec& spec, const index_t* row, index_t count, int threads)
      : matrix_(matrix), spec_(spec), scale_(spec.scale()) {
    if (spec.shift_invariant()) shift_ = mean(row, count);
    find_norms(threads);
    for (index_t i = 0; i < count; ++i) largest_norm_ = std::max(largest_norm_, norm_[row[i]]);
  }
  // Some samples of a larger set, given its shift and largest norm: their kernel values have the same bits as in the set.
  Points(const Matrix& matrix, const KernelSpec& spec, std::vector<double> shift, T largest_norm, int threads)
      : matrix_(matrix), spec_(spec), scale_(spec.scale()), shift_(std::move(shift)), largest_norm_(largest_norm) {
    find_norms(threads);
  }
  // Samples to be compared with `other`, so scaled, shifted and judged like them: nothing here depends on the samples'
  // neighbours, and so a kernel value has the same bits for one sample or a batch.
  Points(const Matrix& matrix, const Points& other, int threads)
      : matrix_(matrix), spec_(other.spec_), scale_(other.scale_), shift_(other.shift_), largest_norm_(other.largest_norm_) {
    if (other.size() > 0 && (sparse() != other.sparse() || features() != other.features()))  // a rank may have no samples
      throw std::invalid_argument("samples to be compared must be in one form, dense or CSR, and have as many features");
    find_norms(threads);
  }

  const Matrix& matrix() const { return matrix_; }
  const KernelSpec& spec() const { return spec_; }
  index_t size() const { return rows(matrix_); }
  index_t features() const { return cols(matrix_); }
  bool sparse() const { return matrix_.index() >= 2; }
  index_t per_row() const {
    return std::visit([](const auto& m) { return maxmargin::per_row(m); }, matrix_);
  }
  T norm(index_t row) const { return norm_[row]; }
  T largest_norm() const { return largest_norm_; }
  T farthest() const { return farthest_; }  // the largest norm of all rows of the matrix
  // What the rounding of a sample's kernel values is judged by: the set's largest norm, or its own beyond that.
  T reach(index_t row) const { return std::max(largest_norm_, norm_[row]); }
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

  // Σ (x − z)², or Σ |x − z| for the laplacian kernel, of two rows from the user's own numbers, free of cancellation.
  // Both dense or both sparse.
  double distance_between(index_t row, const Points& other, index_t other_row) const {
    return std::visit(
        [&](const auto& a, const auto& b) {
          if constexpr (std::decay_t<decltype(a)>::dense != std::decay_t<decltype(b)>::dense)
            return std::numeric_limits<double>::quiet_NaN();
          else
            return spec_.kind == Kind::laplacian ? distance<true>(a, row, b, other_row)
                                                 : distance<false>(a, row, b, other_row);
        },
        matrix_, other.matrix_);
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
            const double part = 1.0 / double(std::max<index_t>(1, (count + step - 1) / step));  // first: sums may overflow
            for (index_t i = 0; i < count; i += step)
              for (index_t k = 0; k < m.cols; ++k) sum[k] += part * double(m.row(row[i])[k]);
          }
          return sum;
        },
        matrix_);
  }

  void find_norms(int threads) {
    compute_norms(threads);
    for (T x : norm_) farthest_ = std::max(farthest_, x);
  }

  void compute_norms(int threads) {
    norm_.assign(size(), T(0));
    const index_t n = size(), d = features();
    if (sparse() && spec_.kind == Kind::laplacian) {
      for_slices(n, slice_size(n, 2 * per_row()), threads, [&](index_t begin, index_t end) {
        for (index_t i = begin; i < end; ++i) entries(i, [&](index_t, T x) { norm_[i] += std::abs(x); });
      });
    }
    if (spec_.kind != Kind::rbf && (sparse() || spec_.kind != Kind::laplacian)) return;
    if (sparse()) {
      for_slices(n, slice_size(n, 2 * per_row()), threads, [&](index_t begin, index_t end) {
        for (index_t i = begin; i < end; ++i) {
          T sum = 0;
          entries(i, [&](index_t, T x) { sum = multiply_add(x, x, sum); });  // as tiles do: K = 1 for equal rows
          norm_[i] = T(0.5) * sum;
        }
      });
    } else {
      constexpr int width = kPanel<T>;
      for_slices(n, slice_size(n, 4 * d, width), threads, [&](index_t begin, index_t end) {
        std::vector<T> panel(std::max<index_t>(d, 1) * width);
        index_t row[width];
        for (index_t first = begin; first < end; first += width) {
          const int count = int(std::min<index_t>(width, end - first));
          for (int l = 0; l < count; ++l) row[l] = first + l;
          pack(row, count, panel.data());
          for (int half = 0; half < 2; ++half) {
            Vec<T> sum{};
            for (index_t k = 0; k < d; ++k) {
              const Vec<T> x = load(&panel[k * width + half * kLanes<T>]);
              sum = spec_.kind == Kind::rbf ? combine<T, Kind::rbf>(sum, x, x) : sum + (x < Vec<T>{} ? -x : x);
            }
            const T share = spec_.kind == Kind::rbf ? T(0.5) : T(1);
            for (int l = 0; l < kLanes<T>; ++l)
              if (half * kLanes<T> + l < count) norm_[first + half * kLanes<T> + l] = share * sum[l];
          }
        }
      });
    }
  }

  template <bool absolute, class V, class W>
  static double distance(const Dense<V>& a, index_t i, const Dense<W>& b, index_t j) {
    const V* x = a.row(i);
    const W* z = b.row(j);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index_t k = 0; k < a.cols; ++k) {
      const double d = double(x[k]) - double(z[k]);
      sum += absolute ? std::abs(d) : d * d;
    }
    return sum;
  }
  template <bool absolute, class V, class I, class W, class J>
  static double distance(const Csr<V, I>& a, index_t i, const Csr<W, J>& b, index_t j) {
    index_t s = a.indptr[i], t = b.indptr[j];
    const index_t send = a.indptr[i + 1], tend = b.indptr[j + 1];
    double sum = 0;
    while (s < send || t < tend) {
      double d;
      if (t == tend || (s < send && a.indices[s] < b.indices[t]))
        d = a.data[s++];
      else if (s == send || b.indices[t] < a.indices[s])
        d = b.data[t++];
      else
        d = double(a.data[s++]) - double(b.data[t++]);
      sum += absolute ? std::abs(d) : d * d;
    }
    return sum;
  }

  Matrix matrix_;
  KernelSpec spec_;
  double scale_;
  std::vector<double> shift_;
  std::vector<T> norm_;  // of the scaled sample: rbf ½|x|²; laplacian Σ|x|
  T largest_norm_ = 0, farthest_ = 0;
};

}  // namespace maxmargin
