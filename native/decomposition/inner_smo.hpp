// SMO on a gathered tile (PSMO paper section 3.3, with second-order selection of the second variable).
//
//   minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_{v in group} β_v fixed          score = c − Kβ
//   a step on (i, j): β_i += t, β_j −= t, score −= t (K_i − K_j);  i: largest score of those that can rise;
//   j: of those that can fall, the largest (score_i − score_j)² / (K_ii + K_jj − 2 K_ij)
//   stop: max_up score − min_low score ≤ tol, the larger of the groups'
// Without groups a step moves the variable of the largest score² / K_ii among those free to follow it, and together
// with it the one that then gains most (after Steinwart, Hush & Scovel, JMLR 2011).
//
// Cost: two passes of q elements per step, each one fused loop over vectors. Curvatures are kept above a small part of the
// diagonal (kTau), so duplicate rows (curvature 0) take a long step to a bound instead of dividing by zero; without a
// diagonal (a kernel of zeros) the step is to the bound. Ends early when a step no longer moves a variable.
//
// Where bounds are wide (a large C) it is the free variables that take the steps, each a little of a long way. Once steps have
// cost as much as that would, all of them move at once (free_step.hpp).
#pragma once
#include <algorithm>
#include <vector>

#include "base/matrix.hpp"
#include "base/simd.hpp"
#include "decomposition/free_step.hpp"

namespace maxmargin {

struct SmoReport {
  index_t steps;
  double violation;
};

// What a source of rows may want to know when it is asked for one: who else is about to be asked for.
template <class T>
struct Wishes {
  const T* score;
  const std::vector<std::vector<T>>&up, &low;  // by group: score + up is −∞ for who cannot rise, score + low is ∞ for who cannot fall

  // How far each variable's score lets it move, on whichever side; −∞ if it cannot. In whole vectors.
  void want(index_t count, T* much) const {
    for (index_t v = 0; v < count; v += kLanes<T>) {
      Vec<T> most = splat(-std::numeric_limits<T>::infinity());
      for (std::size_t g = 0; g < up.size(); ++g)
        most = larger(larger(load(score + v) + load(&up[g][v]), -(load(score + v) + load(&low[g][v]))), most);
      store(much + v, most);
    }
  }
};

// Rows of a gathered tile: tile[i · ld + j].
template <class T>
struct TileRows {
  const T* tile;
  index_t ld;
  const T* row(index_t i, const Wishes<T>&) const { return tile + i * ld; }
  T diagonal(index_t i) const { return tile[i * ld + i]; }
};

template <class T, class Rows = TileRows<T>>
class InnerSmo {
 public:
  // Rows are at least q long, rounded up to whole vectors; what lies past column q is finite. score, beta: in and out. `all`
  // knows what has been spent on the same problem before.
  InnerSmo(Rows& rows, index_t q, double* beta, const double* lo, const double* hi, double* score, const std::int8_t* group,
           int groups, FreeStep& all)
      : rows_(rows), q_(q), width_((q + L - 1) / L * L), beta_(beta), lo_(lo), hi_(hi), score_out_(score), groups_(groups),
        all_(all) {
    score_.assign(width_, T(0));
    diagonal_.assign(width_, T(1));
    floor_.assign(width_, kTau);
    for (index_t v = 0; v < q; ++v) {
      score_[v] = T(score[v]);
      diagonal_[v] = rows.diagonal(v);
      floor_[v] = std::max(kTau * std::abs(diagonal_[v]), std::numeric_limits<T>::min());
    }
    const int sets = std::max(groups, 1);
    up_.assign(sets, std::vector<T>(width_, -inf));
    low_.assign(sets, std::vector<T>(width_, inf));
    group_.assign(group, group + q);
    for (index_t v = 0; v < q; ++v) flag(v);
  }

  SmoReport run(double tol, index_t max_steps) {
    const SmoReport report = groups_ == 0   ? run_free(tol, max_steps)
                             : groups_ == 1 ? run_pairs<1>(tol, max_steps)
                                            : run_pairs<2>(tol, max_steps);
    for (index_t v = 0; v < q_; ++v) score_out_[v] = double(score_[v]);
    return report;
  }

