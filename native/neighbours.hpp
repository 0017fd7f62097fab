// An order of dense samples in which neighbours are close to each other, and how much an order is worth.
//
// A k-d tree without the tree: split the list at its median along the feature of largest variance, again and again,
// down to blocks of kLeaf samples. Ties go by place in the given list, so the result depends on that list alone.
// Cost: O(n log n) comparisons, and one look at a thousand rows per split.
#pragma once
#include "tile.hpp"

namespace maxmargin {

constexpr index_t kLeaf = 128;  // block_size() of a few dozen features

// The feature that varies most over about a thousand samples of the list; −1 when none varies.
template <class V>
index_t widest_feature(const Dense<V>& m, const std::vector<std::pair<index_t, index_t>>& list, index_t begin, index_t end) {
  const index_t step = std::max<index_t>(1, (end - begin) / 1000);
  std::vector<double> mean(m.cols), square(m.cols);
  double count = 0;
  for (index_t i = begin; i < end; i += step, ++count) {
    const V* x = m.row(list[i].second);
    const V* origin = m.row(list[begin].second);  // numbers near zero, so that squares do not cancel
    for (index_t k = 0; k < m.cols; ++k) {
      const double shifted = double(x[k]) - double(origin[k]);
      mean[k] += shifted;
      square[k] += shifted * shifted;
    }
  }
  index_t best = -1;
  double most = 0;
  for (index_t k = 0; k < m.cols; ++k) {
    const double variance = square[k] - mean[k] * mean[k] / count;
    if (variance > most) {
      most = variance;
      best = k;
    }
  }
  return best;
}

// list: (place in the given list, row of the matrix); sorted in blocks of kLeaf.
template <class V>
void split_neighbours(const Dense<V>& m, std::vector<std::pair<index_t, index_t>>& list, index_t begin, index_t end) {
  while (end - begin > kLeaf) {
    const index_t k = widest_feature(m, list, begin, end);
    if (k < 0) return;
    const index_t middle = begin + ((end - begin) / 2 + kLeaf - 1) / kLeaf * kLeaf;
    if (middle >= end) return;
    const auto less = [&](const auto& a, const auto& b) {
      const V x = m.row(a.second)[k], z = m.row(b.second)[k];
      return x != z ? x < z : a.first < b.first;
    };
    std::nth_element(list.begin() + begin, list.begin() + middle, list.begin() + end, less);
#pragma omp task shared(m, list) firstprivate(begin, middle) if (middle - begin > 4096)
    split_neighbours(m, list, begin, middle);
    begin = middle;
  }
#pragma omp taskwait
}

// Places of the given rows in the new order; as given for sparse samples.
template <class T>
std::vector<index_t> neighbour_order(const Points<T>& points, const index_t* row, index_t count, int threads) {
  std::vector<std::pair<index_t, index_t>> list(count);
  for (index_t i = 0; i < count; ++i) list[i] = {i, row[i]};
  std::visit(
      [&](const auto& m) {
        if constexpr (std::decay_t<decltype(m)>::dense) {
#pragma omp parallel num_threads(threads)
#pragma omp single
          split_neighbours(m, list, 0, count);
        }
      },
      points.matrix());
  std::vector<index_t> order(count);
  for (index_t i = 0; i < count; ++i) order[i] = list[i].first;
  return order;
}

// The share of kernel values that need not be computed in this order of rows: a sample of some blocks against some rows.
template <class T>
double far_share(const Points<T>& points, const index_t* row, index_t count) {
  constexpr index_t some = 48;
  std::vector<index_t> probe;
  for (index_t i = 0; i < some; ++i) probe.push_back(row[(2 * i + 1) * count / (2 * some)]);
  PackedRows<T> w;
  w.pack(points, probe.data(), some);
  if (!pruning(points, w).on() || count < kLeaf) return 0.0;
  TileScratch<T> scratch;
  const SampleList<T> list{&points, row, count};
  index_t kept = 0;
  const index_t blocks = std::min<index_t>(some, count / kLeaf);
  for (index_t b = 0; b < blocks; ++b) {
    const index_t begin = b * (count / kLeaf) / blocks * kLeaf;
    dense_block(list, begin, std::min(begin + kLeaf, count), w, true, scratch);
    Pruning ask(true);
    w.boxes().near(scratch.box, 0, some, ask, scratch.chosen);
    kept += index_t(scratch.chosen.size());
  }
  return 1.0 - double(kept) / double(blocks * some);
}

}  // namespace maxmargin
