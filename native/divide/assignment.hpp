// Assignment step of two-step kernel k-means (DC-SVM paper, section 3): each sample to the nearest of k centres, a centre
// being the mean of a few sampled points in feature space.
//
//   ‖φ(x) − μ_c‖² = K(x, x) + offset_c − 2/|c| Σ_{s in c} K(x, s)      offset_c = mean of K within c
//
// K(x, x) is the same for all c and left out. The sampled points come sorted by cluster, so one running sum per sample
// is enough, whatever k; nothing of the kernel is kept. Cost: one kernel value per (sample, sampled point).
#pragma once
#include <limits>

#include "kernel/tile.hpp"

namespace maxmargin {

// Cluster c owns the rows [end[c − 1], end[c]) of w; an empty one is nobody's nearest. Ties go to the lower number.
template <class T>
void nearest_cluster(const SampleList<T>& list, const PackedRows<T>& w, const index_t* end, const double* offset,
                     std::int32_t* nearest, int threads) {
  const index_t stride = block_size(*list.points) + kPanel<T>;
  std::vector<TileScratch<T>> scratch(std::max(1, threads));
  const auto one = [&](TileScratch<T>& mine, Pruning& all, index_t begin, index_t last_sample) {
    const index_t count = last_sample - begin;
    T* values = mine.block.ensure(kPass * stride);
    T* to[kPass];
    for (index_t i = 0; i < kPass; ++i) to[i] = values + i * stride;
    std::vector<double> sum(count, 0.0), best(count, std::numeric_limits<double>::infinity());
    std::int32_t* chosen = nearest + begin;
    std::fill(chosen, chosen + count, 0);
    index_t c = 0;
    for (index_t first = 0; first < w.count(); first += kPass) {
      const index_t last = std::min(first + kPass, w.count());
      tile(list, begin, begin + count, w, first, last, all, mine, [&](const auto&) { return to; });
      for (index_t i = first; i < last; ++i) {
        while (end[c] <= i) ++c;
        const T* from = to[i - first];
        for (index_t j = 0; j < count; ++j) sum[j] += double(from[j]);
        if (i + 1 < end[c]) continue;
        const double scale = 2.0 / double(end[c] - (c ? end[c - 1] : 0));
        for (index_t j = 0; j < count; ++j) {
          const double distance = offset[c] - scale * sum[j];
          if (distance < best[j]) {
            best[j] = distance;
            chosen[j] = std::int32_t(c);
          }
          sum[j] = 0;
        }
      }
    }
  };
  for_blocks(list, w, Pruning(false), scratch, threads, one);
}

}  // namespace maxmargin
