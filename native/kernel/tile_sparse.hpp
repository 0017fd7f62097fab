// Sparse tiles: W dense and transposed, [feature slot][kChunk rows], only the features that W has, ascending; each stored
// entry of a sample updates kChunk accumulators, so the lanes are full whatever the sparsity of the samples. Where rows
// are long, a chunk is taken in pieces of kSlotPiece slots that stay in L1 while all samples of a block pass by.
#pragma once
#include "kernel/packed_rows.hpp"

namespace maxmargin {

constexpr index_t kSparseBlock = 64;

// The block's entries, in scratch: cut into pieces where the samples have enough of them to pay for it.
template <class T, Kind kind>
void gather_entries(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w,
                    TileScratch<T>& scratch) {
  constexpr index_t worth = 12;  // entries per sample and piece, so that fetching and storing sums is the lesser part
  const Points<T>& points = *list.points;
  index_t total = 0, at = 0;
  for (index_t j = begin; j < end; ++j) total += points.count(list.row[j]);
  std::int32_t* slot = scratch.slot.ensure(std::max<index_t>(1, total));
  T* value = scratch.value.ensure(std::max<index_t>(1, total));
  index_t pieces = std::max<index_t>(1, (w.slots() + kSlotPiece - 1) / kSlotPiece);
  if (total < worth * pieces * (end - begin)) pieces = 1;
  const index_t length = pieces > 1 ? kSlotPiece : std::max<index_t>(1, w.slots());
  scratch.pieces = pieces;
  scratch.cut.resize((end - begin) * (pieces + 1));
  index_t* cut = scratch.cut.data();
  for (index_t j = begin; j < end; ++j) {
    index_t* const last = cut + pieces;
    index_t next = 0;  // the first slot after the piece at hand; rows are sorted, else a piece is merely wider
    points.entries(list.row[j], [&](index_t k, T x) {
      const std::int32_t here = w.slot(k);
      if (here == 0 && kind != Kind::laplacian) return;
      for (; here >= next; next += length) *cut++ = at;
      slot[at] = here;
      value[at++] = x;
    });
    while (cut <= last) *cut++ = at;
  }
}

template <class T>
constexpr index_t kValueStride = kChunk<T> + 64 / index_t(sizeof(T));  // not a power of two: columns use all cache sets

// values[s][i] = what sample s of the block accumulates over its entries against row i of a chunk of W, for the first
// `vectors` vectors of rows.
//   laplacian: Σ|w| + Σ_{x≠0} (|x − w| − |w|)
template <class T, Kind kind, int vectors>
void accumulate(index_t count, const T* chunk, const T* absolute, const TileScratch<T>& scratch, T* values) {
  constexpr int L = kLanes<T>;
  const std::int32_t* slot = scratch.slot.data();
  const T* value = scratch.value.data();
  const index_t pieces = scratch.pieces;
  for (index_t piece = 0; piece < pieces; ++piece)
    for (index_t s = 0; s < count; ++s) {
      const index_t* cut = scratch.cut.data() + s * (pieces + 1) + piece;
      T* to = values + s * kValueStride<T>;
      Vec<T> acc[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        acc[v] = piece > 0 ? load(to + v * L) : Vec<T>{};
        if (kind == Kind::laplacian && piece == 0) acc[v] = load(absolute + v * L);
      }
      for (index_t t = cut[0], stop = cut[1]; t < stop; ++t) {
        const T* wk = chunk + index_t(slot[t]) * kChunk<T>;
        const Vec<T> x = splat(value[t]);
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          const Vec<T> z = load(wk + v * L);
          acc[v] = combine<T, kind>(acc[v], x, z);
          if constexpr (kind == Kind::laplacian) acc[v] -= (z < Vec<T>{} ? -z : z);
        }
      }
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) store(to + v * L, acc[v]);
    }
}

