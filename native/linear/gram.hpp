// Weighted Gram matrices of rows, for Newton's method: gram += Σ_k weight_k x̃_k x̃_kᵀ, x̃ = (x, bias).
//
// Rows are packed into panels of at most kDepth rows, in blocks of Tile::block columns:
//   panel[(j / block * kDepth + k) * block + j % block] = √weight_k x̃_kj
// so that a tile reads its columns from few memory pages. Products are of type P; sums of a panel's products leave it
// for the type G of the matrix.
#pragma once
#include "linear/cutting_plane.hpp"

namespace maxmargin::linear {

constexpr index_t kDepth = 128;

template <class P>
struct Tile;  // registers of the kernel: `high` rows by two vectors; both divide `block`
template <>
struct Tile<float> {
  typedef float vec __attribute__((vector_size(32), aligned(4)));
  static constexpr index_t lanes = 8, high = 6, block = 48;
};
template <>
struct Tile<double> {
  typedef double vec __attribute__((vector_size(32), aligned(8)));
  static constexpr index_t lanes = 4, high = 6, block = 24;
};

template <class P>
index_t place(index_t j) {
  return j / Tile<P>::block * (kDepth * Tile<P>::block) + j % Tile<P>::block;
}

// Row i times `scale` into one row of a cleared panel, with the constant feature `bias` in column d when `bias` != 0.
template <class P, class T>
void spread(const Dense<T>& x, index_t i, double scale, double bias, P* out) {
  constexpr index_t block = Tile<P>::block;
  const T* row = x.row(i);
  for (index_t j = 0; j < x.cols; j += block) {
    P* to = out + place<P>(j);
    for (index_t l = 0; l < std::min(block, x.cols - j); ++l) to[l] = P(scale * double(row[j + l]));
  }
  if (bias != 0) out[place<P>(x.cols)] = P(scale * bias);
}
template <class P, class T, class I>
void spread(const Csr<T, I>& x, index_t i, double scale, double bias, P* out) {
  for (I k = x.indptr[i]; k < x.indptr[i + 1]; ++k) out[place<P>(x.indices[k])] += P(scale * double(x.data[k]));
  if (bias != 0) out[place<P>(x.cols)] = P(scale * bias);
}

// gram[a..a+6, b..b+2*lanes) += panelᵀ panel over the first `depth` rows of the panel.
template <class P, class G>
void gram_tile(const P* panel, index_t depth, index_t a, index_t b, G* gram, index_t size) {
  using V = typename Tile<P>::vec;
  constexpr index_t lanes = Tile<P>::lanes, high = Tile<P>::high, block = Tile<P>::block;
  const P *left = panel + place<P>(a), *right = panel + place<P>(b);
  V s[high][2] = {};
  for (index_t k = 0; k < depth; ++k, left += block, right += block) {
    const V right0 = *reinterpret_cast<const V*>(right), right1 = *reinterpret_cast<const V*>(right + lanes);
    for (int r = 0; r < high; ++r) {
      const V value = left[r] - V{};
      s[r][0] += value * right0;
      s[r][1] += value * right1;
    }
  }
  typedef G Sum __attribute__((vector_size(sizeof(G) * lanes), aligned(sizeof(G))));
  const bool whole = b + 2 * lanes <= size;
  for (int r = 0; r < high && a + r < size; ++r)
    for (int c = 0; c < 2; ++c) {
      G* out = gram + (a + r) * size + b + c * lanes;
      if (whole) *reinterpret_cast<Sum*>(out) += __builtin_convertvector(s[r][c], Sum);
      else
        for (index_t l = 0; l < lanes && b + c * lanes + l < size; ++l) out[l] += G(s[r][c][l]);
    }
}

// Very sparse rows: all pairs of stored values, some 1 ns each, instead of size²/2 products at 16 per cycle.
template <class T>
bool pairs_pay(const Dense<T>&, index_t) {
  return false;
}
template <class T, class I>
bool pairs_pay(const Csr<T, I>& x, index_t size) {
  const double per_row = double(stored(x)) / double(std::max<index_t>(1, x.rows)) + 1;
  return 24 * per_row * per_row < double(size) * double(size);
}
// The pairs of row i that belong to rows [begin, end) of gram.
template <class T, class G>
void add_pairs(const Dense<T>&, index_t, double, double, index_t, index_t, G*, index_t) {}
template <class T, class I, class G>
void add_pairs(const Csr<T, I>& x, index_t i, double weight, double bias, index_t begin, index_t end, G* gram,
               index_t size) {
  const I* const last = x.indices + x.indptr[i + 1];  // column indices are sorted: (k, l >= k) is above the diagonal
  for (const I* k = std::lower_bound(x.indices + x.indptr[i], last, I(begin)); k < last && *k < end; ++k) {
    const T* const value = x.data + (k - x.indices);
    const double v = weight * double(*value);
    G* row = gram + index_t(*k) * size;
    for (const I* l = k; l < last; ++l) row[*l] += G(v * double(value[l - k]));
    if (bias != 0) row[x.cols] += G(v * bias);
  }
  if (bias != 0 && end == size) gram[size * size - 1] += G(weight * bias * bias);
}

// gram (size × size, row-major; the upper triangle is valid) += Σ_k weight_k x̃ x̃ᵀ over the given rows.
// A share of the work owns some of the matrix, whole bands of columns, over all rows in their order: the sums are the same
// however it is shared. Each packs every panel for itself: packing is cheap, waiting for each other is not. The tiles walk
// over two blocks of left columns at a time, which stay in the L2 cache for all bands.
template <class P, class G>
void weighted_gram(const Matrix& matrix, const index_t* rows, const double* weight, index_t count, double bias,
                   G* gram, int threads) {
  std::visit(
      [&](const auto& x) {
        constexpr index_t step = 2 * Tile<P>::lanes, block = Tile<P>::block, high = Tile<P>::high;
        const index_t size = x.cols + (bias != 0 ? 1 : 0);
        const index_t most = std::max(threads, 1);
        if (pairs_pay(x, size)) {
          // Features differ in how often they occur: several shares per thread even that out.
          const index_t work = count * per_row(x) * per_row(x), shares = std::clamp<index_t>(work / kSliceWork, 1, 4 * most);
          for_slices(size, (size + shares - 1) / shares, threads, [&](index_t begin, index_t end) {
            for (index_t k = 0; k < count; ++k) add_pairs(x, rows[k], weight[k], bias, begin, end, gram, size);
          });
          return;
        }
        const index_t bands = (size + step - 1) / step, blocks = (size + block - 1) / block;
        const index_t shares = std::clamp<index_t>(count * size * size / (8 * kSliceWork), 1, most);
        for_slices(shares, 1, threads, [&](index_t share, index_t) {
          std::vector<P> panel(kDepth * blocks * block);
          for (index_t first = 0; first < count; first += kDepth) {
            const index_t now = std::min(kDepth, count - first);
            std::fill(panel.begin(), panel.end(), P(0));
            for (index_t k = 0; k < now; ++k)
              spread(x, rows[first + k], std::sqrt(weight[first + k]), bias, panel.data() + k * block);
            for (index_t begin = 0; begin < size; begin += 2 * block)
              for (index_t band = begin / step; band < bands; ++band) {
                // Dealt back and forth (0 1 1 0 0 1 ...): band b costs b + 1, so the shares come out even.
                const index_t turn = band % (2 * shares);
                if ((turn < shares ? turn : 2 * shares - 1 - turn) != share) continue;
                const index_t end = std::min({size, begin + 2 * block, (band + 1) * step});
                for (index_t a = begin; a < end; a += high) gram_tile(panel.data(), now, a, band * step, gram, size);
              }
          }
        });
      },
      matrix);
}

// The chosen features of some rows as rows of their own, the constant one last if it is chosen. `place`: of each feature among
// the chosen ones, or -1.
struct Chosen {
  std::vector<double> value;
  std::vector<std::int32_t> index, start;  // of sparse rows
};
template <class T>
Matrix chosen_rows(const Dense<T>& x, const index_t* rows, index_t count, double bias, const std::int32_t* place, index_t size,
                   Chosen& out) {
  out.value.resize(count * size);
  for (index_t k = 0; k < count; ++k) {
    double* const to = out.value.data() + k * size;
    for (index_t j = 0; j < x.cols; ++j)
      if (place[j] >= 0) to[place[j]] = double(x.row(rows[k])[j]);
    if (bias != 0 && place[x.cols] >= 0) to[place[x.cols]] = bias;
  }
  return Dense<double>{out.value.data(), count, size, size};
}
template <class T, class I>
Matrix chosen_rows(const Csr<T, I>& x, const index_t* rows, index_t count, double bias, const std::int32_t* place, index_t size,
                   Chosen& out) {
  index_t most = 0, at = 0;
  for (index_t k = 0; k < count; ++k) most += index_t(x.indptr[rows[k] + 1] - x.indptr[rows[k]]) + 1;
  out.value.resize(most), out.index.resize(most), out.start.resize(count + 1);
  const auto add = [&](std::int32_t where, double value) {  // written over by the next one unless it counts
    out.index[at] = where, out.value[at] = value;
    at += where >= 0;
  };
  for (index_t k = 0; k < count; ++k) {
    out.start[k] = std::int32_t(at);
    for (I l = x.indptr[rows[k]]; l < x.indptr[rows[k] + 1]; ++l) add(place[x.indices[l]], double(x.data[l]));
    if (bias != 0) add(place[x.cols], bias);
  }
  out.start[count] = std::int32_t(at);
  return Csr<double, std::int32_t>{out.value.data(), out.index.data(), out.start.data(), count, size};
}

constexpr index_t kCopied = index_t(1) << 14;

// The same sums for some features only: gram is size × size, in the order of `place`, which is that of the features. Rows are
// copied some at a time, as many as a cache holds (kCopied values, and at least a panel).
inline void chosen_gram(const Matrix& matrix, const index_t* rows, const double* weight, index_t count, double bias,
                        const std::int32_t* place, index_t size, double* gram, int threads) {
  std::visit(
      [&](const auto& x) {
        const index_t step = std::max<index_t>(kDepth, kCopied / per_row(x) / kDepth * kDepth);
        Chosen chosen;
        std::vector<index_t> all(std::min(step, count));
        for (index_t k = 0; k < index_t(all.size()); ++k) all[k] = k;
        for (index_t first = 0; first < count; first += step) {
          const index_t now = std::min(step, count - first);
          const Matrix some = chosen_rows(x, rows + first, now, bias, place, size, chosen);
          weighted_gram<double>(some, all.data(), weight + first, now, 0.0, gram, threads);
        }
      },
      matrix);
}

}  // namespace maxmargin::linear
