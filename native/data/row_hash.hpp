// Rows as values: a 64-bit hash of each, and exact comparison. Equal rows hash equal; −0 counts as 0, and explicit zeros
// of a sparse row count as absent.
#pragma once
#include <cstring>

#include "base/matrix.hpp"
#include "base/threads.hpp"

namespace maxmargin {

inline std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15ull;  // the golden ratio's bits: odd and without pattern
  return h ^ (h >> 29);
}
inline std::uint64_t bits(double x) {
  x += 0.0;
  std::uint64_t b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

template <class V>
std::uint64_t hash_row(const Dense<V>& m, index_t i) {
  std::uint64_t h = 0x243f6a8885a308d3ull;
  const V* x = m.row(i);
  for (index_t k = 0; k < m.cols; ++k) h = mix(h, bits(double(x[k])));
  return h;
}
template <class V, class I>
std::uint64_t hash_row(const Csr<V, I>& m, index_t i) {
  std::uint64_t h = 0x243f6a8885a308d3ull;
  for (I t = m.indptr[i]; t < m.indptr[i + 1]; ++t)
    if (m.data[t] != 0) h = mix(mix(h, std::uint64_t(m.indices[t])), bits(double(m.data[t])));
  return h;
}

template <class V>
bool equal_rows(const Dense<V>& m, index_t i, index_t j) {
  const V *x = m.row(i), *z = m.row(j);
  for (index_t k = 0; k < m.cols; ++k)
    if (x[k] != z[k]) return false;
  return true;
}
template <class V, class I>
bool equal_rows(const Csr<V, I>& m, index_t i, index_t j) {
  I s = m.indptr[i], t = m.indptr[j];
  for (;; ++s, ++t) {
    while (s < m.indptr[i + 1] && m.data[s] == 0) ++s;
    while (t < m.indptr[j + 1] && m.data[t] == 0) ++t;
    if (s == m.indptr[i + 1] || t == m.indptr[j + 1]) return s == m.indptr[i + 1] && t == m.indptr[j + 1];
    if (m.indices[s] != m.indices[t] || m.data[s] != m.data[t]) return false;
  }
}

// hash[i] = hash of row i mixed with label[i].
inline void hash_rows(const Matrix& matrix, const double* label, std::uint64_t* hash, int threads) {
  std::visit(
      [&](const auto& m) {
        for_slices(m.rows, slice_size(m.rows, 2 * per_row(m)), threads, [&](index_t begin, index_t end) {
          for (index_t i = begin; i < end; ++i) hash[i] = mix(hash_row(m, i), bits(label[i]));
        });
      },
      matrix);
}

}  // namespace maxmargin
