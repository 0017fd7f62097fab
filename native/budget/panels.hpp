// Support vectors stored so that SIMD lanes run over them, and t = gamma * |x - s|^2 of samples against all of them.
//
// Slot j lives in lane j % 32 of panel j / 32; feature k of a panel is one row of 32 numbers. Example with 2 lanes per
// panel and d = 3, slots a b c:  [a0 b0 a1 b1 a2 b2] [c0 . c1 . c2 .].
//
// A sample is a dense row, or the non-zeros of a CSR row. Dense rows use sums of squared differences (no cancellation,
// whatever the offset of the data); sparse rows cost only their non-zeros by |x|^2 + |s|^2 - 2 x.s, clamped at 0. Where
// that would blur t by more than 1e-4 (float) or 1e-9 (double), because |x| is large, a row is measured as a dense one.
// (A short row needs no such care: where |s| alone is large, t is so large that the kernel vanishes.)
// Every lane adds over the features in the same order with one accumulator, however samples and panels are blocked:
// a value does not depend on the block it was computed in. Overflow gives kFar, never infinity or NaN.
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "budget/simd.hpp"
#include "base/matrix.hpp"

namespace maxmargin::budget {

constexpr double kFar = 1e30;  // exp(-kFar) is 0, and t / (4 + t) is 1
template <class Real>
constexpr Real kBlurred = sizeof(Real) == 4 ? Real(1e3) : Real(1e6);  // gamma |x|^2 from which on

template <class Real>
struct DenseSample {
  const Real* x;
};
template <class Real, class I>
struct SparseSample {
  const Real* values;
  const I* indices;
  index_t size;
  Real norm;
  const Real* row;  // with its zeros where it must be measured so, else null
};

template <class Real>
class Panels {
 public:
  Panels(index_t slots, index_t features)
      : features_(features),
        count_((slots + kPanelLanes - 1) / kPanelLanes),
        data_(std::size_t(count_) * features * kPanelLanes),
        norm_(std::size_t(count_) * kPanelLanes) {}

  index_t features() const { return features_; }
  index_t count() const { return count_; }
  const Real* panel(index_t p) const { return data_.data() + p * features_ * kPanelLanes; }

  Real& at(index_t slot, index_t k) { return data_[((slot / kPanelLanes) * features_ + k) * kPanelLanes + slot % kPanelLanes]; }
  Real at(index_t slot, index_t k) const { return data_[((slot / kPanelLanes) * features_ + k) * kPanelLanes + slot % kPanelLanes]; }

  void set(index_t slot, const Real* x) {
    for (index_t k = 0; k < features_; ++k) at(slot, k) = x[k];
    refresh_norm(slot);
  }
  void get(index_t slot, Real* x) const {
    for (index_t k = 0; k < features_; ++k) x[k] = at(slot, k);
  }
  // z = h * x + (1 - h) * s, in place of s.
  void blend(index_t slot, const Real* x, Real h) {
    for (index_t k = 0; k < features_; ++k) {
      Real& s = at(slot, k);
      s += h * (x[k] - s);
    }
    refresh_norm(slot);
  }

  void refresh_norm(index_t slot) {
    // Same order and same rounding as the dot products below, so that t of a row with itself is exactly 0.
    Real sum = 0;
    for (index_t k = 0; k < features_; ++k) sum = multiply_add(at(slot, k), at(slot, k), sum);
    norm_[slot] = sum;
  }

  // t of R dense samples against one panel; row r of the result starts at out + r * stride.
  template <int R>
  void measure(index_t p, const DenseSample<Real>* samples, Real gamma, Real* out, index_t stride) const {
    constexpr int V = kVectors<Real>;
    const auto* s = reinterpret_cast<const vec<Real>*>(panel(p));
    vec<Real> sum[R][V] = {};
    for (index_t k = 0; k < features_; ++k, s += V)
      for (int r = 0; r < R; ++r) {
        const Real x = samples[r].x[k];
        for (int v = 0; v < V; ++v) {
          const vec<Real> difference = s[v] - x;
          sum[r][v] += difference * difference;
        }
      }
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) reinterpret_cast<vec<Real>*>(out + r * stride)[v] = below_far(sum[r][v] * gamma);
  }

  // t of one sparse sample against Q neighbouring panels.
  template <int Q, class I>
  void measure(index_t p, const SparseSample<Real, I>& sample, Real gamma, Real* out) const {
    if (sample.row) {
      const DenseSample<Real> dense{sample.row};
      for (int q = 0; q < Q; ++q) measure<1>(p + q, &dense, gamma, out + q * kPanelLanes, 0);
      return;
    }
    constexpr int V = kVectors<Real>;
    vec<Real> sum[Q][V] = {};
    for (index_t e = 0; e < sample.size; ++e)
      for (int q = 0; q < Q; ++q) {
        const auto* s = reinterpret_cast<const vec<Real>*>(panel(p + q) + index_t(sample.indices[e]) * kPanelLanes);
        for (int v = 0; v < V; ++v) sum[q][v] += s[v] * sample.values[e];
      }
    for (int q = 0; q < Q; ++q) {
      const auto* norm = reinterpret_cast<const vec<Real>*>(norm_.data() + (p + q) * kPanelLanes);
      for (int v = 0; v < V; ++v) {
        const vec<Real> t = below_far((norm[v] + sample.norm - 2 * sum[q][v]) * gamma);
        reinterpret_cast<vec<Real>*>(out + q * kPanelLanes)[v] = t > 0 ? t : vec<Real>{};
      }
    }
  }

