// Kernel tiles: K(sample, w) for a block of samples against a packed set of rows W (a working set, support vectors).
//
//   out[i][j]   i: row of W, j: sample of the block, so that a row of a tile is a piece of a kernel row
//
// Dense: samples in panels [feature][kPanel lanes], W row by row; kRows × 2 vectors of accumulators stay in registers
// over all features, then the kernel function is applied to them before anything is stored. Rows of W that have only
// zeros with a block of samples are left out (boxes.hpp).
// Sparse: W dense and transposed, [feature slot][kChunk rows], only the features that W has, ascending; each stored
// entry of a sample updates kChunk accumulators, so the lanes are full whatever the sparsity of the samples. Where rows
// are long, a chunk is taken in pieces of kSlotPiece slots that stay in L1 while all samples of a block pass by.
//
// Every entry is accumulated feature by feature in one order, wherever it stands in whatever tile: equal pairs give
// equal bits for one row or a batch, any number of threads, any blocking.
#pragma once
#include <memory>
#include <numeric>

#include "boxes.hpp"
#include "points.hpp"

namespace maxmargin {

// Accumulators use 12 of 16 vector registers (24 of 32 with AVX-512); the rest hold one panel step and a broadcast.
#if defined(__AVX512F__)
constexpr int kRows = 12;
#else
constexpr int kRows = 6;
#endif

template <class T>
constexpr int kChunk = 8 * kLanes<T>;  // sparse: W rows per accumulator set (8 vectors)
constexpr index_t kSlotPiece = (index_t(32) << 10) / (8 * kVectorBytes);  // sparse: slots of a chunk in 32 kB

// Aligned scratch memory that keeps its size between uses (no page faults in hot loops).
template <class T>
class Buffer {
 public:
  T* ensure(std::size_t size) {
    if (size > size_) {
      memory_.reset(static_cast<T*>(::operator new[](size * sizeof(T), std::align_val_t(64))));
      size_ = size;
    }
    return memory_.get();
  }
  T* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t(64)); }
  };
  std::unique_ptr<T[], Free> memory_;
  std::size_t size_ = 0;
};

// The W side of a tile, packed once and read by all threads.
template <class T>
class PackedRows {
 public:
  void pack(const Points<T>& points, const index_t* row, index_t count) {
    points_ = &points;
    row_ = row;
    count_ = count;
    padded_ = points.sparse() ? round_up(count, kChunk<T>) : count;
    norm_.assign(padded_, T(0));
    for (index_t i = 0; i < count; ++i) norm_[i] = points.norm(row[i]);
    points.sparse() ? pack_sparse() : pack_dense();
  }

  index_t count() const { return count_; }
  index_t row(index_t i) const { return row_[i]; }
  const Points<T>& points() const { return *points_; }
  const T* norm() const { return norm_.data(); }
  const T* line(index_t i) const { return packed_.data() + i * padded<T>(points_->features()); }       // dense
  const Boxes<T>& boxes() const { return boxes_; }                                                     // dense
  const T* chunk(index_t first) const { return packed_.data() + first * index_t(slots_); }             // sparse
  std::int32_t slot(index_t feature) const { return slot_[feature]; }  // 0: no row has it; that slot holds zeros
  index_t slots() const { return slots_; }
  const T* absolute() const { return absolute_.data(); }  // sparse laplacian: Σ|w| of each row

 private:
  static index_t round_up(index_t n, index_t to) { return (n + to - 1) / to * to; }

  void pack_dense() {
    const index_t d = points_->features(), width = padded<T>(d);
    T* out = packed_.ensure(std::max<index_t>(1, count_ * width));
    for (index_t i = 0; i < count_; ++i) {
      points_->pack_row(row_[i], out + i * width);
      std::fill(out + i * width + d, out + (i + 1) * width, T(0));
    }
    if (points_->spec().kind == Kind::rbf) boxes_.build(out, count_, width);
  }

