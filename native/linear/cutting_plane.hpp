// Passes over the samples for linear machines: outputs, sums of rows, row norms, products with weighted Gram matrices.
//
// Conventions: margins m_i = sign_i * (<x_i, w> + bias) + shift_i, one double per row and hinge: one hinge per sample, or
// two (regression), of which the second ones follow all the first ones. Weights w, sums of rows and Gram matrices
// are double whatever the type of X. Sums over features run in double: memory, not arithmetic, limits these loops.
// A pass takes a range of rows, so that the caller can stop between two ranges of a matrix larger than memory.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/matrix.hpp"
#include "base/threads.hpp"

namespace maxmargin::linear {

typedef double double4 __attribute__((vector_size(32), aligned(8)));
typedef float float4 __attribute__((vector_size(16), aligned(4)));

inline double4 widen(const float* x) { return __builtin_convertvector(*reinterpret_cast<const float4*>(x), double4); }
inline double4 widen(const double* x) { return *reinterpret_cast<const double4*>(x); }
inline double4& at(double* x) { return *reinterpret_cast<double4*>(x); }

template <class T>
double dot(const T* x, const double* w, index_t d) {
  double4 s0{}, s1{}, s2{}, s3{};
  index_t j = 0;
  for (; j + 16 <= d; j += 16) {
    s0 += widen(x + j) * widen(w + j);
    s1 += widen(x + j + 4) * widen(w + j + 4);
    s2 += widen(x + j + 8) * widen(w + j + 8);
    s3 += widen(x + j + 12) * widen(w + j + 12);
  }
  for (; j + 4 <= d; j += 4) s0 += widen(x + j) * widen(w + j);
  s0 = (s0 + s1) + (s2 + s3);
  double sum = (s0[0] + s0[1]) + (s0[2] + s0[3]);
  for (; j < d; ++j) sum += double(x[j]) * w[j];
  return sum;
}

template <class T>
double row_dot(const Dense<T>& x, index_t i, const double* w) {
  return dot(x.row(i), w, x.cols);
}
template <class T, class I>
double row_dot(const Csr<T, I>& x, index_t i, const double* w) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  I k = x.indptr[i];
  const I end = x.indptr[i + 1];
  for (; k + 4 <= end; k += 4) {
    s0 += double(x.data[k]) * w[x.indices[k]];
    s1 += double(x.data[k + 1]) * w[x.indices[k + 1]];
    s2 += double(x.data[k + 2]) * w[x.indices[k + 2]];
    s3 += double(x.data[k + 3]) * w[x.indices[k + 3]];
  }
  for (; k < end; ++k) s0 += double(x.data[k]) * w[x.indices[k]];
  return (s0 + s1) + (s2 + s3);
}

// w += c * x_i
template <class T>
void row_add(const Dense<T>& x, index_t i, double c, double* w) {
  const T* row = x.row(i);
  index_t j = 0;
  const double4 cc = {c, c, c, c};
  for (; j + 4 <= x.cols; j += 4) at(w + j) += cc * widen(row + j);
  for (; j < x.cols; ++j) w[j] += c * double(row[j]);
}
template <class T, class I>
void row_add(const Csr<T, I>& x, index_t i, double c, double* w) {
  for (I k = x.indptr[i]; k < x.indptr[i + 1]; ++k) w[x.indices[k]] += c * double(x.data[k]);
}

// largest_j = max(largest_j, |x_ij|)
template <class T>
void row_largest(const Dense<T>& x, index_t i, double* largest) {
  for (index_t j = 0; j < x.cols; ++j) largest[j] = std::max(largest[j], std::fabs(double(x.row(i)[j])));
}
template <class T, class I>
void row_largest(const Csr<T, I>& x, index_t i, double* largest) {
  for (I k = x.indptr[i]; k < x.indptr[i + 1]; ++k) {
    const double size = std::fabs(double(x.data[k]));
    double& most = largest[x.indices[k]];
    most = size > most ? size : most;
  }
}

