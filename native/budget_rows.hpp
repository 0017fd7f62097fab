// Row contents as numbers: a 64-bit hash per row and an exact comparison, equal for dense and CSR storage of the same
// row, for float and double storage of the same values, and for stored or omitted zeros.
#pragma once
#include <cstdint>
#include <cstring>

#include "matrix.hpp"
#include "threads.hpp"

namespace maxmargin::budget {

inline std::uint64_t mix(std::uint64_t z) {  // the finaliser of splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Calls entry(column, value) for the non-zeros of a row in column order.
template <class T, class Entry>
void for_each_nonzero(const Dense<T>& x, index_t row, Entry entry) {
  for (index_t k = 0; k < x.cols; ++k)
    if (x.row(row)[k] != 0) entry(k, double(x.row(row)[k]));
}
template <class T, class I, class Entry>
void for_each_nonzero(const Csr<T, I>& x, index_t row, Entry entry) {
  for (index_t e = index_t(x.indptr[row]); e < index_t(x.indptr[row + 1]); ++e)
    if (x.data[e] != 0) entry(index_t(x.indices[e]), double(x.data[e]));
}

template <class View>
void hash_rows(const View& x, const std::int32_t* labels, std::uint64_t seed, std::uint64_t* out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (index_t i = 0; i < x.rows; ++i) {
    // A sum of mixed entries: the multiplications of neighbouring entries overlap.
    std::uint64_t sum = mix(seed + 0x9e3779b97f4a7c15ull * std::uint64_t(labels[i] + 1));
    for_each_nonzero(x, i, [&](index_t k, double value) {
      std::uint64_t bits;
      std::memcpy(&bits, &value, 8);
      sum += mix(bits + 0x9e3779b97f4a7c15ull * std::uint64_t(k + 1));
    });
    out[i] = mix(sum);
  }
}

template <class View>
bool same_row(const View& x, index_t a, index_t b) {
  // Walk a's entries; b's must be the same ones. Rows are short next to the hashing, so plain vectors serve.
  std::vector<std::pair<index_t, double>> left, right;
  for_each_nonzero(x, a, [&](index_t k, double value) { left.emplace_back(k, value); });
  for_each_nonzero(x, b, [&](index_t k, double value) { right.emplace_back(k, value); });
  return left == right;
}

}  // namespace maxmargin::budget