 private:
  static constexpr T inf = std::numeric_limits<T>::infinity();
  static constexpr T kTau = T(1e-12);
  static constexpr int L = kLanes<T>;

  struct Best {
    T value;
    index_t at;
  };

  const T* row(index_t v) { return rows_.row(v, {score_.data(), up_, low_}); }

  // Which way β_v may move, as numbers to add to a score: 0, or an infinity that rules it out.
  void flag(index_t v) {
    const int set = groups_ == 0 ? 0 : group_[v];
    up_[set][v] = beta_[v] < hi_[v] ? T(0) : -inf;
    low_[set][v] = beta_[v] > lo_[v] ? T(0) : inf;
  }

  // The largest value of each lane, and its variable.
  struct Lanes {
    Vec<T> value;
    IVec<T> at;
    template <class Mask>
    void keep(Mask better, Vec<T> other, IVec<T> lane) {
      value = better ? other : value;
      at = better ? lane : at;
    }
  };
  static Lanes none(T value, index_t at) { return {splat(value), splat_index(at)}; }
  static Best reduce(Lanes a, const Lanes& b) {
    a.keep((b.value > a.value) | ((b.value == a.value) & (b.at < a.at)), b.value, b.at);
    Best best{a.value[0], index_t(a.at[0])};
    for (int l = 1; l < L; ++l)
      if (a.value[l] > best.value || (a.value[l] == best.value && a.at[l] < best.at)) best = {a.value[l], index_t(a.at[l])};
    return best;
  }
  // look(v, half, numbers of the variables) for all vectors of variables, half 0 and 1 in turn: a comparison with the best so
  // far waits for the last one with it, so each half has its own. Inlined, `look` too, or they would not stay in registers.
  template <class Look>
  __attribute__((always_inline)) void for_vectors(Look&& look) const {
    IVec<T> lane{};
    for (int l = 0; l < L; ++l) lane[l] = l;
    index_t v = 0;
    for (; v + 2 * L <= width_; v += 2 * L, lane += 2 * L) {
      look(v, 0, lane);
      look(v + L, 1, lane + L);
    }
    if (v < width_) look(v, 0, lane);
  }
  static T smallest(Vec<T> v) {
    T m = v[0];
    for (int l = 1; l < L; ++l) m = std::min(m, v[l]);
    return m;
  }

  // Per group: the largest score that can rise, the smallest that can fall.
  template <int sets>
  struct Extremes {
    Best top[sets];
    T bottom[sets];
  };

  template <int sets>
  SmoReport run_pairs(double tol, index_t max_steps) {
    Extremes<sets> e = moved<sets>(T(0), floor_.data(), floor_.data());
    for (index_t step = 0;; ++step) {
      // The group with the larger difference goes first.
      int set = 0;
      double violation = -1;
      for (int g = 0; g < sets; ++g)
        if (double(e.top[g].value) - double(e.bottom[g]) > violation) {
          violation = double(e.top[g].value) - double(e.bottom[g]);
          set = g;
        }
      if (!(violation > tol) || step >= max_steps) return {step, std::max(violation, 0.0)};
      if (due() && move_free()) {
        e = moved<sets>(T(0), floor_.data(), floor_.data());
        continue;
      }
      const index_t i = e.top[set].at;
      const T* ki = row(i);
      const index_t j = partner(i, ki, set);
      if (j < 0) return {step, violation};  // scores that are not numbers
      const T* kj = row(j);
      const double curvature = std::max(0.5 * (double(floor_[i]) + double(floor_[j])),
                                        double(diagonal_[i]) + double(diagonal_[j]) - 2 * double(ki[j]));
      const double room_i = hi_[i] - beta_[i], room_j = beta_[j] - lo_[j];
      const double t = std::min({(double(score_[i]) - double(score_[j])) / curvature, room_i, room_j});
      const double rises = t == room_i ? hi_[i] : std::min(beta_[i] + t, hi_[i]);
      const double falls = t == room_j ? lo_[j] : std::max(beta_[j] - t, lo_[j]);
      if (rises == beta_[i] && falls == beta_[j]) return {step, violation};
      beta_[i] = rises;
      beta_[j] = falls;
      flag(i);
      flag(j);
      e = moved<sets>(T(t), ki, kj);
    }
  }

