// Kernel tiles: K(sample, w) for a block of samples against a packed set of rows W, dense or sparse.
//
//   out[i][j]   i: row of W, j: sample of the block, so that a row of a tile is a piece of a kernel row
//
// Every entry is accumulated feature by feature in one order, wherever it stands in whatever tile: equal pairs give
// equal bits for one row or a batch, any number of threads, any blocking.
#pragma once
#include <functional>
#include <numeric>

#include "kernel/tile_dense.hpp"
#include "kernel/tile_sparse.hpp"

namespace maxmargin {

// Samples per block: their panels stay in a quarter of a 512 kB L2, and a block of values beside them.
template <class T>
inline index_t block_size(const Points<T>& points) {
  constexpr index_t width = kPanel<T>;
  const index_t fit = (index_t(128) << 10) / (index_t(sizeof(T)) * std::max<index_t>(1, points.features()));
  return points.sparse() ? kSparseBlock : std::clamp<index_t>(fit / width * width, width, 128);
}

// W rows per pass over a block: a multiple of kRows and of kChunk, so that passes begin at whole panels.
constexpr index_t kPass = 384;

// Σ a_i v_i in double; always the same order for the same count.
template <class T>
inline double weighted_sum(const double* a, const T* v, index_t count) {
  constexpr int D = kLanes<double>;
  typedef T Part __attribute__((vector_size(D * sizeof(T))));
  Vec<double> sum[4] = {};
  index_t i = 0;
  for (; i + 4 * D <= count; i += 4 * D)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      Part part;
      std::memcpy(&part, v + i + u * D, sizeof part);
      sum[u] += load(a + i + u * D) * __builtin_convertvector(part, Vec<double>);
    }
  const Vec<double> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double total = 0;
  for (int l = 0; l < D; ++l) total += all[l];
  for (; i < count; ++i) total += a[i] * double(v[i]);
  return total;
}

// into[j] += Σ_i weight_i row_i[j], in the order of i whatever the count: rows of zeros more or less change no bit.
template <class T>
inline void add_weighted(const T* const* row, const double* weight, index_t count, index_t length, double* into) {
  index_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const T *a = row[i], *b = row[i + 1], *c = row[i + 2], *d = row[i + 3];
    const double p = weight[i], q = weight[i + 1], r = weight[i + 2], s = weight[i + 3];
    for (index_t j = 0; j < length; ++j)
      into[j] = (((into[j] + p * double(a[j])) + q * double(b[j])) + r * double(c[j])) + s * double(d[j]);
  }
  for (; i < count; ++i)
    for (index_t j = 0; j < length; ++j) into[j] += weight[i] * double(row[i][j]);
}

template <class T, class Run>
void with_kind(Kind kind, Run&& run) {
  switch (kind) {
    case Kind::linear: return run(std::integral_constant<Kind, Kind::linear>());
    case Kind::poly: return run(std::integral_constant<Kind, Kind::poly>());
    case Kind::rbf: return run(std::integral_constant<Kind, Kind::rbf>());
    case Kind::sigmoid: return run(std::integral_constant<Kind, Kind::sigmoid>());
    case Kind::laplacian: return run(std::integral_constant<Kind, Kind::laplacian>());
  }
}

// Whether rows of W may be left out for some blocks of the samples.
template <class T>
inline Pruning pruning(const Points<T>& samples, const PackedRows<T>& w) {
  // Norms up to which kFarApart's margin, ½ in the exponent, is more than rounding over all features can take away.
  const T most = T(0.2) / (T(samples.features() + 3) * std::numeric_limits<T>::epsilon());
  return Pruning(samples.spec().kind == Kind::rbf && !samples.sparse() && w.count() > kBoxRows &&
                 samples.farthest() < most && w.points().farthest() < most);
}

// K of samples [begin, end) of the list against rows [w_begin, w_end) of W, w_begin a multiple of kPass: out[i] gets the
// row scratch.chosen[i], which `place(chosen) -> out` is told beforehand; the other rows are zero. Passes over one block
// go from its first to its last.
template <class T, class Place>
void tile(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, index_t w_begin, index_t w_end,
          Pruning& pruning, TileScratch<T>& scratch, Place&& place) {
  if (list.points->sparse() || !pruning.on()) {
    scratch.chosen.resize(w_end - w_begin);
    std::iota(scratch.chosen.begin(), scratch.chosen.end(), w_begin);
  }
  if (!list.points->sparse()) {
    const bool boxed = pruning.on();
    if (w_begin == 0) dense_block(list, begin, end, w, boxed, scratch);
    if (boxed) w.boxes().near(scratch.box, w_begin, w_end, pruning, scratch.chosen);
  }
  T* const* out = place(scratch.chosen);
  with_kind<T>(list.points->spec().kind, [&](auto kind) {
    constexpr Kind k = decltype(kind)::value;
    list.points->sparse() ? sparse_tile<T, k>(list, begin, end, w, w_begin, w_end, scratch, out)
                          : dense_tile<T, k>(list, begin, end, w, scratch, out);
  });
}

