// Dense tiles: samples in panels [feature][kPanel lanes], W row by row; kRows × 2 vectors of accumulators stay in
// registers over all features, then the kernel function is applied to them before anything is stored. Rows of W that
// have only zeros with a block of samples are left out (boxes.hpp).
#pragma once
#include "kernel/packed_rows.hpp"

namespace maxmargin {

// Dense: RBF values from differences, for one vector of samples, whose features are `step` values apart.
template <class T>
Vec<T> near_values(const T* panel, index_t step, const T* line, index_t d) {
  Vec<T> sum{};
  for (index_t k = 0; k < d; ++k, panel += step) {
    const Vec<T> difference = load(panel) - splat(line[k]);
    sum += difference * difference;
  }
  return exp(sum * T(-0.5));
}

// Dense: what four vectors of pairs accumulated becomes their kernel values; `norms` are the sums of the pairs' norms.
template <class T, Kind kind>
inline void finish_four(const KernelSpec& spec, Vec<T>* k, const Vec<T>* norms) {
  if constexpr (kind == Kind::rbf) {
    Vec<T> e[4];
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) k[u] = smaller(Vec<T>{}, e[u] = k[u] - norms[u]);
    exp_all<4>(k);
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) k[u] = e[u] < splat(kFar<T>) ? Vec<T>{} : k[u];
  } else {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) k[u] = finish<T, kind>(spec, k[u], norms[u], Vec<T>{});
  }
}

// Dense: one panel of samples against `valid` ≤ kRows rows of W, named by `which`. RBF values above a sample's `limit`, and
// those that norms too large have made NaN, are computed again from differences. Out rows have room for a whole panel.
template <class T, Kind kind>
inline void dense_panel(const Points<T>& samples, const T* panel, const T* nx, const PackedRows<T>& w,
                        const index_t* which, int valid, const T* limit, T* const* out, index_t offset) {
  constexpr int L = kLanes<T>, width = kPanel<T>;
  const index_t d = samples.features();
  Vec<T> acc[kRows][2] = {};
  const T* line[kRows];
  for (int i = 0; i < kRows; ++i) line[i] = w.line(which[std::min(i, valid - 1)]);
  const T* pk = panel;
  for (index_t k = 0; k < d; ++k, pk += width) {
    const Vec<T> x0 = load(pk), x1 = load(pk + L);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const Vec<T> z = splat(line[i][k]);
      acc[i][0] = combine<T, kind>(acc[i][0], x0, z);
      acc[i][1] = combine<T, kind>(acc[i][1], x1, z);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; i += 2) {  // two rows, so that four exponentials run side by side
    if (i >= valid) break;
    Vec<T> k[4], norms[4];
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      k[u] = acc[i + u / 2][u % 2];
      norms[u] = load(nx + u % 2 * L) + splat(w.norm()[which[std::min(i + u / 2, valid - 1)]]);
    }
    finish_four<T, kind>(samples.spec(), k, norms);
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      if (i + u / 2 >= valid) break;
      T* to = out[i + u / 2] + offset + u % 2 * L;
      if constexpr (kind == Kind::rbf) {
        const auto near = ~(k[u] <= load(limit + u % 2 * L));
        if (any(near)) k[u] = near ? near_values(panel + u % 2 * L, width, line[i + u / 2], d) : k[u];
      }
      store(to, k[u]);
    }
  }
}

// Dense: the value of a sample whose features were not packed well, with a row of W, from the user's own numbers.
template <class T, Kind kind>
inline void exact_if_coarse(const Points<T>& samples, index_t sample, const Points<T>& w, index_t row, Packed packed, T& value) {
  if (value <= 0 && packed == Packed::coarse) return;
  const T e = T(-samples.spec().gamma * samples.distance_between(sample, w, row));
  value = kind == Kind::rbf && e < kFar<T> ? T(0) : std::exp(e);
}

// Dense: K of samples [begin, end) of the list against the chosen rows of W, into out[i][0 .. end − begin) rounded up to
// whole panels. The block's panels and norms are in scratch, or its panels in the list.
template <class T, Kind kind>
void dense_tile(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w,
                const TileScratch<T>& scratch, T* const* out) {
  constexpr int width = kPanel<T>;
  const Points<T>& points = *list.points;
  const index_t d = points.features(), count = index_t(scratch.chosen.size());
  const T* panels = list.packed ? list.packed + begin * d : scratch.panels.data();
  for (index_t i = 0; i < count; i += kRows)
    for (index_t j = begin; j < end; j += width)
      dense_panel<T, kind>(points, panels + (j - begin) * d, scratch.norm.data() + (j - begin), w, &scratch.chosen[i],
                           int(std::min<index_t>(kRows, count - i)), scratch.limit.data() + (j - begin), out + i, j - begin);
  if constexpr (kind == Kind::rbf || kind == Kind::laplacian)
    for (index_t j = begin; j < end; ++j) {
      const Packed packed = packed_well(points, list.row[j], w.points());
      if (packed == Packed::fine) continue;
      for (index_t i = 0; i < count; ++i)
        exact_if_coarse<T, kind>(points, list.row[j], w.points(), w.row(scratch.chosen[i]), packed, out[i][j - begin]);
    }
}

// Dense: panels, norms, limits and, to leave rows out, the box of samples [begin, end).
template <class T>
void dense_block(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, bool boxed,
                 TileScratch<T>& scratch) {
  constexpr int width = kPanel<T>;
  const Points<T>& points = *list.points;
  const index_t d = points.features(), whole = (end - begin + width - 1) / width * width;
  scratch.norm.assign(whole, T(0));
  scratch.limit.assign(whole, std::numeric_limits<T>::infinity());
  for (index_t j = begin; j < end; ++j) scratch.norm[j - begin] = points.norm(list.row[j]);
  if (points.spec().kind == Kind::rbf) {
    T reach = points.largest_norm(), limit = std::exp(exact_above(reach, w.points()));
    for (index_t j = begin; j < end; ++j) {
      if (points.reach(list.row[j]) != reach) {  // hardly ever: one of the samples' own is within their largest norm
        reach = points.reach(list.row[j]);
        limit = std::exp(exact_above(reach, w.points()));
      }
      scratch.limit[j - begin] = limit;
    }
  }
  const T* panels = list.packed ? list.packed + begin * d : scratch.panels.ensure(std::max<index_t>(1, whole * d));
  if (!list.packed)
    for (index_t j = begin; j < end; j += width)
      points.pack(list.row + j, int(std::min<index_t>(width, end - j)), scratch.panels.data() + (j - begin) * d);
  if (boxed) scratch.box.around(panels, end - begin, d);
}

}  // namespace maxmargin
