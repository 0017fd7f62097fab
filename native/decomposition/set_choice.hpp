// Which variables make the next working set of a problem on a whole matrix.
//
// The worst violators, half of the set or what there are of them; the free variables of the last set; other free ones; more
// violators. In regression both halves of a sample may be in. Where far more are free than a set may have, it is all
// variables.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "base/matrix.hpp"

namespace maxmargin {

class SetChoice {
 public:
  // Variables of a turn, besides the free ones: with 512 in all the tile stays in L2; where more are free, their tile in L3 is
  // worth fewer turns. (Gathering the tile of 512 where few will move costs more than the turns that it saves.)
  static constexpr index_t kUsual = 256, kLargest = 1536;
  // More: steps on whole rows cost more each, but nothing is gathered and few turns are needed.
  static constexpr index_t kMostFree = 2560;

  void begin() {
    rank_.clear();
    freed_ = 0;
  }
  // A variable that is not fixed: how far its score is above the middle of its group's if it can rise, below if it can fall,
  // else −∞.
  void offer(index_t v, double rise, double fall, int group) {
    const double want = std::max(rise, fall);
    const bool free = std::min(rise, fall) > -kInf;
    if (want > 0 || free) rank_.push_back({-want, v, free, 2 * group + (rise < fall)});
    freed_ += free;
  }
  // In: the last set. Out: the new one, ascending; whether it is all variables.
  bool choose(index_t variables, std::vector<index_t>& set) {
    if (freed_ > kMostFree) {
      set.resize(variables);
      std::iota(set.begin(), set.end(), index_t(0));
      return true;
    }
    const index_t most = std::min(freed_ + freed_ / 4 + kUsual, kLargest);
    last_.assign(variables, 0);
    for (index_t v : set) last_[v] = 1;
    if (index_t(rank_.size()) > most) {
      const index_t fresh = worst(most / 2);
      const auto keep = [&](const Rank& r) { return r.free ? (last_[r.v] ? 0 : 1) : (last_[r.v] ? 2 : 3); };
      std::nth_element(rank_.begin() + fresh, rank_.begin() + most, rank_.end(), [&](const Rank& a, const Rank& b) {
        const int x = keep(a), y = keep(b);
        return x != y ? x < y : a.want != b.want ? a.want < b.want : a.v < b.v;
      });
      rank_.resize(most);
    }
    set.clear();
    for (const Rank& r : rank_) set.push_back(r.v);
    std::sort(set.begin(), set.end());
    return false;
  }

 private:
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  struct Rank {
    double want;
    index_t v;
    bool free;
    int kind;  // of which group, and whether it wants to fall
  };

  // The worst `count` or so of those that want to rise and those that want to fall, of each group as many: to the front of
  // rank_; how many. (Samples stand class by class: the worst of all might want the same, and none could move.)
  index_t worst(index_t count) {
    const auto before = [](const Rank& a, const Rank& b) { return a.want != b.want ? a.want < b.want : a.v < b.v; };
    index_t kinds = 0, taken = 0;
    for (int k = 0; k < 4; ++k)
      kinds += std::any_of(rank_.begin(), rank_.end(), [&](const Rank& r) { return r.kind == k; });
    for (int k = 0; k < 4; ++k) {
      const auto from = rank_.begin() + taken;
      const auto end = std::partition(from, rank_.end(), [&](const Rank& r) { return r.kind == k; });
      const index_t some = std::min<index_t>(end - from, count / std::max<index_t>(1, kinds));
      std::nth_element(from, from + some, end, before);
      taken += some;
    }
    return taken;
  }

  std::vector<Rank> rank_;
  std::vector<std::int8_t> last_;
  index_t freed_ = 0;
};

}  // namespace maxmargin