// run(scratch, pruning, begin, end) for every block of the list, block by block in slices that are shared out; scratch
// holds one for each thread.
template <class T, class Run>
void for_blocks(const SampleList<T>& list, const PackedRows<T>& w, Pruning far, std::vector<TileScratch<T>>& scratch,
                int threads, Run&& run) {
  struct Own {
    TileScratch<T>& scratch;
    Pruning far;
  };
  const index_t block = block_size(*list.points);
  const index_t value = list.points->per_row() + 16;  // multiplications of one kernel value: its function costs 16 or so
  for_slices(
      list.count, slice_size(list.count, w.count() * value, block), threads,
      [&](int slot) { return Own{scratch[slot], far}; },
      [&](Own& own, index_t begin, index_t end) {
        for (; begin < end; begin += block) run(own.scratch, own.far, begin, std::min(begin + block, end));
      });
}

using Then = std::function<void(index_t begin, index_t end)>;

// Kernel rows: out[i] gets K(w_i, list) for the whole list; rows must have room for whole panels. `then` is told of each part
// of the list that all rows have, by the thread that computed it.
template <class T>
void kernel_rows(const SampleList<T>& list, const PackedRows<T>& w, T* const* out, std::vector<TileScratch<T>>& scratch,
                 int threads, const Then& then = {}) {
  const auto one = [&](TileScratch<T>& mine, Pruning& far, index_t begin, index_t end) {
    T* to[kPass];
    for (index_t first = 0; first < w.count(); first += kPass) {
      const index_t last = std::min(first + kPass, w.count());
      tile(list, begin, end, w, first, last, far, mine, [&](const auto& chosen) {
        index_t next = first;
        for (std::size_t i = 0; i < chosen.size(); ++i) {
          for (; next < chosen[i]; ++next) std::fill(out[next] + begin, out[next] + end, T(0));
          to[i] = out[next++] + begin;
        }
        for (; next < last; ++next) std::fill(out[next] + begin, out[next] + end, T(0));
        return to;
      });
    }
    if (then) then(begin, end);
  };
  for_blocks(list, w, pruning(*list.points, w), scratch, threads, one);
}

// One block of samples for kernel_sum: where its values go, and how.
template <class T>
struct Sums {
  const double* coef;  // [output][row of W]
  index_t outputs, coef_stride;
  double* sum;  // [output][sample]
  index_t sum_stride;
  T* const* keep = nullptr;  // kernel rows to fill as well, aligned and with room for whole panels, or null
  bool past = false;         // by stores past the caches

  void store_at(T* to, Vec<T> v) const { past ? stream(to, v) : store(to, v); }
};

// Sparse: values come sample by sample, and are summed as they stand.
template <class T>
void sparse_sum(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, index_t w_begin,
                index_t w_end, const Sums<T>& to, TileScratch<T>& scratch) {
  const auto use = [&](index_t first, index_t valid, const T* values) {
    for (index_t s = 0; s < end - begin; ++s)
      for (index_t c = 0; c < to.outputs; ++c)
        to.sum[c * to.sum_stride + begin + s] +=
            weighted_sum(to.coef + c * to.coef_stride + first, values + s * kValueStride<T>, valid);
    if (!to.keep) return;
    T* row[kChunk<T>];
    for (index_t i = 0; i < valid; ++i) row[i] = to.keep[first + i] + begin;
    write_rows(values, valid, end - begin, row, [&](T* p, Vec<T> v) { to.store_at(p, v); });
  };
  with_kind<T>(list.points->spec().kind, [&](auto kind) {
    sparse_chunks<T, decltype(kind)::value>(list, begin, end, w, w_begin, w_end, scratch, use);
  });
}