  // Moves the scores by t (K_j − K_i), and in the same pass finds the next extremes.
  template <int sets>
  Extremes<sets> moved(T t, const T* ki, const T* kj) {
    T* score = score_.data();
    const T *up[sets], *low[sets];
    Lanes best[2][sets];
    Vec<T> least[2][sets];
    for (int g = 0; g < sets; ++g) {
      up[g] = up_[g].data();
      low[g] = low_[g].data();
      best[0][g] = best[1][g] = none(-inf, 0);
      least[0][g] = least[1][g] = splat(inf);
    }
    const Vec<T> tt = splat(t);
    for_vectors([&](index_t v, int half, IVec<T> lane) __attribute__((always_inline)) {
      const Vec<T> s = load(score + v) - tt * (load(ki + v) - load(kj + v));
      store(score + v, s);
#pragma GCC unroll 2
      for (int g = 0; g < sets; ++g) {
        const Vec<T> rise = s + load(up[g] + v), fall = s + load(low[g] + v);
        best[half][g].keep(rise > best[half][g].value, rise, lane);
        least[half][g] = fall < least[half][g] ? fall : least[half][g];
      }
    });
    Extremes<sets> e;
    for (int g = 0; g < sets; ++g) {
      e.top[g] = reduce(best[0][g], best[1][g]);
      e.bottom[g] = std::min(smallest(least[0][g]), smallest(least[1][g]));
    }
    return e;
  }

  // −1 if there is none.
  index_t partner(index_t i, const T* ki, int set) const {
    const T *low = low_[set].data(), *score = score_.data(), *diagonal = diagonal_.data(), *floor = floor_.data();
    const Vec<T> top = splat(score_[i]), kii = splat(diagonal_[i]), own = splat(T(0.5) * floor_[i]);
    Lanes best[2] = {none(-inf, -1), none(-inf, -1)};
    for_vectors([&](index_t v, int half, IVec<T> lane) __attribute__((always_inline)) {
      const Vec<T> difference = top - (load(score + v) + load(low + v));
      const Vec<T> raw = (kii - load(ki + v)) + (load(diagonal + v) - load(ki + v));
      const Vec<T> least = own + T(0.5) * load(floor + v);
      const Vec<T> curvature = raw > least ? raw : least;
      const Vec<T> gain = difference * difference / curvature;
      best[half].keep((difference > Vec<T>{}) & (gain > best[half].value), gain, lane);
    });
    return reduce(best[0], best[1]).at;
  }

  SmoReport run_free(double tol, index_t max_steps) {
    T* score = score_.data();
    const T *up = up_[0].data(), *low = low_[0].data();
    std::vector<T> inverse(width_);
    for (index_t v = 0; v < width_; ++v) inverse[v] = T(1) / std::max(diagonal_[v], floor_[v]);
    const T *weight = inverse.data(), *ki = score, *kj = ki;  // times 0 in the first pass
    Move last{};
    for (index_t step = 0;; ++step) {
      // Move the scores by the last step; in the same pass find the largest gain and the largest violation.
      Lanes best[2] = {none(0, 0), none(0, 0)};
      Vec<T> worst[2]{};
      const Vec<T> ti = splat(T(last.i)), tj = splat(T(last.j));
      for_vectors([&](index_t v, int half, IVec<T> lane) __attribute__((always_inline)) {
        const Vec<T> s = load(score + v) - ti * load(ki + v) - tj * load(kj + v);
        store(score + v, s);
        const Vec<T> move = gain_of(s, load(up + v), load(low + v));
        const Vec<T> gain = move * move * load(weight + v);
        best[half].keep(gain > best[half].value, gain, lane);
        worst[half] = larger(move, worst[half]);
      });
      const double violation = -double(smallest(-larger(worst[0], worst[1])));
      if (!(violation > tol) || step >= max_steps) return {step, violation};
      if (due() && move_free()) {
        last = {};
        ki = kj = score_.data();
        continue;
      }
      const index_t i = reduce(best[0], best[1]).at;
      ki = row(i);
      const index_t j = companion(i, ki);
      kj = row(j);
      last = j == i ? Move{one_step(i, double(score_[i])), 0} : two_steps(i, j, double(ki[j]));
      const bool moved = apply(i, last.i);
      if (!((j != i && apply(j, last.j)) || moved)) return {step, violation};
    }
  }

