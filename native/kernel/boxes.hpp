// Which rows of W are so far from a whole block of samples that every RBF value between them is zero (kFar, kernel.hpp).
//
// Boxes in the scaled space of the samples, where K = exp(−½ d²): the distance between two boxes is a lower bound on
// every distance between their points, feature by feature max(lo_a − hi_b, lo_b − hi_a, 0). W is tested by groups of
// kBoxRows rows first, then row by row. Samples and rows that are neighbours in the list make small boxes; in an order
// without meaning nothing can be left out, and the test gives up soon (Pruning).
#pragma once
#include <algorithm>
#include <vector>

#include "kernel/kernel.hpp"
#include "base/matrix.hpp"

namespace maxmargin {

constexpr index_t kBoxRows = 8;

// Whole vectors; and one more where lines would stand a multiple of 1 kB apart: a dozen of them, read side by side, would be
// in each other's place in the nearest cache.
template <class T>
constexpr index_t padded(index_t features) {
  const index_t whole = (features + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  return whole > 0 && whole * index_t(sizeof(T)) % 1024 == 0 ? whole + kLanes<T> : whole;
}

// Whether testing pays, judged by the tests so far: one counter per thread and loop.
class Pruning {
 public:
  explicit Pruning(bool possible) : on_(possible) {}
  bool on() const { return on_; }
  void count(index_t tested, index_t skipped) {
    tested_ += tested;
    skipped_ += skipped;
    if (tested_ >= 256 && skipped_ * 8 < tested_) on_ = false;
  }

 private:
  bool on_;
  index_t tested_ = 0, skipped_ = 0;
};

// Squared distance of two boxes, given by padded corners.
template <class T>
inline T box_distance(const T* lo_a, const T* hi_a, const T* lo_b, const T* hi_b, index_t width) {
  Vec<T> sum{};
  for (index_t k = 0; k < width; k += kLanes<T>) {
    const Vec<T> left = load(lo_a + k) - load(hi_b + k), right = load(lo_b + k) - load(hi_a + k);
    const Vec<T> gap = left > right ? left : right;
    sum += gap > Vec<T>{} ? gap * gap : Vec<T>{};
  }
  T total = 0;
  for (int l = 0; l < kLanes<T>; ++l) total += sum[l];
  return total;
}

// Beyond this squared distance K is zero; the margin covers rounding of exponents up to a thousand.
template <class T>
constexpr T kFarApart = T(-2 * kFar<T> + 1);

// The box of one block of samples.
template <class T>
struct Box {
  std::vector<T> lo, hi;

  // Panels [panel][feature][kPanel] of `count` samples.
  void around(const T* panels, index_t count, index_t features) {
    constexpr index_t lanes = 2 * kLanes<T>;
    lo.assign(padded<T>(features), T(0));
    hi.assign(padded<T>(features), T(0));
    const index_t whole = count / lanes;
    for (index_t k = 0; k < features; ++k) {
      T least = panels[k * lanes], most = least;
      if (whole > 0) {
        Vec<T> low = load(panels + k * lanes), high = low;
        for (index_t p = 0; p < whole; ++p)
          for (int half = 0; half < 2; ++half) {
            const Vec<T> x = load(panels + (p * features + k) * lanes + half * kLanes<T>);
            low = x < low ? x : low;
            high = x > high ? x : high;
          }
        for (int l = 0; l < kLanes<T>; ++l) {
          least = std::min(least, low[l]);
          most = std::max(most, high[l]);
        }
      }
      for (index_t j = whole * lanes; j < count; ++j) {
        const T x = panels[(j / lanes * features + k) * lanes + j % lanes];
        least = std::min(least, x);
        most = std::max(most, x);
      }
      lo[k] = least;
      hi[k] = most;
    }
  }
};

// The rows of W in boxes of kBoxRows.
template <class T>
class Boxes {
 public:
  // lines: [row][width], padded with zeros.
  void build(const T* lines, index_t count, index_t width) {
    lines_ = lines;
    width_ = width;
    const index_t boxes = (count + kBoxRows - 1) / kBoxRows;
    lo_.resize(boxes * width);
    hi_.resize(boxes * width);
    for (index_t b = 0; b < boxes; ++b) {
      T *lo = &lo_[b * width], *hi = &hi_[b * width];
      const T* first = lines + b * kBoxRows * width;
      std::copy(first, first + width, lo);
      std::copy(first, first + width, hi);
      for (index_t i = b * kBoxRows + 1; i < std::min((b + 1) * kBoxRows, count); ++i)
        for (index_t k = 0; k < width; ++k) {
          const T x = lines[i * width + k];
          lo[k] = std::min(lo[k], x);
          hi[k] = std::max(hi[k], x);
        }
    }
  }

  // Rows of [first, last) that may touch the block's box; `first` is a multiple of kBoxRows.
  void near(const Box<T>& box, index_t first, index_t last, Pruning& pruning, std::vector<index_t>& chosen) const {
    chosen.clear();
    const T *lo = box.lo.data(), *hi = box.hi.data();
    for (index_t i = first; i < last; i += kBoxRows) {
      const index_t end = std::min(i + kBoxRows, last), b = i / kBoxRows * width_;
      if (box_distance(lo, hi, &lo_[b], &hi_[b], width_) > kFarApart<T>) continue;
      for (index_t r = i; r < end; ++r) {
        const T* line = lines_ + r * width_;
        if (box_distance(lo, hi, line, line, width_) <= kFarApart<T>) chosen.push_back(r);
      }
    }
    pruning.count(last - first, last - first - index_t(chosen.size()));
  }

 private:
  const T* lines_ = nullptr;
  index_t width_ = 0;
  std::vector<T> lo_, hi_;
};

}  // namespace maxmargin