  void pack_sparse() {
    slot_.assign(points_->features(), 0);
    for (index_t i = 0; i < count_; ++i) points_->entries(row_[i], [&](index_t k, T) { slot_[k] = 1; });
    slots_ = 1;
    for (auto& slot : slot_)
      if (slot) slot = slots_++;
    T* out = packed_.ensure(std::max<index_t>(1, padded_ * slots_));
    std::fill(out, out + padded_ * slots_, T(0));
    absolute_.assign(padded_, T(0));
    for (index_t i = 0; i < count_; ++i) {
      T* to = out + (i / kChunk<T>)*kChunk<T> * index_t(slots_) + i % kChunk<T>;
      points_->entries(row_[i], [&](index_t k, T x) {
        to[slot_[k] * index_t(kChunk<T>)] += x;
        absolute_[i] += std::abs(x);
      });
    }
  }

  const Points<T>* points_ = nullptr;
  const index_t* row_ = nullptr;
  index_t count_ = 0, padded_ = 0;
  std::int32_t slots_ = 0;
  Buffer<T> packed_;
  Boxes<T> boxes_;
  std::vector<T> norm_, absolute_;
  std::vector<std::int32_t> slot_;
};

// RBF entries whose exponent lies above this are recomputed from differences: there, rounding of the norms
// (about 2^-24 · 2(nx + nz) in the exponent) would move K by more than kEntryError.
constexpr double kEntryError = 4e-6;
template <class T>
inline T exact_above(const Points<T>& a, const Points<T>& b) {
  const double error = 2 * double(a.largest_norm() + b.largest_norm()) * std::numeric_limits<T>::epsilon() / 2;
  if (a.spec().kind != Kind::rbf || error <= kEntryError) return std::numeric_limits<T>::infinity();
  return T(std::log(kEntryError / error));
}

template <class T>
inline void recompute_near(const Points<T>& samples, index_t sample, const PackedRows<T>& w, index_t i, T exponent,
                           T limit, T* value) {
  if (!(exponent > limit) || exponent == T(0)) return;
  const double d2 = samples.squared_distance(sample, w.points(), w.row(i));
  if (d2 >= 0) *value = T(std::exp(-samples.spec().gamma * d2));
}

// Dense: RBF values from differences, for one vector of samples.
template <class T>
Vec<T> near_values(const T* panel, const T* line, index_t d) {
  Vec<T> sum{};
  for (index_t k = 0; k < d; ++k, panel += kPanel<T>) {
    const Vec<T> difference = load(panel) - splat(line[k]);
    sum += difference * difference;
  }
  return exp(sum * T(-0.5));
}

// Dense: one panel of samples against `valid` ≤ kRows rows of W, named by `which`. Out rows have room for a whole panel.
template <class T, Kind kind>
inline void dense_panel(const Points<T>& samples, const T* panel, const T* nx, const PackedRows<T>& w,
                        const index_t* which, int valid, T limit, T* const* out, index_t offset) {
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
  for (int i = 0; i < kRows; ++i) {
    if (i >= valid) break;
    const Vec<T> nz = splat(w.norm()[which[i]]);
    T* to = out[i] + offset;
    for (int half = 0; half < 2; ++half) {
      const Vec<T> n = load(nx + half * L);
      store(to + half * L, finish<T, kind>(samples.spec(), acc[i][half], n, nz));
      if constexpr (kind == Kind::rbf) {
        const Vec<T> e = acc[i][half] - (n + nz);
        const auto near = e > splat(limit);
        if (any(near)) store(to + half * L, near ? near_values(panel + half * L, line[i], d) : load(to + half * L));
      }
    }
  }
}

// Samples in tiles: which rows of a Points, and their panels if they were packed beforehand.
template <class T>
struct SampleList {
  const Points<T>* points;
  const index_t* row;
  index_t count;
  const T* packed = nullptr;  // dense: [panel][feature][kPanel], or null: pack as needed
};