  struct Move {
    double i, j;
  };

  // How far a score is from what its bounds allow; 0 where it cannot be followed.
  static Vec<T> gain_of(Vec<T> s, Vec<T> up, Vec<T> low) {
    return larger(larger(s + up, -(s + low)), Vec<T>{});
  }
  double one_step(index_t v, double score) const {
    return std::clamp(score / curvature(v), lo_[v] - beta_[v], hi_[v] - beta_[v]);
  }
  double curvature(index_t v) const { return std::max(double(diagonal_[v]), double(floor_[v])); }
  // Whether that changed anything.
  bool apply(index_t v, double t) {
    const double before = beta_[v];
    beta_[v] = t <= lo_[v] - before   ? lo_[v]
               : t >= hi_[v] - before ? hi_[v]
                                      : std::clamp(before + t, lo_[v], hi_[v]);
    flag(v);
    return beta_[v] != before;
  }

  // The variable that gains most beside i: with r its score after i's own step, r² / (K_jj − K_ij² / K_ii), or r² / K_jj
  // if i stops at a bound. i itself if nobody gains.
  index_t companion(index_t i, const T* k) {
    const double own = one_step(i, double(score_[i])), a = curvature(i);
    const bool free = own > lo_[i] - beta_[i] && own < hi_[i] - beta_[i];
    const Vec<T> t = splat(T(own)), shared = splat(T(free ? 1 / a : 0));
    up_[0][i] = -inf;
    low_[0][i] = inf;
    const T *up = up_[0].data(), *low = low_[0].data(), *score = score_.data();
    const T *diagonal = diagonal_.data(), *floor = floor_.data();
    Lanes best[2] = {none(0, i), none(0, i)};
    for_vectors([&](index_t v, int half, IVec<T> lane) __attribute__((always_inline)) {
      const Vec<T> kv = load(k + v);
      const Vec<T> move = gain_of(load(score + v) - t * kv, load(up + v), load(low + v));
      const Vec<T> gain = move * move / larger(load(diagonal + v) - kv * kv * shared, load(floor + v));
      best[half].keep(gain > best[half].value, gain, lane);
    });
    flag(i);
    return reduce(best[0], best[1]).at;
  }
  static IVec<T> splat_index(index_t i) { return typename Simd<T>::Int(i) - IVec<T>{}; }

  // The best of all moves of two variables within their bounds: the free one, or with one of them at the bound that the
  // free one breaks and the other following.
  Move two_steps(index_t i, index_t j, double b) const {
    const double a = curvature(i), c = curvature(j);
    const double si = double(score_[i]), sj = double(score_[j]), det = a * c - b * b;
    const Move least{lo_[i] - beta_[i], lo_[j] - beta_[j]}, most{hi_[i] - beta_[i], hi_[j] - beta_[j]};
    const auto follow_i = [&](double tj) { return Move{std::clamp((si - b * tj) / a, least.i, most.i), tj}; };
    const auto follow_j = [&](double ti) { return Move{ti, std::clamp((sj - b * ti) / c, least.j, most.j)}; };
    if (det <= 1e-12 * a * c) return follow_j(one_step(i, si));
    const Move wish{(c * si - b * sj) / det, (a * sj - b * si) / det};
    const Move held{std::clamp(wish.i, least.i, most.i), std::clamp(wish.j, least.j, most.j)};
    if (held.i == wish.i && held.j == wish.j) return wish;
    if (held.j == wish.j) return follow_j(held.i);
    if (held.i == wish.i) return follow_i(held.j);
    const auto gain = [&](Move t) { return t.i * si + t.j * sj - 0.5 * (a * t.i * t.i + c * t.j * t.j) - b * t.i * t.j; };
    const Move first = follow_j(held.i), second = follow_i(held.j);
    return gain(first) >= gain(second) ? first : second;
  }

  // ---- all free variables at once ------------------------------------------------------------------------------------

  static constexpr double kRidge = sizeof(T) == 4 ? 1e-6 : 1e-12;  // of the diagonal: what rounding of the rows may take

  static constexpr double kRounding = 4 * std::numeric_limits<double>::epsilon();

