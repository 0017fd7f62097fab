// The two sides of a kernel tile: a set of rows W (a working set, support vectors) packed once for all threads, and a
// list of samples with the scratch memory of a thread that goes through them block by block.
#pragma once
#include <memory>

#include "kernel/boxes.hpp"
#include "kernel/points.hpp"

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

  // Numbers the features that rows have, ascending: those of few rows by a sorted list of them, not by a look at all.
  void number_slots() {
    slots_ = 1;
    if (index_t(slot_.size()) != points_->features()) slot_.assign(points_->features(), 0), feature_.clear();
    for (index_t k : feature_) slot_[k] = 0;
    feature_.clear();
    for (index_t i = 0; i < count_; ++i)
      points_->entries(row_[i], [&](index_t k, T) {
        if (!slot_[k]) feature_.push_back(k);
        slot_[k] = 1;
      });
    if (16 * feature_.size() < slot_.size()) {
      std::sort(feature_.begin(), feature_.end());
      for (index_t k : feature_) slot_[k] = slots_++;
    } else {
      for (auto& slot : slot_)
        if (slot) slot = slots_++;
    }
  }

  void pack_sparse() {
    number_slots();
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
  std::vector<index_t> feature_;  // that have a slot
};

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
  std::vector<T> norm, limit;  // of the block's samples: their norms, and exact_above
  // Sparse: the block's entries as (slot of W, value) pairs, sample by sample.
  Buffer<std::int32_t> slot;
  Buffer<T> value;
  index_t pieces = 1;        // into which each sample's entries are cut, one per kSlotPiece slots
  std::vector<index_t> cut;  // [sample][pieces + 1]: where they begin and end
  Box<T> box;                   // dense: around the block of samples
  std::vector<index_t> chosen;  // rows of W that may have values other than zero with the block
};

// Entries exp(exponent) that are differences of norms (rbf, and laplacian of sparse samples) are recomputed from differences
// of features where the exponent lies above this, or is none (norms that overflow): there, rounding of the norms (about
// epsilon · (nx + nz) in the exponent, kAstray times that at the worst, which may have lowered it as well) would move K by
// more than kEntryError.
template <class T>
constexpr double kEntryError = sizeof(T) == 4 ? 4e-6 : 1e-13;
constexpr double kAstray = 16;
template <class T>
inline T exact_above(T reach, const Points<T>& w) {  // reach: of a sample, Points::reach
  const double error = (double(reach) + double(w.largest_norm())) * std::numeric_limits<T>::epsilon();
  if (error <= kEntryError<T>) return std::numeric_limits<T>::infinity();
  return T(std::log(kEntryError<T> / std::min(error, 1.0)) - kAstray * error);
}

// Dense: packed features are shifted, scaled and rounded, and so are distances from them. How far that takes K astray: by
// less than kEntryError, by more where K is not 0, or so far that a K of 0 may be none. In float the first is all there is:
// who has norms so large works in double (estimators/_kernel.py).
enum class Packed { fine, coarse, blind };
template <class T>
inline Packed packed_well(const Points<T>& samples, index_t sample, const Points<T>& w) {
  if (sizeof(T) == 4) return Packed::fine;
  const double norm = double(samples.reach(sample)) + double(w.largest_norm());
  const double epsilon = std::numeric_limits<T>::epsilon(), off = samples.spec().kind == Kind::rbf ? std::sqrt(2 * norm) : norm;
  if (0.25 * epsilon * off <= kEntryError<T>) return Packed::fine;  // exp(−d²) · d is never above ½
  return kAstray * epsilon * norm <= 0.25 * -kFar<T> ? Packed::coarse : Packed::blind;
}

template <class T>
inline void recompute_near(const Points<T>& samples, index_t sample, const PackedRows<T>& w, index_t i, T exponent,
                           T limit, T* value) {
  if (exponent <= limit) return;
  *value = T(std::exp(-samples.spec().gamma * samples.distance_between(sample, w.points(), w.row(i))));
}

}  // namespace maxmargin