// Per-thread memory of a tile loop.
template <class T>
struct TileScratch {
  Buffer<T> panels, values, block;
  std::vector<T> norm;
  // Sparse: the block's entries as (slot of W, value) pairs, sample by sample.
  Buffer<std::int32_t> slot;
  Buffer<T> value;
  index_t pieces = 1;        // into which each sample's entries are cut, one per kSlotPiece slots
  std::vector<index_t> cut;  // [sample][pieces + 1]: where they begin and end
  Box<T> box;                   // dense: around the block of samples
  std::vector<index_t> chosen;  // rows of W that may have values other than zero with the block
};

constexpr index_t kSparseBlock = 64;

// Samples per block: their panels stay in a quarter of a 512 kB L2, and a block of values beside them.
template <class T>
inline index_t block_size(const Points<T>& points) {
  constexpr index_t width = kPanel<T>;
  const index_t fit = (index_t(128) << 10) / (index_t(sizeof(T)) * std::max<index_t>(1, points.features()));
  return points.sparse() ? kSparseBlock : std::clamp<index_t>(fit / width * width, width, 128);
}

// W rows per pass over a block: a multiple of kRows and of kChunk, so that passes begin at whole panels.
constexpr index_t kPass = 384;

// Dense: K of samples [begin, end) of the list against the chosen rows of W, into out[i][0 .. end − begin) rounded up to
// whole panels. The block's panels and norms are in scratch, or its panels in the list.
template <class T, Kind kind>
void dense_tile(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w,
                const TileScratch<T>& scratch, T* const* out) {
  constexpr int width = kPanel<T>;
  const Points<T>& points = *list.points;
  const T limit = exact_above(points, w.points());
  const index_t d = points.features(), count = index_t(scratch.chosen.size());
  const T* panels = list.packed ? list.packed + begin * d : scratch.panels.data();
  for (index_t i = 0; i < count; i += kRows)
    for (index_t j = begin; j < end; j += width)
      dense_panel<T, kind>(points, panels + (j - begin) * d, scratch.norm.data() + (j - begin), w, &scratch.chosen[i],
                           int(std::min<index_t>(kRows, count - i)), limit, out + i, j - begin);
}

// Dense: panels, norms and, to leave rows out, the box of samples [begin, end).
template <class T>
void dense_block(const SampleList<T>& list, index_t begin, index_t end, bool boxed, TileScratch<T>& scratch) {
  constexpr int width = kPanel<T>;
  const Points<T>& points = *list.points;
  const index_t d = points.features(), whole = (end - begin + width - 1) / width * width;
  scratch.norm.assign(whole, T(0));
  for (index_t j = begin; j < end; ++j) scratch.norm[j - begin] = points.norm(list.row[j]);
  const T* panels = list.packed ? list.packed + begin * d : scratch.panels.ensure(std::max<index_t>(1, whole * d));
  if (!list.packed)
    for (index_t j = begin; j < end; j += width)
      points.pack(list.row + j, int(std::min<index_t>(width, end - j)), scratch.panels.data() + (j - begin) * d);
  if (boxed) scratch.box.around(panels, end - begin, d);
}

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

// values[s][i] = what sample s of the block accumulates over its entries against row i of a chunk of W.
//   laplacian: Σ|w| + Σ_{x≠0} (|x − w| − |w|)
template <class T, Kind kind>
void accumulate(index_t count, const T* chunk, const T* absolute, const TileScratch<T>& scratch, T* values) {
  constexpr int L = kLanes<T>;
  const std::int32_t* slot = scratch.slot.data();
  const T* value = scratch.value.data();
  const index_t pieces = scratch.pieces;
  for (index_t piece = 0; piece < pieces; ++piece)
    for (index_t s = 0; s < count; ++s) {
      const index_t* cut = scratch.cut.data() + s * (pieces + 1) + piece;
      T* to = values + s * kValueStride<T>;
      Vec<T> acc[8];
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) {
        acc[v] = piece > 0 ? load(to + v * L) : Vec<T>{};
        if (kind == Kind::laplacian && piece == 0) acc[v] = load(absolute + v * L);
      }
      for (index_t t = cut[0], stop = cut[1]; t < stop; ++t) {
        const T* wk = chunk + index_t(slot[t]) * kChunk<T>;
        const Vec<T> x = splat(value[t]);
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v) {
          const Vec<T> z = load(wk + v * L);
          acc[v] = combine<T, kind>(acc[v], x, z);
          if constexpr (kind == Kind::laplacian) acc[v] -= (z < Vec<T>{} ? -z : z);
        }
      }
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) store(to + v * L, acc[v]);
    }
}