// Dense: values of rows [w_begin, w_end) of W pass through a block that stays in cache.
template <class T>
void dense_sum(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, index_t w_begin,
               index_t w_end, const Sums<T>& to, Pruning& far, TileScratch<T>& scratch) {
  const index_t stride = block_size(*list.points) + kPanel<T>;
  T *value[kPass], *from[kPass];
  double weight[kPass];
  T* block = scratch.block.ensure(kPass * stride);
  for (index_t i = 0; i < kPass; ++i) value[i] = block + i * stride;
  tile(list, begin, end, w, w_begin, w_end, far, scratch, [&](const auto&) { return value; });
  const index_t chosen = index_t(scratch.chosen.size());
  for (index_t c = 0; c < to.outputs; ++c) {
    index_t count = 0;
    for (index_t i = 0; i < chosen; ++i) {
      weight[count] = to.coef[c * to.coef_stride + scratch.chosen[i]];
      from[count] = value[i];
      count += weight[count] != 0;
    }
    add_weighted(from, weight, count, end - begin, to.sum + c * to.sum_stride + begin);
  }
  if (!to.keep) return;
  for (index_t r = w_begin, i = 0; r < w_end; ++r) {
    const T* here = i < chosen && scratch.chosen[i] == r ? value[i++] : nullptr;
    for (index_t j = 0; j < end - begin; j += kLanes<T>)
      to.store_at(to.keep[r] + begin + j, here ? load(here + j) : Vec<T>{});
  }
}

// sum[c][j] += Σ_i coef[c][i] · K(w_i, sample j), in double and in the order of i; the kernel's values are kept only where
// there are rows for them.
template <class T>
void kernel_sum(const SampleList<T>& list, const PackedRows<T>& w, Sums<T> to, std::vector<TileScratch<T>>& scratch,
                int threads) {
  constexpr std::size_t large = std::size_t(4) << 20;  // what is more than this is out of the caches by the next turn
  to.past = std::size_t(w.count()) * std::size_t(list.count) * sizeof(T) > large;
  const auto one = [&](TileScratch<T>& mine, Pruning& far, index_t begin, index_t end) {
    for (index_t first = 0; first < w.count(); first += kPass) {
      const index_t last = std::min(first + kPass, w.count());
      list.points->sparse() ? sparse_sum(list, begin, end, w, first, last, to, mine)
                            : dense_sum(list, begin, end, w, first, last, to, far, mine);
    }
    if (to.past) streamed();
  };
  for_blocks(list, w, pruning(*list.points, w), scratch, threads, one);
}

// Compiled once, by tiles.cpp, and not again in every file that calls them: most of what a compiler has to do here.
#define MAXMARGIN_TILES_OF_KIND(T, kind, ...)                                                                              \
  __VA_ARGS__ template void dense_tile<T, kind>(const SampleList<T>&, index_t, index_t, const PackedRows<T>&,              \
                                                const TileScratch<T>&, T* const*);                                         \
  __VA_ARGS__ template void sparse_tile<T, kind>(const SampleList<T>&, index_t, index_t, const PackedRows<T>&, index_t,    \
                                                 index_t, TileScratch<T>&, T* const*);
#define MAXMARGIN_TILES(T, ...)                                                                                            \
  MAXMARGIN_TILES_OF_KIND(T, Kind::linear, __VA_ARGS__)                                                                    \
  MAXMARGIN_TILES_OF_KIND(T, Kind::poly, __VA_ARGS__)                                                                      \
  MAXMARGIN_TILES_OF_KIND(T, Kind::rbf, __VA_ARGS__)                                                                       \
  MAXMARGIN_TILES_OF_KIND(T, Kind::sigmoid, __VA_ARGS__)                                                                   \
  MAXMARGIN_TILES_OF_KIND(T, Kind::laplacian, __VA_ARGS__)                                                                 \
  __VA_ARGS__ template void dense_block<T>(const SampleList<T>&, index_t, index_t, const PackedRows<T>&, bool,             \
                                           TileScratch<T>&);                                                               \
  __VA_ARGS__ template void kernel_rows<T>(const SampleList<T>&, const PackedRows<T>&, T* const*,                          \
                                           std::vector<TileScratch<T>>&, int, const Then&);                                \
  __VA_ARGS__ template void kernel_sum<T>(const SampleList<T>&, const PackedRows<T>&, Sums<T>,                             \
                                          std::vector<TileScratch<T>>&, int);
MAXMARGIN_TILES(float, extern)
MAXMARGIN_TILES(double, extern)

}  // namespace maxmargin
