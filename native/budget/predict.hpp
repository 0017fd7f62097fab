// Decision values and kernel rows of many samples against a frozen set of centres, in parallel over samples.
#pragma once
#include "budget/sgd.hpp"
#include "base/threads.hpp"

namespace maxmargin::budget {

// Calls body(first place, places in block, t, kernel scratch) for blocks of 8 of the n samples rows[0..n) of x; row i of t
// starts at t + i * slots.
template <class Real, class View, class Body>
void for_each_block(const View& x, const std::int64_t* rows, index_t n, const Panels<Real>& panels, Real gamma,
                    int threads, Body body) {
  constexpr int block = Sgd<Real>::kSamples;
  const index_t slots = panels.count() * kPanelLanes, blocks = (n + block - 1) / block;
  for_slices(blocks, slice_size(blocks, block * slots * (per_row(x) + 16)), threads, [&](index_t begin, index_t end) {
    SampleReader<Real, View> reader(x, block, gamma);
    typename SampleReader<Real, View>::Sample samples[block];
    Aligned<Real> t(std::size_t(block) * slots), kernel(slots);
    for (index_t b = begin; b < end; ++b) {
      const index_t first = b * block;
      const int size = int(std::min<index_t>(block, n - first));
      for (int i = 0; i < size; ++i) samples[i] = reader.read(rows[first + i], i);
      panels.measure_block(samples, size, panels.count(), gamma, t.data(), slots);
      body(first, size, t.data(), kernel.data());
    }
  });
}

template <class Real>
Panels<Real> pack(const Real* centres, index_t count, index_t features) {
  Panels<Real> panels(count, features);
  for (index_t j = 0; j < count; ++j) panels.set(j, centres + j * features);
  return panels;
}

// out[i, c] = sum_j coef[c, j] k(x_rows[i], centre_j)
template <class Real, class View>
void decide(const View& x, const std::int64_t* rows, index_t n, const Real* centres, index_t count, const double* coef,
            index_t outputs, double gamma, double* out, int threads) {
  const Panels<Real> panels = pack(centres, count, x.cols);
  const index_t slots = panels.count() * kPanelLanes;
  Aligned<Real> padded(outputs * slots);
  for (index_t c = 0; c < outputs; ++c)
    for (index_t j = 0; j < count; ++j) padded[c * slots + j] = Real(coef[c * count + j]);
  for_each_block(x, rows, n, panels, Real(gamma), threads, [&](index_t first, int size, const Real* t, Real* kernel) {
    for (int i = 0; i < size; ++i)
      expansions(t + i * slots, slots, padded.data(), slots, outputs, kernel, out + (first + i) * outputs);
  });
}

// out[i, j] = k(x_rows[i], centre_j), rows of out `stride` apart
template <class Real, class View>
void kernel_rows(const View& x, const std::int64_t* rows, index_t n, const Real* centres, index_t count, double gamma,
                 Real* out, index_t stride, int threads) {
  const Panels<Real> panels = pack(centres, count, x.cols);
  const index_t slots = panels.count() * kPanelLanes;
  for_each_block(x, rows, n, panels, Real(gamma), threads, [&](index_t first, int size, const Real* t, Real*) {
    for (int i = 0; i < size; ++i)
#pragma omp simd
      for (index_t j = 0; j < count; ++j) out[(first + i) * stride + j] = exp(-t[i * slots + j]);
  });
}

}  // namespace maxmargin::budget