// From what a sample accumulated to its kernel values, in place, for the kChunk rows of W from `first` on.
template <class T, Kind kind>
inline void finish_values(const Points<T>& samples, index_t sample, const PackedRows<T>& w, index_t first, T limit,
                          T* values) {
  constexpr int L = kLanes<T>;
  const Vec<T> nx = splat(samples.norm(sample));
  const T* nz = w.norm() + first;
  bool near = false;
  T exponent[kChunk<T>];
  if constexpr (kind == Kind::rbf) {
    near = limit < std::numeric_limits<T>::infinity();
    if (near)
      for (int i = 0; i < kChunk<T>; i += L) store(exponent + i, load(values + i) - (nx + load(nz + i)));
  }
#pragma GCC unroll 2
  for (int i = 0; i < kChunk<T>; i += 4 * L) {
    Vec<T> k[4];
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      k[u] = load(values + i + u * L);
      if constexpr (kind == Kind::rbf)
        k[u] = smaller(k[u] - (nx + load(nz + i + u * L)), Vec<T>{});
      else
        k[u] = finish<T, kind>(samples.spec(), k[u], nx, nx);
    }
    if constexpr (kind == Kind::rbf) exp_all<4>(k);
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) store(values + i + u * L, k[u]);
  }
  if (near)
    for (int i = 0; i < kChunk<T> && first + i < w.count(); ++i)
      recompute_near<T>(samples, sample, w, first + i, exponent[i], limit, values + i);
}

// Rows [w_begin, w_end) of W chunk by chunk: use(first, valid, values) finds K(sample begin + s, w_{first + i}) in
// values[s · kValueStride + i] for i < valid.
template <class T, Kind kind, class Use>
void sparse_chunks(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, index_t w_begin,
                   index_t w_end, TileScratch<T>& scratch, Use&& use) {
  if (w_begin == 0) gather_entries<T, kind>(list, begin, end, w, scratch);  // later passes find them there
  const T limit = exact_above(*list.points, w.points());
  T* values = scratch.values.ensure(kSparseBlock * kValueStride<T>);
  for (index_t first = w_begin; first < w_end; first += kChunk<T>) {
    accumulate<T, kind>(end - begin, w.chunk(first), w.absolute() + first, scratch, values);
    for (index_t s = 0; s < end - begin; ++s)
      finish_values<T, kind>(*list.points, list.row[begin + s], w, first, limit, values + s * kValueStride<T>);
    use(first, std::min<index_t>(kChunk<T>, w_end - first), values);
  }
}

template <class T, Kind kind>
void sparse_tile(const SampleList<T>& list, index_t begin, index_t end, const PackedRows<T>& w, index_t w_begin,
                 index_t w_end, TileScratch<T>& scratch, T* const* out) {
  constexpr int L = kLanes<T>;
  sparse_chunks<T, kind>(list, begin, end, w, w_begin, w_end, scratch, [&](index_t first, index_t valid, const T* values) {
    for (index_t i = 0; i < valid; i += L)
      for (index_t s = 0; s < end - begin; s += L) {
        Vec<T> square[L];
        for (int l = 0; l < L; ++l) square[l] = load(values + (s + l) * kValueStride<T> + i);
        transpose<T>(square);
        const int rows = int(std::min<index_t>(L, valid - i));
        for (int l = 0; l < rows; ++l) store(out[first - w_begin + i + l] + s, square[l]);
      }
  });
}

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
  constexpr T most = T(1e-3) / std::numeric_limits<T>::epsilon();  // norms up to which kFarApart's margin is enough
  return Pruning(samples.spec().kind == Kind::rbf && !samples.sparse() && w.count() > kBoxRows &&
                 samples.largest_norm() < most && w.points().largest_norm() < most);
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
    if (w_begin == 0) dense_block(list, begin, end, boxed, scratch);
    if (boxed) w.boxes().near(scratch.box, w_begin, w_end, pruning, scratch.chosen);
  }
  T* const* out = place(scratch.chosen);
  with_kind<T>(list.points->spec().kind, [&](auto kind) {
    constexpr Kind k = decltype(kind)::value;
    list.points->sparse() ? sparse_tile<T, k>(list, begin, end, w, w_begin, w_end, scratch, out)
                          : dense_tile<T, k>(list, begin, end, w, scratch, out);
  });
}

