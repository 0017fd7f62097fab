// Loops over margins (no samples): duals of a point, exact line searches, the loss along a line.
//
// Risk R(w) = Σ_i weight_i * loss(m_i), u = 1 - m, r = sqrt(u² + 4h²):
//   hinge          max(0, u)       duals  alpha = weight * [u >= 0]
//   rounded (h>0)  (u + r) / 2     duals  alpha = weight * (1 + u/r) / 2    the central path of an interior-point method
//   squared        max(0, u)²      duals  alpha = 2 * weight * max(0, u)
// Any alpha makes an under-estimator R(w) >= Σ alpha_i * u_i(w) - conj(alpha), conj = 0 for the hinge when
// 0 <= alpha <= weight, Σ alpha²/(4 weight) for the squared hinge: every dual point is a cutting plane.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/cutting_plane.hpp"

namespace maxmargin::linear {

enum class Loss { hinge, squared };

struct Duals {
  std::vector<index_t> rows, band;   // rows whose alpha changed; rows that bend the loss (the Newton matrix's)
  std::vector<double> delta, slope;  // sign * (new - old alpha) of `rows`; d alpha / d u of `band`
  double total = 0;                  // Σ alpha - conj(alpha): the offset b of the cut
  double loss = 0;                   // R at the point (of the loss itself, not the rounded one)
  double mass = 0;                   // Σ alpha
};

// Rows per slice of a loop over margins: a row costs some ten multiplications. At most 64 slices, for loops whose slices
// have lists or histograms of their own.
inline index_t margin_slice(index_t n) { return std::max(slice_size(n, 8), (n + 63) / 64); }

inline double loss_of(Loss kind, double u) {
  const double v = u > 0 ? u : 0;
  return kind == Loss::hinge ? v : v * v;
}

// d alpha / d u of the rounded hinge for Newton's method on the pair (w, alpha) instead of on w alone: linearise
// s r = u, s = 2 alpha / weight - 1 (Chan, Golub & Mulet 1999). With s = u/r it is the derivative itself, 2 c h²/r³; a
// row whose predicted dual lies on the other side of the margin resists more, so that steps along the path stay long.
inline double path_slope(double u, double r, double c, double predicted) {
  return c > 0 ? (0.5 * c - (predicted - 0.5 * c) * (u / r)) / r : 0.0;
}

// alpha of the point with margins (1-mix) * m + mix * other; writes alpha, reports what changed. A row whose alpha
// would move by less than lazy * weight keeps it: still a dual point, and its sample need not be read.
// `path` (or null) holds the duals that the last step predicted; see path_slope.
// The band of the rounded hinge ends where the slope has fallen to 1e-6 of its peak (r = 200h): in directions that the
// rows next to the margin do not span, the far ones are all the curvature there is.
// One part per slice, in the order of the rows.
inline std::vector<Duals> duals(Loss kind, double h, double lazy, const double* m, const double* other, double mix,
                                const double* weight, const double* sign, const double* path, double* alpha,
                                index_t n, int threads) {
  return map_slices(n, margin_slice(n), threads, [&](index_t begin, index_t end) {
    Duals out;
    const std::size_t most = std::size_t(end - begin);  // pages that are not needed are never touched
    out.rows.reserve(most), out.delta.reserve(most), out.band.reserve(most), out.slope.reserve(most);
    for (index_t i = begin; i < end; ++i) {
      const double margin = mix == 0 ? m[i] : (1 - mix) * m[i] + mix * other[i];
      const double u = 1 - margin, c = weight[i];
      double now = 0, slope = 0;
      if (kind == Loss::squared) {
        if (u > 0) now = 2 * c * u, slope = 2 * c;
      } else if (h > 0) {
        const double r = std::sqrt(u * u + 4 * h * h);
        now = std::clamp(0.5 * c * (1 + u / r), 0.0, c);
        slope = path ? path_slope(u, r, c, path[i]) : 2 * c * h * h / (r * r * r);
        if (slope * 4 * h < 1e-6 * c) slope = 0;
      } else if (u >= 0) {
        now = c;
      }
      out.loss += c * loss_of(kind, u);
      if (slope > 0) out.band.push_back(i), out.slope.push_back(slope);
      const double move = now - alpha[i];
      if (std::fabs(move) > lazy * c) {
        out.rows.push_back(i);
        out.delta.push_back(sign[i] * move);
        alpha[i] = now;
      }
      out.total += kind == Loss::squared && c > 0 ? alpha[i] - alpha[i] * alpha[i] / (4 * c) : alpha[i];
      out.mass += alpha[i];
    }
    return out;
  });
}

// path = the duals that the linearisation promises after the step q from margins m, inside [0, weight].
inline void predict_duals(double h, const double* m, const double* q, const double* weight, double* path, index_t n,
                          int threads) {
  for_slices(n, margin_slice(n), threads, [&](index_t begin, index_t end) {
    for (index_t i = begin; i < end; ++i) {
      const double u = 1 - m[i], r = std::sqrt(u * u + 4 * h * h), c = weight[i];
      const double next = 0.5 * c * (1 + u / r) - path_slope(u, r, c, path[i]) * q[i];
      path[i] = std::min(std::max(next, 0.0), c);
    }
  });
}

struct Slope {
  double first = 0, second = 0;  // derivative and curvature of the (rounded or squared) risk along the line
  Slope& operator+=(const Slope& other) {
    first += other.first, second += other.second;
    return *this;
  }
};

// d/dk and d²/dk² of the smooth risk at margins m + k * q.
inline Slope smooth_slope(Loss kind, double h, const double* m, const double* q, const double* weight, double k,
                          index_t n, int threads) {
  return sum_slices(n, margin_slice(n), threads, [&](index_t begin, index_t end) {
    double first = 0, second = 0;
    if (kind == Loss::squared) {
#pragma omp simd reduction(+ : first, second)
      for (index_t i = begin; i < end; ++i) {
        const double u = 1 - m[i] - k * q[i], c = u > 0 ? 2 * weight[i] * q[i] : 0.0;
        first -= c * u;
        second += c * q[i];
      }
    } else {
#pragma omp simd reduction(+ : first, second)
      for (index_t i = begin; i < end; ++i) {
        const double u = 1 - m[i] - k * q[i], c = weight[i] * q[i];
        const double inverse = 1 / std::sqrt(u * u + 4 * h * h);
        first -= 0.5 * c * (1 + u * inverse);
        second += 2 * h * h * c * q[i] * inverse * inverse * inverse;
      }
    }
    return Slope{first, second};
  });
}

// m += k * q; returns R at the new margins.
inline double advance(Loss kind, double* m, const double* q, double k, const double* weight, index_t n, int threads) {
  return sum_slices(n, margin_slice(n), threads, [&](index_t begin, index_t end) {
    double loss = 0;
    for (index_t i = begin; i < end; ++i) {
      if (k != 0) m[i] += k * q[i];
      loss += weight[i] * loss_of(kind, 1 - m[i]);
    }
    return loss;
  });
}

struct Hinge {
  double at, jump;  // where along the line, and by how much the derivative rises there
};

// Buckets of the hinges of a chunk of rows. Hinge i lies at k_i = u_i / q_i, which is positive exactly when the line
// crosses it; q = 0 gives NaN or infinity and a jump of 0. Free of branches, so that it runs in vectors.
struct Buckets {
  static constexpr int count = 512, beyond = count, none = count + 1, chunk = 512;
  double low, high, scale;
  Buckets(double a, double b) : low(a), high(b), scale(count / (b - a)) {}
  void of(const double* m, const double* q, index_t size, int* bucket) const {
    for (index_t i = 0; i < size; ++i) {
      const double k = (1 - m[i]) / q[i];
      const double place = (k - low) * scale;
      const double inside = place < double(beyond) ? place : double(beyond);
      bucket[i] = (k > 0) & (k >= low) ? int(inside) : int(none);
    }
  }
  // visit(i, bucket of hinge i) for the rows [begin, end).
  template <class Visit>
  void each(const double* m, const double* q, index_t begin, index_t end, Visit&& visit) const {
    int bucket[chunk];
    for (index_t first = begin; first < end; first += chunk) {
      const index_t size = std::min<index_t>(chunk, end - first);
      of(m + first, q + first, size, bucket);
      for (index_t i = 0; i < size; ++i) visit(first + i, bucket[i]);
    }
  }
};

// The slope at k = 0 (just right of it) of -Σ weight_i * max(0, 1 - m_i - k q_i).
inline double hinge_slope(const double* m, const double* q, const double* weight, index_t n, int threads) {
  return sum_slices(n, margin_slice(n), threads, [&](index_t begin, index_t end) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index_t i = begin; i < end; ++i) {
      const double u = 1 - m[i];
      sum += (u > 0) | ((u == 0) & (q[i] < 0)) ? weight[i] * q[i] : 0.0;
    }
    return sum;
  });
}