// From what a sample accumulated to its kernel values, in place, for as many rows of W from `first` on.
template <class T, Kind kind, int vectors>
inline void finish_values(const Points<T>& samples, index_t sample, const PackedRows<T>& w, index_t first, T limit,
                          T* values) {
  constexpr int L = kLanes<T>;
  const Vec<T> nx = splat(samples.norm(sample));
  const T* nz = w.norm() + first;
  bool near = false;
  T exponent[kChunk<T>];
  if constexpr (kind == Kind::rbf || kind == Kind::laplacian) {
    near = limit < std::numeric_limits<T>::infinity();
    if (near)
      for (int i = 0; i < vectors * L; i += L)
        store(exponent + i, kind == Kind::rbf ? load(values + i) - (nx + load(nz + i)) : -load(values + i));
  }
  constexpr int together = std::min(4, vectors);
#pragma GCC unroll 2
  for (int i = 0; i < vectors * L; i += together * L) {
    Vec<T> k[together];
#pragma GCC unroll 4
    for (int u = 0; u < together; ++u) {
      k[u] = load(values + i + u * L);
      if constexpr (kind == Kind::rbf)
        k[u] = smaller(Vec<T>{}, k[u] - (nx + load(nz + i + u * L)));
      else
        k[u] = finish<T, kind>(samples.spec(), k[u], nx, nx);
    }
    if constexpr (kind == Kind::rbf) exp_all<together>(k);
#pragma GCC unroll 4
    for (int u = 0; u < together; ++u) store(values + i + u * L, k[u]);
  }
  if (near)
    for (int i = 0; i < vectors * L && first + i < w.count(); ++i)
      recompute_near<T>(samples, sample, w, first + i, exponent[i], limit, values + i);
}

// Rows [w_begin, w_end) of W chunk by chunk: use(first, valid, values) finds K(sample begin + s, w_{first + i}) in
// values[s · kValueStride + i] for i < valid.
template <class T, Kind kind, class Use>
void sparse_chunks(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, index_t w_begin,
                   index_t w_end, TileScratch<T>& scratch, Use&& use) {
  if (w_begin == 0) gather_entries<T, kind>(list, begin, end, w, scratch);  // later passes find them there
  T limit[kSparseBlock];
  for (index_t s = 0; s < end - begin; ++s) limit[s] = exact_above(list.points->reach(list.row[begin + s]), w.points());
  T* values = scratch.values.ensure(kSparseBlock * kValueStride<T>);
  for (index_t first = w_begin; first < w_end; first += kChunk<T>) {
    const index_t valid = std::min<index_t>(kChunk<T>, w_end - first);
    const auto fill = [&](auto vectors) {
      constexpr int V = decltype(vectors)::value;
      accumulate<T, kind, V>(end - begin, w.chunk(first), w.absolute() + first, scratch, values);
      for (index_t s = 0; s < end - begin; ++s)
        finish_values<T, kind, V>(*list.points, list.row[begin + s], w, first, limit[s], values + s * kValueStride<T>);
    };
    if (valid <= kChunk<T> / 4) fill(std::integral_constant<int, 2>());
    else if (valid <= kChunk<T> / 2) fill(std::integral_constant<int, 4>());
    else fill(std::integral_constant<int, 8>());
    use(first, valid, values);
  }
}

// out[i][s] = values[s · kValueStride + i] for whole vectors of samples: kernel rows from a chunk, a cache line of each row
// at a time. `put` stores a vector.
template <class T, class Put>
void write_rows(const T* values, index_t valid, index_t count, T* const* out, Put&& put) {
  constexpr int L = kLanes<T>;
  for (index_t i = 0; i < valid; i += L)
    for (index_t s = 0; s < count; s += kPanel<T>) {
      Vec<T> square[2][L];
      for (int half = 0; half < 2; ++half) {
        for (int l = 0; l < L; ++l) square[half][l] = load(values + (s + half * L + l) * kValueStride<T> + i);
        transpose<T>(square[half]);
      }
      const int rows = int(std::min<index_t>(L, valid - i));
      for (int l = 0; l < rows; ++l)
        for (int half = 0; half < 2; ++half) put(out[i + l] + s + half * L, square[half][l]);
    }
}

template <class T, Kind kind>
void sparse_tile(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, index_t w_begin,
                 index_t w_end, TileScratch<T>& scratch, T* const* out) {
  sparse_chunks<T, kind>(list, begin, end, w, w_begin, w_end, scratch, [&](index_t first, index_t valid, const T* values) {
    write_rows(values, valid, end - begin, out + (first - w_begin), [](T* to, Vec<T> v) { store(to, v); });
  });
}

}  // namespace maxmargin