  // Whether the free variables, listed, should move now.
  bool due() {
    if (!all_.spend()) return false;
    free_.clear();
    for (index_t v = 0; v < q_; ++v)
      if (lo_[v] < beta_[v] && beta_[v] < hi_[v]) free_.push_back(v);
    return all_.due(index_t(free_.size()), q_, sizeof(T));
  }

  // Whether that gained anything.
  bool move_free() {
    const index_t count = index_t(free_.size());
    all_.begin(count);
    std::vector<double> s(count), down(count), up(count), d, change(width_, 0.0);
    std::vector<std::int8_t> group(count);
    double largest = 0;
    for (index_t a = 0; a < count; ++a) {
      const index_t v = free_[a];
      const T* from = row(v);
      for (index_t b = 0; b <= a; ++b) all_.row(a)[b] = double(from[free_[b]]);
      largest = std::max(largest, std::abs(double(diagonal_[v])));
      s[a] = double(score_[v]);
      down[a] = lo_[v] - beta_[v];
      up[a] = hi_[v] - beta_[v];
      group[a] = group_[v];
    }
    if (!all_.factor(kRidge * largest)) {
      all_.give_up();
      return false;
    }
    all_.solve(s.data(), group.data(), groups_, down, up, d);
    for (index_t a = 0; a < count; ++a) {
      if (d[a] == 0) continue;
      const T* k = row(free_[a]);
      for (index_t v = 0; v < width_; ++v) change[v] += d[a] * double(k[v]);
    }
    double slope = 0, bend = 0;
    for (index_t a = 0; a < count; ++a) slope += s[a] * d[a], bend += change[free_[a]] * d[a];
    const double part = slope >= bend ? 1.0 : slope / bend;  // of the way: the best for K as it is, without a ridge
    if (!(slope > 0 && part > 0 && slope < std::numeric_limits<double>::infinity())) return false;
    std::vector<double> off(count);  // the way, by what bounds have made of it
    for (index_t a = 0; a < count; ++a) {
      const index_t v = free_[a];
      const double before = beta_[v], moved = std::clamp(before + part * d[a], lo_[v], hi_[v]);
      beta_[v] = part < 1 ? moved : up[a] == 0 ? hi_[v] : down[a] == 0 ? lo_[v] : moved;
      off[a] = (beta_[v] - before) - part * d[a];
    }
    for (int g = 0; g < groups_; ++g) give_back(g, off);
    for (index_t a = 0; a < count; ++a) {
      const index_t v = free_[a];
      flag(v);
      if (std::abs(off[a]) <= kRounding * std::abs(beta_[v])) continue;
      const T* k = row(v);
      for (index_t u = 0; u < width_; ++u) change[u] += off[a] / part * double(k[u]);
    }
    for (index_t v = 0; v < width_; ++v) score_[v] -= T(part * change[v]);
    return true;
  }

  // What bounds took from the sum of a group, by free variables that have reached none.
  void give_back(int g, std::vector<double>& off) {
    const index_t count = index_t(free_.size());
    for (int turn = 0; turn < 3; ++turn) {
      double sum = 0, size = 0, inside = 0;
      for (index_t a = 0; a < count; ++a) {
        const index_t v = free_[a];
        if (group_[v] != g) continue;
        sum += off[a];
        size += std::abs(beta_[v]);
        inside += lo_[v] < beta_[v] && beta_[v] < hi_[v];
      }
      if (inside == 0 || std::abs(sum) <= kRounding * size) return;
      for (index_t a = 0; a < count; ++a) {
        const index_t v = free_[a];
        if (group_[v] != g || !(lo_[v] < beta_[v] && beta_[v] < hi_[v])) continue;
        const double before = beta_[v];
        beta_[v] = std::clamp(before - sum / inside, lo_[v], hi_[v]);
        off[a] += beta_[v] - before;
      }
    }
  }

  Rows& rows_;
  index_t q_, width_;  // variables, and the length of a row in whole vectors
  double* beta_;
  const double *lo_, *hi_;
  double* score_out_;
  int groups_;
  std::vector<T> score_, diagonal_, floor_;
  std::vector<std::vector<T>> up_, low_;
  std::vector<std::int8_t> group_;
  std::vector<index_t> free_;
  FreeStep& all_;
};

}  // namespace maxmargin
