// From samples back to the rows that they stand for: what a sample has is shared out among its copies.
#pragma once
#include <algorithm>

#include "base/matrix.hpp"

namespace maxmargin {

// Members of samples, copies side by side: member m is row `row[m]` of the matrix, a copy of sample `owner[m]`.
struct Copies {
  index_t members;
  const index_t *row, *owner;
  const double* weight;  // of each member
};

// Each sample's alpha over its copies: the first ones up to their bound unit · weight, so that few are used. A sample at its
// bound, unit · total, has all of them at theirs, also where the weight of one is lost in the total. Rows of no sample stay.
//   worked example: alpha 2.5 of a sample with copies of weights 1, 2, 4 and unit 1 → 1, 1.5, 0
inline void spread(const Copies& c, const double* alpha, const double* unit, const double* total, double* out) {
  for (index_t m = 0; m < c.members;) {
    const index_t i = c.owner[m];
    index_t end = m + 1;
    while (end < c.members && c.owner[end] == i) ++end;
    const bool full = alpha[i] >= unit[i] * total[i], alone = end == m + 1;
    double left = alpha[i];
    for (; m < end; ++m) {
      const double most = unit[i] * c.weight[m];
      out[c.row[m]] = alone ? left : full ? most : std::min(left, most);
      left = std::max(0.0, left - most);
    }
  }
}

}  // namespace maxmargin
