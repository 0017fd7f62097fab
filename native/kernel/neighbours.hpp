// An order of dense samples in which neighbours are close to each other, and how much an order is worth.
//
// A k-d tree without the tree: split the list at its median along the feature of largest variance, again and again,
// down to blocks of kLeaf samples. Ties go by place in the given list, so the result depends on that list alone.
// Cost: O(n log n) comparisons, and one look at a thousand rows per split.
#pragma once
#include "kernel/tile.hpp"

namespace maxmargin {

constexpr index_t kLeaf = 128;  // block_size() of a few dozen features

using Places = std::vector<std::pair<index_t, index_t>>;  // (place in the given list, row of the matrix)

// The feature that varies most over about a thousand samples of the list; −1 when none varies.
template <class V>
index_t widest_feature(const Dense<V>& m, const Places& list, index_t begin, index_t end) {
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

// Splits [begin, end) of the list in two and returns where; `end` when it stays as it is.
template <class V>
index_t split_neighbours(const Dense<V>& m, Places& list, index_t begin, index_t end) {
  const index_t middle = begin + ((end - begin) / 2 + kLeaf - 1) / kLeaf * kLeaf;
  if (end - begin <= kLeaf || middle >= end) return end;
  const index_t k = widest_feature(m, list, begin, end);
  if (k < 0) return end;
  const auto less = [&](const auto& a, const auto& b) {
    const V x = m.row(a.second)[k], z = m.row(b.second)[k];
    return x != z ? x < z : a.first < b.first;
  };
  std::nth_element(list.begin() + begin, list.begin() + middle, list.begin() + end, less);
  return middle;
}

// The same down to blocks of kLeaf.
template <class V>
void order_neighbours(const Dense<V>& m, Places& list, index_t begin, index_t end) {
  for (index_t middle; (middle = split_neighbours(m, list, begin, end)) < end; begin = middle)
    order_neighbours(m, list, begin, middle);
}

// The same shared out: all pieces are split, again and again, until there are enough of them to be ordered each on its own.
template <class V>
void order_neighbours(const Dense<V>& m, Places& list, int threads) {
  std::vector<index_t> edge{0, index_t(list.size())};  // of the pieces
  constexpr index_t least = 4096;                      // samples: some 100 µs of work
  while (threads > 1 && index_t(edge.size()) <= 8 * index_t(threads)) {
    const index_t pieces = index_t(edge.size()) - 1;
    std::vector<index_t> middle(pieces);
    for_slices(pieces, 1, threads, [&](index_t i, index_t) {
      middle[i] = edge[i + 1] - edge[i] > least ? split_neighbours(m, list, edge[i], edge[i + 1]) : edge[i + 1];
    });
    edge.insert(edge.end(), middle.begin(), middle.end());
    std::sort(edge.begin(), edge.end());
    edge.erase(std::unique(edge.begin(), edge.end()), edge.end());
    if (index_t(edge.size()) - 1 == pieces) break;
  }
  for_slices(index_t(edge.size()) - 1, 1, threads,
             [&](index_t i, index_t) { order_neighbours(m, list, edge[i], edge[i + 1]); });
}

// Places of the given rows in the new order; as given for sparse samples.
template <class T>
std::vector<index_t> neighbour_order(const Points<T>& points, const index_t* row, index_t count, int threads) {
  Places list(count);
  for (index_t i = 0; i < count; ++i) list[i] = {i, row[i]};
  std::visit(
      [&](const auto& m) {
        if constexpr (std::decay_t<decltype(m)>::dense) order_neighbours(m, list, threads);
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
