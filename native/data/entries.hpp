// The nonzero entries of rows of a dense matrix, for storing it as CSR: counted first, then written where each row begins.
#pragma once
#include "base/matrix.hpp"
#include "base/threads.hpp"

namespace maxmargin {

// count[t] = nonzeros of row[t].
template <class V>
void count_entries(const Dense<V>& m, const index_t* row, index_t rows, index_t* count, int threads) {
  for_slices(rows, slice_size(rows, m.cols), threads, [&](index_t begin, index_t end) {
    for (index_t t = begin; t < end; ++t) {
      const V* x = m.row(row[t]);
      std::int32_t sum = 0;
      for (index_t k = 0; k < m.cols; ++k) sum += x[k] != 0;
      count[t] = sum;
    }
  });
}

// Row row[t] goes to indices and data from indptr[row[t]] to indptr[row[t] + 1].
template <class V, class I>
void write_entries(const Dense<V>& m, const index_t* row, index_t rows, const I* indptr, I* indices, V* data,
                   int threads) {
  for_slices(rows, slice_size(rows, m.cols), threads, [&](index_t first, index_t last) {
    for (index_t t = first; t < last; ++t) {
      const V* x = m.row(row[t]);
      I at = indptr[row[t]];
      const I end = indptr[row[t] + 1];
      for (index_t k = 0; k < m.cols && at < end; ++k) {  // no branch on x: which entries are zero has no pattern
        indices[at] = I(k);
        data[at] = x[k];
        at += x[k] != 0;
      }
    }
  });
}

}  // namespace maxmargin
