// The largest of many values, by vectors: most are seen to be none of them by one comparison.
//
//   worked example, the 1 largest of 3 9 1 7 8 2, four candidates at a time: 3 9 1 7 are cut to 9; nothing else is above 9
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "base/matrix.hpp"
#include "base/simd.hpp"

namespace maxmargin {

template <class T>
class Largest {
 public:
  // The places of the `most` largest of `width` values, whole vectors of them, in no order; of equal ones the first. values(u):
  // the vector from place u on; −∞ and NaN are no values.
  template <class Values>
  void find(index_t width, index_t most, Values&& values, std::vector<index_t>& places) {
    found_.clear();
    least_ = -std::numeric_limits<T>::infinity();
    for (index_t u = 0; u < width; u += kLanes<T>) {
      const Vec<T> value = values(u);
      if (!any(value > splat(least_))) continue;
      for (int l = 0; l < kLanes<T>; ++l)
        if (value[l] > least_) found_.push_back({-value[l], u + l});
      if (index_t(found_.size()) >= 4 * most) cut(most);
    }
    cut(most);
    for (const auto& [value, place] : found_) places.push_back(place);
  }

 private:
  void cut(index_t most) {
    if (index_t(found_.size()) <= most) return;
    if (most > 0) {
      std::nth_element(found_.begin(), found_.begin() + (most - 1), found_.end());
      least_ = -found_[most - 1].first;
    }
    found_.resize(most);
  }

  T least_;
  std::vector<std::pair<T, index_t>> found_;  // negated, so that the largest come first
};

}  // namespace maxmargin