// By how much the derivative rises in each bucket (and beyond the last; the rows without a hinge there come at the end).
inline std::vector<double> hinge_rises(const Buckets& buckets, const double* m, const double* q, const double* weight,
                                       index_t n, int threads) {
  std::vector<double> rise(Buckets::count + 2, 0.0);
  add_parts(map_slices(n, margin_slice(n), threads,
                       [&](index_t begin, index_t end) {
                         // Two of each, so that neighbours do not wait for each other.
                         std::vector<double> two(2 * (Buckets::count + 2), 0.0), one(Buckets::count + 2);
                         buckets.each(m, q, begin, end, [&](index_t i, int bucket) {
                           two[2 * bucket + (i & 1)] += weight[i] * std::fabs(q[i]);
                         });
                         for (int b = 0; b < Buckets::count + 2; ++b) one[b] = two[2 * b] + two[2 * b + 1];
                         return one;
                       }),
            rise.data());
  return rise;
}

// The hinges of bucket b, in the order of the rows.
inline std::vector<Hinge> hinges_of(const Buckets& buckets, int b, const double* m, const double* q,
                                    const double* weight, index_t n, int threads) {
  std::vector<Hinge> part;
  for (const auto& some : map_slices(n, margin_slice(n), threads, [&](index_t begin, index_t end) {
         std::vector<Hinge> mine;
         buckets.each(m, q, begin, end, [&](index_t i, int bucket) {
           if (bucket == b) mine.push_back({(1 - m[i]) / q[i], weight[i] * std::fabs(q[i])});
         });
         return mine;
       }))
    part.insert(part.end(), some.begin(), some.end());
  return part;
}