  // One sample against one panel: what a panel that changed since the block was measured costs.
  void measure_panel(index_t p, const DenseSample<Real>& sample, Real gamma, Real* out) const {
    measure<1>(p, &sample, gamma, out, 0);
  }
  template <class I>
  void measure_panel(index_t p, const SparseSample<Real, I>& sample, Real gamma, Real* out) const {
    measure<1>(p, sample, gamma, out);
  }

  // A block of samples against the first `panels` panels: row i of the result starts at out + i * stride.
  void measure_block(const DenseSample<Real>* samples, int size, index_t panels, Real gamma, Real* out,
                     index_t stride) const {
    constexpr int R = kBlock<Real>;
    for (index_t p = 0; p < panels; ++p) {
      int i = 0;
      for (; i + R <= size; i += R) measure<R>(p, samples + i, gamma, out + i * stride + p * kPanelLanes, stride);
      for (; i < size; ++i) measure_panel(p, samples[i], gamma, out + i * stride + p * kPanelLanes);
    }
  }
  template <class I>
  void measure_block(const SparseSample<Real, I>* samples, int size, index_t panels, Real gamma, Real* out,
                     index_t stride) const {
    constexpr int Q = kBlock<Real>;
    index_t p = 0;
    for (; p + Q <= panels; p += Q)
      for (int i = 0; i < size; ++i) measure<Q>(p, samples[i], gamma, out + i * stride + p * kPanelLanes);
    for (; p < panels; ++p)
      for (int i = 0; i < size; ++i) measure_panel(p, samples[i], gamma, out + i * stride + p * kPanelLanes);
  }

 private:
  static vec<Real> below_far(vec<Real> t) {
    const vec<Real> far = splat(Real(kFar));
    return t < far ? t : far;  // false for NaN
  }

  index_t features_, count_;
  Aligned<Real> data_, norm_;
};

// Rows of a Matrix as samples in the model's precision: pointers into X where the types agree, else small copies.
template <class Real, class View>
class SampleReader;

template <class Real, class T>
class SampleReader<Real, Dense<T>> {
 public:
  using Sample = DenseSample<Real>;
  SampleReader(const Dense<T>& x, int block, Real) : x_(x), copy_(std::is_same_v<T, Real> ? 0 : block * x.cols) {}

  Sample read(index_t row, int place) {
    if constexpr (std::is_same_v<T, Real>) {
      return {x_.row(row)};
    } else {
      Real* out = copy_.data() + place * x_.cols;
      const T* in = x_.row(row);
      for (index_t k = 0; k < x_.cols; ++k) out[k] = Real(in[k]);
      return {out};
    }
  }
  const Real* dense(const Sample& sample) { return sample.x; }

 private:
  Dense<T> x_;
  std::vector<Real> copy_;
};

template <class Real, class T, class I>
class SampleReader<Real, Csr<T, I>> {
 public:
  using Sample = SparseSample<Real, I>;
  SampleReader(const Csr<T, I>& x, int block, Real gamma) : x_(x), gamma_(gamma), copies_(block), rows_(block + 1) {}

  Sample read(index_t row, int place) {
    const index_t begin = index_t(x_.indptr[row]), size = index_t(x_.indptr[row + 1]) - begin;
    const Real* values;
    if constexpr (std::is_same_v<T, Real>) {
      values = x_.data + begin;
    } else {
      copies_[place].assign(x_.data + begin, x_.data + begin + size);
      values = copies_[place].data();
    }
    Real norm = 0;
    for (index_t e = 0; e < size; ++e) norm = multiply_add(values[e], values[e], norm);
    Sample sample{values, x_.indices + begin, size, norm, nullptr};
    if (!(norm * gamma_ <= kBlurred<Real>)) sample.row = spread(sample, rows_[place]);
    return sample;
  }
  // The row with its zeros; valid until the next call.
  const Real* dense(const Sample& sample) { return sample.row ? sample.row : spread(sample, rows_.back()); }

 private:
  const Real* spread(const Sample& sample, std::vector<Real>& row) const {
    row.assign(x_.cols, Real(0));
    for (index_t e = 0; e < sample.size; ++e) row[sample.indices[e]] = sample.values[e];
    return row.data();
  }

  Csr<T, I> x_;
  const Real gamma_;
  std::vector<std::vector<Real>> copies_;  // values of the block's rows in the model's precision, where that differs
  std::vector<std::vector<Real>> rows_;    // rows of the block that are measured with their zeros; the last: dense()'s
};

}  // namespace maxmargin::budget