// Kernel rows: out[i] gets K(w_i, list) for the whole list; rows must have room for whole panels.
template <class T>
void kernel_rows(const SampleList<T>& list, const PackedRows<T>& w, T* const* out, std::vector<TileScratch<T>>& scratch,
                 int threads) {
  const index_t block = block_size(*list.points);
#pragma omp parallel num_threads(threads)
  {
    T* to[kPass];
    Pruning far = pruning(*list.points, w);
#pragma omp for schedule(dynamic)
    for (index_t begin = 0; begin < list.count; begin += block) {
      const index_t end = std::min(begin + block, list.count);
      for (index_t first = 0; first < w.count(); first += kPass) {
        const index_t last = std::min(first + kPass, w.count());
        tile(list, begin, end, w, first, last, far, scratch[omp_get_thread_num()], [&](const auto& chosen) {
          index_t next = first;
          for (std::size_t i = 0; i < chosen.size(); ++i) {
            for (; next < chosen[i]; ++next) std::fill(out[next] + begin, out[next] + end, T(0));
            to[i] = out[next++] + begin;
          }
          for (; next < last; ++next) std::fill(out[next] + begin, out[next] + end, T(0));
          return to;
        });
      }
    }
  }
}

// sum[c][j] += Σ_i coef[c][i] · K(w_i, sample j), nothing of the kernel kept; sums in double, in the order of i.
template <class T>
void kernel_sum(const SampleList<T>& list, const PackedRows<T>& w, const double* coef, index_t outputs,
                index_t coef_stride, double* sum, index_t sum_stride, std::vector<TileScratch<T>>& scratch,
                int threads) {
  const index_t block = block_size(*list.points), stride = block + kPanel<T>;
#pragma omp parallel num_threads(threads)
  {
    TileScratch<T>& mine = scratch[omp_get_thread_num()];
    T* values = mine.block.ensure(kPass * stride);
    T* to[kPass];
    for (index_t i = 0; i < kPass; ++i) to[i] = values + i * stride;
    Pruning far = pruning(*list.points, w);
#pragma omp for schedule(dynamic)
    for (index_t begin = 0; begin < list.count; begin += block) {
      const index_t end = std::min(begin + block, list.count);
      for (index_t first = 0; first < w.count(); first += kPass) {
        const index_t last = std::min(first + kPass, w.count());
        if (list.points->sparse()) {  // values come sample by sample: sum them as they stand
          const auto add = [&](index_t i, index_t valid, const T* values) {
            for (index_t s = 0; s < end - begin; ++s)
              for (index_t c = 0; c < outputs; ++c)
                sum[c * sum_stride + begin + s] +=
                    weighted_sum(coef + c * coef_stride + i, values + s * kValueStride<T>, valid);
          };
          with_kind<T>(list.points->spec().kind, [&](auto kind) {
            sparse_chunks<T, decltype(kind)::value>(list, begin, end, w, first, last, mine, add);
          });
          continue;
        }
        tile(list, begin, end, w, first, last, far, mine, [&](const auto&) { return to; });
        for (index_t c = 0; c < outputs; ++c)
          for (std::size_t i = 0; i < mine.chosen.size(); ++i) {
            const double a = coef[c * coef_stride + mine.chosen[i]];
            if (a == 0) continue;
            double* into = sum + c * sum_stride + begin;
            const T* from = to[i];
            for (index_t j = 0; j < end - begin; ++j) into[j] += a * double(from[j]);
          }
      }
    }
  }
}

}  // namespace maxmargin
