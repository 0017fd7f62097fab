// Σ_i coef_i K(w_i, x) of single dense samples x, against rows W that are packed once for all of them.
//
// Lanes hold rows of W here, where tiles (tile_dense.hpp) hold samples: of one sample alone a tile would leave all lanes
// but one idle, and would pack W anew. A value is accumulated over the features by the same steps in the same order, and
// each of these is the same with its two sides exchanged: so it has the same bits, and so have the sums, in the order of i.
//
//   packed: [group][feature][kGroup rows of W], the last group filled up with zeros
#pragma once
#include "kernel/tile.hpp"

namespace maxmargin {

template <class T>
class RowSums {
 public:
  static constexpr int kVectors = 2 * kRows, kGroup = kVectors * kLanes<T>;  // as many accumulators as in a tile

  // Rows end[b] … end[b + 1] of W are block b (a class); coef: [output][row of W]. Refers to w and coef, which must stay.
  RowSums(const Points<T>& w, const double* coef, index_t outputs, std::vector<index_t> end)
      : w_(w), end_(std::move(end)), outputs_(outputs), coef_(coef) {
    const index_t n = w.size(), d = w.features(), groups = (n + kGroup - 1) / kGroup;
    norm_.assign(groups * kGroup, T(0));
    T* to = packed_.ensure(std::max<index_t>(1, groups * d * kGroup));
    std::fill(to, to + groups * d * kGroup, T(0));
    std::vector<T> line(d);
    for (index_t i = 0; i < n; ++i) {
      norm_[i] = w.norm(i);
      w.pack_row(i, line.data());
      for (index_t k = 0; k < d; ++k) to[(i / kGroup * d + k) * kGroup + i % kGroup] = line[k];
    }
  }

  index_t features() const { return w_.features(); }
  index_t blocks() const { return index_t(end_.size()) - 1; }
  // What `decide` gives of each sample: the sums of one block, or a value for each pair of them.
  index_t values() const { return blocks() == 1 ? outputs_ : blocks() * (blocks() - 1) / 2; }
  index_t work() const { return w_.size() * (w_.features() + 16); }  // of one sample, in multiplications

  // out[sample][value] = sum + intercept[value]; of several blocks, the pair (i, j) has the sum of S_i[j − 1] and S_j[i],
  // where S_b[c] is the sum of output c over block b. Returns whether all are finite.
  bool decide(const Matrix& x, const double* intercept, double* out) const {
    const Points<T> samples(x, w_, 1);
    std::vector<T> line(features()), value(norm_.size());
    std::vector<const T*> each(w_.size());
    for (index_t i = 0; i < w_.size(); ++i) each[i] = &value[i];
    std::vector<double> sum(blocks() * outputs_);
    bool finite = true;
    for (index_t s = 0; s < samples.size(); ++s) {
      samples.pack_row(s, line.data());
      with_kind<T>(w_.spec().kind, [&](auto kind) { find<decltype(kind)::value>(samples, s, line.data(), value.data()); });
      add_up(each.data(), sum.data());
      double* to = out + s * values();
      if (blocks() == 1)
        std::copy(sum.begin(), sum.end(), to);
      else
        for (index_t i = 0; i < blocks(); ++i)
          for (index_t j = i + 1; j < blocks(); ++j) *to++ = sum[i * outputs_ + j - 1] + sum[j * outputs_ + i];
      to = out + s * values();
      for (index_t v = 0; v < values(); ++v) finite &= std::isfinite(to[v] += intercept[v]);
    }
    return finite;
  }

 private:
  // value[i] = K(w_i, sample s of samples), whose packed features are x.
  template <Kind kind>
  void find(const Points<T>& samples, index_t s, const T* x, T* value) const {
    constexpr int L = kLanes<T>;
    const index_t n = w_.size(), d = w_.features();
    const Vec<T> own = splat(samples.norm(s));
    const Vec<T> limit = splat(kind == Kind::rbf ? std::exp(exact_above(samples.reach(s), w_)) : T(0));
    for (index_t first = 0; first < n; first += kGroup) {
      const T* group = packed_.data() + first * d;
      Vec<T> k[kVectors] = {};
      for (index_t f = 0; f < d; ++f) {
        const Vec<T> z = splat(x[f]);
#pragma GCC unroll 24
        for (int i = 0; i < kVectors; ++i) k[i] = combine<T, kind>(k[i], load(group + f * kGroup + i * L), z);
      }
#pragma GCC unroll 6
      for (int i = 0; i < kVectors; i += 4) {
        Vec<T> norms[4];
        for (int u = 0; u < 4; ++u) norms[u] = load(&norm_[first + (i + u) * L]) + own;
        finish_four<T, kind>(w_.spec(), k + i, norms);
      }
      for (int i = 0; i < kVectors; ++i) {
        if constexpr (kind == Kind::rbf) {
          const auto near = ~(k[i] <= limit);
          if (any(near)) k[i] = near ? near_values(group + i * L, kGroup, x, d) : k[i];
        }
        store(value + first + i * L, k[i]);
      }
    }
    if constexpr (kind == Kind::rbf || kind == Kind::laplacian) {
      const Packed packed = packed_well(samples, s, w_);
      if (packed != Packed::fine)
        for (index_t i = 0; i < n; ++i) exact_if_coarse<T, kind>(samples, s, w_, i, packed, value[i]);
    }
  }

  // sum[block][output]; a coefficient of 0 adds 0, which changes no sum, where the value is finite.
  void add_up(const T* const* value, double* sum) const {
    std::fill(sum, sum + blocks() * outputs_, 0.0);
    for (index_t b = 0; b < blocks(); ++b)
      for (index_t c = 0; c < outputs_; ++c)
        add_weighted(value + end_[b], coef_ + c * w_.size() + end_[b], end_[b + 1] - end_[b], 1, sum++);
  }

  const Points<T>& w_;
  std::vector<index_t> end_;
  index_t outputs_;
  const double* coef_;
  std::vector<T> norm_;
  Buffer<T> packed_;
};

}  // namespace maxmargin