// Σ x_k². Four sums: one alone would wait for its own last addition.
template <class T>
double square(const T* x, index_t count) {
  double4 sums{};
  index_t k = 0;
  for (; k + 4 <= count; k += 4) sums += widen(x + k) * widen(x + k);
  double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (; k < count; ++k) sum += double(x[k]) * double(x[k]);
  return sum;
}
template <class T>
double row_norm(const Dense<T>& x, index_t i) {
  return square(x.row(i), x.cols);
}
template <class T, class I>
double row_norm(const Csr<T, I>& x, index_t i) {
  return square(x.data + x.indptr[i], index_t(x.indptr[i + 1] - x.indptr[i]));
}

// out_i = sign_i * (<x_i, w> + bias) + shift_i for the rows in [begin, end) and each of their hinges; `shift` null: none.
inline void outputs(const Matrix& matrix, const double* w, double bias, const double* sign, const double* shift,
                    index_t hinges, index_t begin, index_t end, double* out, int threads) {
  std::visit(
      [&](const auto& x) {
        const index_t count = end - begin;
        for_slices(count, slice_size(count, per_row(x)), threads, [&](index_t first, index_t last) {
          for (index_t i = begin + first; i < begin + last; ++i) {
            const double f = row_dot(x, i, w) + bias;
            for (index_t j = i; j < hinges; j += x.rows) out[j] = shift ? sign[j] * f + shift[j] : sign[j] * f;
          }
        });
      },
      matrix);
}

// Four rows at once: the sum is loaded and stored once for all of them.
template <class T>
void add_range(const Dense<T>& x, const index_t* rows, const double* coef, index_t count, double* sum) {
  index_t k = 0;
  for (; k + 4 <= count; k += 4) {
    const T *r0 = x.row(rows[k]), *r1 = x.row(rows[k + 1]), *r2 = x.row(rows[k + 2]), *r3 = x.row(rows[k + 3]);
    const double c0 = coef[k], c1 = coef[k + 1], c2 = coef[k + 2], c3 = coef[k + 3];
    const double4 v0 = {c0, c0, c0, c0}, v1 = {c1, c1, c1, c1}, v2 = {c2, c2, c2, c2}, v3 = {c3, c3, c3, c3};
    index_t j = 0;
    for (; j + 4 <= x.cols; j += 4)
      at(sum + j) += (v0 * widen(r0 + j) + v1 * widen(r1 + j)) + (v2 * widen(r2 + j) + v3 * widen(r3 + j));
    for (; j < x.cols; ++j)
      sum[j] += (c0 * double(r0[j]) + c1 * double(r1[j])) + (c2 * double(r2[j]) + c3 * double(r3[j]));
  }
  for (; k < count; ++k) row_add(x, rows[k], coef[k], sum);
}
template <class T, class I>
void add_range(const Csr<T, I>& x, const index_t* rows, const double* coef, index_t count, double* sum) {
  for (index_t k = 0; k < count; ++k) row_add(x, rows[k], coef[k], sum);
}

// Rows per slice of a sum of `count` rows. A slice clears and adds a sum of its own, d doubles: its rows must outweigh
// that. At most 64 slices: their sums are kept side by side.
template <class View>
index_t sum_slice(const View& x, index_t count) {
  const index_t work = per_row(x), enough = std::max(kSliceWork, 16 * x.cols) / work + 1;
  const index_t slices = std::clamp<index_t>(count / enough, 1, 64);
  return std::max<index_t>(1, (count + slices - 1) / slices);
}

// sum += parts, in their order.
inline void add_parts(const std::vector<std::vector<double>>& parts, double* sum) {
  for (const auto& part : parts)
    for (std::size_t j = 0; j < part.size(); ++j) sum[j] += part[j];
}