// argmin over k >= 0 of  ½ quad k² + lin k + Σ weight_i * max(0, 1 - m_i - k q_i),  exactly, in expected O(n).
//
// The derivative is quad * k + lin + a step function that rises by weight_i |q_i| at k_i = (1 - m_i) / q_i.
// A histogram over [low, high) finds the bucket in which the derivative changes sign; only the hinges of that bucket
// are then split at their median until the crossing is known to lie at a hinge (a jump) or between two (a ramp).
inline double hinge_search(const double* m, const double* q, const double* weight, double quad, double lin, index_t n,
                           int threads) {
  double slope = lin - hinge_slope(m, q, weight, n, threads);  // just right of `low`, the quadratic term apart
  if (slope >= 0) return 0;
  for (double low = 0, high = 2;; low = high, high *= 8) {
    const Buckets buckets(low, high);
    const std::vector<double> rise = hinge_rises(buckets, m, q, weight, n, threads);
    int b = 0;
    double before = slope;  // step part of the derivative left of bucket b
    for (; b < Buckets::count; ++b) {
      if (quad * (low + (b + 1) / buckets.scale) + before + rise[b] >= 0) break;
      before += rise[b];
    }
    if (b == Buckets::count) {
      if (rise[Buckets::beyond] == 0) return quad > 0 ? std::max(low, -before / quad) : low;
      slope = before;
      continue;
    }
    std::vector<Hinge> part = hinges_of(buckets, b, m, q, weight, n, threads);
    auto first = part.begin(), last = part.end();
    while (first != last) {
      auto mid = first + (last - first) / 2;
      std::nth_element(first, mid, last, [](const Hinge& a, const Hinge& c) { return a.at < c.at; });
      double left = before;
      for (auto p = first; p != mid; ++p) left += p->jump;
      const double here = quad * mid->at + left;
      if (here >= 0) last = mid;                       // the crossing is left of this hinge
      else if (here + mid->jump >= 0) return mid->at;  // inside the jump
      else before = left + mid->jump, first = mid + 1;
    }
    return quad > 0 ? std::max(low, -before / quad) : low + (b + 1) / buckets.scale;
  }
}

}  // namespace maxmargin::linear