// sum += Σ_k coef_k * x_{rows_k}. Returns the most additions that one of its terms goes through, for bounds on rounding.
inline index_t add_rows(const Matrix& matrix, const index_t* rows, const double* coef, index_t count, double* sum,
                        int threads) {
  return std::visit(
      [&](const auto& x) {
        const index_t size = sum_slice(x, count);
        if (size >= count) {
          add_range(x, rows, coef, count, sum);
          return count;
        }
        add_parts(map_slices(count, size, threads,
                             [&](index_t first, index_t last) {
                               std::vector<double> mine(x.cols, 0.0);
                               add_range(x, rows + first, coef + first, last - first, mine.data());
                               return mine;
                             }),
                  sum);
        return size + (count + size - 1) / size;
      },
      matrix);
}

// sum += Σ_i coef_i * x_i over all rows, of which those with coef_i = 0 are not read.
inline void sum_rows(const Matrix& matrix, const double* coef, double* sum, int threads) {
  std::visit(
      [&](const auto& x) {
        const auto add = [&](index_t first, index_t last, double* to) {
          std::vector<index_t> rows;
          std::vector<double> some;
          rows.reserve(last - first), some.reserve(last - first);
          for (index_t i = first; i < last; ++i)
            if (coef[i] != 0) rows.push_back(i), some.push_back(coef[i]);
          add_range(x, rows.data(), some.data(), index_t(rows.size()), to);
        };
        const index_t size = sum_slice(x, x.rows);
        if (size >= x.rows) return add(0, x.rows, sum);
        add_parts(map_slices(x.rows, size, threads,
                             [&](index_t first, index_t last) {
                               std::vector<double> mine(x.cols, 0.0);
                               add(first, last, mine.data());
                               return mine;
                             }),
                  sum);
      },
      matrix);
}

// out = Σ_k weight_k <x̃_k, p> x̃_k over the given rows, x̃ = (x, bias): the Newton matrix times p, row by row.
inline void band_product(const Matrix& matrix, const index_t* rows, const double* weight, index_t count, double bias,
                         const double* p, double* out, int threads) {
  std::visit(
      [&](const auto& x) {
        const index_t d = x.cols, size = d + (bias != 0 ? 1 : 0);
        std::fill(out, out + size, 0.0);
        add_parts(map_slices(count, sum_slice(x, count), threads,
                             [&](index_t first, index_t last) {
                               std::vector<double> mine(size, 0.0);
                               for (index_t k = first; k < last; ++k) {
                                 double f = row_dot(x, rows[k], p);
                                 if (bias != 0) f += bias * p[d];
                                 row_add(x, rows[k], weight[k] * f, mine.data());
                                 if (bias != 0) mine[d] += weight[k] * f * bias;
                               }
                               return mine;
                             }),
                  out);
      },
      matrix);
}

// What the samples can do to a sum: largest_j = max_i |x_ij|. Returns max_i <x_i, x_i>.
inline double extents(const Matrix& matrix, double* largest, int threads) {
  return std::visit(
      [&](const auto& x) {
        const index_t d = x.cols;
        const auto parts = map_slices(x.rows, sum_slice(x, x.rows), threads, [&](index_t begin, index_t end) {
          std::vector<double> mine(d + 1, 0.0);  // the last: of the norms
          for (index_t i = begin; i < end; ++i) {
            row_largest(x, i, mine.data());
            mine[d] = std::max(mine[d], row_norm(x, i));
          }
          return mine;
        });
        double norm = 0;
        std::fill(largest, largest + d, 0.0);
        for (const auto& part : parts) {
          for (index_t j = 0; j < d; ++j) largest[j] = std::max(largest[j], part[j]);
          norm = std::max(norm, part[d]);
        }
        return norm;
      },
      matrix);
}

inline void row_norms(const Matrix& matrix, double* out, int threads) {
  std::visit(
      [&](const auto& x) {
        for_slices(x.rows, slice_size(x.rows, per_row(x)), threads, [&](index_t begin, index_t end) {
          for (index_t i = begin; i < end; ++i) out[i] = row_norm(x, i);
        });
      },
      matrix);
}

}  // namespace maxmargin::linear
