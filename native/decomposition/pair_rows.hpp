// Kernel rows of problems that are pairs of blocks: of the blocks, kept for all problems; of a problem, on demand; of some of
// its variables, gathered. What they are for: many.hpp.
#pragma once
#include <atomic>

#include "base/largest.hpp"
#include "decomposition/inner_smo.hpp"
#include "kernel/triangle.hpp"

namespace maxmargin {

// K(i, block of i) for samples of blocks, computed by whoever wants one first; or all of K beforehand, where the problems will
// want most of it and there is room.
template <class T>
class BlockRows {
 public:
  BlockRows(const Points<T>& points, std::vector<index_t> row, std::vector<index_t> end, std::size_t bytes, bool whole)
      : points_(points), row_(std::move(row)), end_(std::move(end)), kept_(row_.size()), left_(std::int64_t(bytes)) {
    panel_at_.push_back(0);
    for (index_t b = 0; b + 1 < index_t(end_.size()); ++b) {
      block_of_.insert(block_of_.end(), count(b), b);
      panel_at_.push_back(panel_at_.back() + width(b));
    }
    find_diagonal();
    const index_t n = index_t(row_.size());
    for (bool packed : {true, false})
      if (whole && !all_ && Triangle<T>::bytes(n, points.features(), packed) <= bytes)
        all_ = std::make_unique<Triangle<T>>(points, row_, packed);
    if (!all_) pack();
  }
  ~BlockRows() {
    for (auto& p : kept_) ::operator delete[](p.load(), std::align_val_t(64));
  }

  // All of K, when it is complete, or null.
  const Triangle<T>* all() const { return all_.get(); }
  // Some more of it; whether that is all that there will be.
  bool prepare(int threads) {
    if (!all_ || all_->complete()) return true;
    scratch_.resize(std::max(1, threads));
    all_->advance(scratch_, threads);
    return all_->complete();
  }
  // Without all of K, unless it is there: rows as they are wanted.
  void on_demand() {
    if (!all_ || all_->complete()) return;
    all_.reset();
    pack();
  }
  const Points<T>& points() const { return points_; }
  index_t samples() const { return index_t(row_.size()); }
  index_t blocks() const { return index_t(end_.size()) - 1; }
  index_t begin(index_t block) const { return end_[block]; }
  index_t count(index_t block) const { return end_[block + 1] - end_[block]; }
  index_t width(index_t block) const { return (count(block) + kPanel<T> - 1) / kPanel<T> * kPanel<T>; }
  index_t matrix_row(index_t sample) const { return row_[sample]; }
  T diagonal(index_t sample) const { return diagonal_[sample]; }
  SampleList<T> list(index_t block) const {
    const T* packed = packed_.data() ? packed_.data() + panel_at_[block] * points_.features() : nullptr;
    return {&points_, row_.data() + end_[block], count(block), packed};
  }

  // The kept piece of a sample, or null.
  const T* find(index_t sample) const { return kept_[sample].load(std::memory_order_acquire); }
  // Memory for a piece that is to be kept, or null when there is no room.
  T* room(index_t sample) {
    const std::int64_t bytes = std::int64_t(width(block_of_[sample]) * index_t(sizeof(T)));
    if (left_.fetch_sub(bytes) >= bytes) return static_cast<T*>(::operator new[](bytes, std::align_val_t(64)));
    left_.fetch_add(bytes);
    return nullptr;
  }
  // Keeps a computed piece, unless another thread was first: then that one is the piece.
  const T* keep(index_t sample, T* piece) {
    T* none = nullptr;
    if (kept_[sample].compare_exchange_strong(none, piece, std::memory_order_acq_rel)) return piece;
    ::operator delete[](piece, std::align_val_t(64));
    left_.fetch_add(std::int64_t(width(block_of_[sample]) * index_t(sizeof(T))));
    return none;
  }

 private:
  // The samples of each block as panels, where they take little of the room.
  void pack() {
    const index_t d = points_.features(), size = panel_at_.back() * d;
    if (points_.sparse() || size * index_t(sizeof(T)) > left_ / 4) return;
    left_ -= size * index_t(sizeof(T));
    T* out = packed_.ensure(std::max<index_t>(1, size));
    for (index_t b = 0; b + 1 < index_t(end_.size()); ++b)
      for (index_t j = 0; j < count(b); j += kPanel<T>)
        points_.pack(&row_[end_[b] + j], int(std::min<index_t>(kPanel<T>, count(b) - j)), out + (panel_at_[b] + j) * d);
  }

  // K(i, i) in the order of operations of a tile: SMO may run for ever on a diagonal that is rounded otherwise.
  void find_diagonal() {
    diagonal_.assign(row_.size(), T(1));
    if (points_.spec().shift_invariant()) return;
    std::vector<T> line(points_.features());
    for (std::size_t i = 0; i < row_.size(); ++i) {
      T dot = 0;
      if (points_.sparse()) {
        points_.entries(row_[i], [&](index_t, T x) { dot += x * x; });
      } else {
        points_.pack_row(row_[i], line.data());
        for (T x : line) dot += x * x;
      }
      with_kind<T>(points_.spec().kind, [&](auto kind) {
        diagonal_[i] = finish<T, decltype(kind)::value>(points_.spec(), splat(dot), Vec<T>{}, Vec<T>{})[0];
      });
    }
  }

  const Points<T>& points_;
  std::vector<T> diagonal_;
  std::vector<index_t> row_, end_, block_of_, panel_at_;
  std::vector<std::atomic<T*>> kept_;
  std::atomic<std::int64_t> left_;
  Buffer<T> packed_;
  std::unique_ptr<Triangle<T>> all_;
  std::vector<TileScratch<T>> scratch_;
};

// The kernel rows of one problem, in the memory of one thread; the source of rows of its SMO.
template <class T>
class PairRows {
 public:
  explicit PairRows(BlockRows<T>& blocks) : blocks_(blocks), scratch_(1) {}

  // Positions 0 … width: the samples of block a, padding, those of block b, padding. b < 0: one block.
  void begin(index_t a, index_t b, bool shared) {
    shared_ = shared;
    part_[0] = {a, 0, blocks_.count(a), blocks_.width(a)};
    part_[1] = {b, part_[0].width, b < 0 ? 0 : blocks_.count(b), b < 0 ? 0 : blocks_.width(b)};
    width_ = part_[0].width + part_[1].width;
    wide_ = width_ * blocks_.points().features() * index_t(sizeof(T)) > kNear;
    memory_.ensure(std::max<index_t>(1, (part_[0].count + part_[1].count) * width_));
    row_.assign(width_, nullptr);
    missing_.assign(width_, T(0));
    diagonal_.assign(width_, T(0));
    used_ = 0;
    for (const Piece& p : part_)
      for (index_t j = 0; j < p.count; ++j) diagonal_[p.at + j] = blocks_.diagonal(blocks_.begin(p.block) + j);
    if (blocks_.all()) take_all(*blocks_.all());
  }
  index_t width() const { return width_; }
  index_t rows() const { return used_; }
  T diagonal(index_t v) const { return diagonal_[v]; }
  const T* known(index_t v) const { return row_[v]; }  // or null
  bool member(index_t v) const { return part_of(v).at + part_of(v).count > v; }

  // Its row, computed if it must be, together with those of who else wants to move; `wants` finds how much each does.
  template <class Wants>
  const T* row(index_t v, Wants&& wants) {
    if (!row_[v]) {
      T* much = want_.ensure(width_);
      wants(much);
      fetch(v, much);
    }
    return row_[v];
  }
  const T* row(index_t v, const Wishes<T>& wishes) {
    return row(v, [&](T* much) { wishes.want(width_, much); });
  }
  // Rows of all the variables in the list.
  void fetch(const std::vector<index_t>& wanted) {
    for (std::size_t i = 0; i < wanted.size(); i += kBatch) {
      batch_.assign(wanted.begin() + i, wanted.begin() + std::min(wanted.size(), i + kBatch));
      compute();
    }
  }

 private:
  struct Piece {
    index_t block, at, count, width;
  };
  static constexpr index_t kBatch = kRows;   // a register tile of the dense kernels
  static constexpr index_t kNear = 1 << 21;  // bytes: more samples come from far away at each call, which takes more rows then

  const Piece& part_of(index_t v) const { return part_[v >= part_[1].at && part_[1].count > 0]; }
  index_t sample(index_t v) const { return blocks_.begin(part_of(v).block) + v - part_of(v).at; }

  // The row of v, and those of the variables that want to move most and have none.
  void fetch(index_t v, const T* much) {
    // Of sparse samples most of the time goes into finding the entries that rows have in common, once for all rows of a call:
    // then more at a time the more there have been.
    const index_t most = blocks_.points().sparse() ? std::max<index_t>(kChunk<T> / 4, used_ / 2) : wide_ ? 4 * kBatch : kBatch;
    batch_.assign(1, v);
    missing_[v] = -std::numeric_limits<T>::infinity();
    best_.find(width_, most - 1, [&](index_t u) { return load(much + u) + load(&missing_[u]); }, batch_);
    compute();
  }

  // Every row, from all of K.
  void take_all(const Triangle<T>& all) {
    for (const Piece& own : part_)
      for (index_t j = 0; j < own.count; ++j) row_[own.at + j] = memory_.data() + used_++ * width_;
    for (const Piece& own : part_)
      for (const Piece& with : part_) {
        if (own.count == 0 || with.count == 0) continue;
        all.copy(blocks_.begin(own.block), own.count, blocks_.begin(with.block), with.count, row_[own.at] + with.at, width_);
        for (index_t j = 0; j < own.count; ++j)
          std::fill(row_[own.at + j] + with.at + with.count, row_[own.at + j] + with.at + with.width, T(0));
      }
  }

  void compute() {
    for (index_t v : batch_) {
      row_[v] = memory_.data() + used_++ * width_;
      missing_[v] = -std::numeric_limits<T>::infinity();
    }
    for (const Piece& own : part_) {
      mine_.clear();
      for (index_t v : batch_)
        if (&part_of(v) == &own) mine_.push_back(v);
      if (mine_.empty()) continue;
      for (const Piece& with : part_)
        if (with.count > 0) &with == &own && shared_ ? take_shared(own) : compute(mine_, with);
    }
  }

  // K(v, block of `with`) into the rows of the given variables.
  void compute(const std::vector<index_t>& who, const Piece& with) {
    line_.clear();
    to_.clear();
    for (index_t v : who) {
      line_.push_back(blocks_.matrix_row(sample(v)));
      to_.push_back(row_[v] + with.at);
    }
    packed_.pack(blocks_.points(), line_.data(), index_t(line_.size()));
    kernel_rows(blocks_.list(with.block), packed_, to_.data(), scratch_, 1);
    for (T* to : to_) std::fill(to + with.count, to + with.width, T(0));
  }

  // The pieces that all problems of the block share: copied where they are kept, else computed and kept if there is room.
  void take_shared(const Piece& own) {
    absent_.clear();
    for (index_t v : mine_)
      if (const T* kept = blocks_.find(sample(v)))
        std::copy(kept, kept + own.width, row_[v] + own.at);
      else
        absent_.push_back(v);
    if (absent_.empty()) return;
    compute(absent_, own);
    for (index_t v : absent_)
      if (T* room = blocks_.room(sample(v))) {
        std::copy(row_[v] + own.at, row_[v] + own.at + own.width, room);
        blocks_.keep(sample(v), room);
      }
  }

  BlockRows<T>& blocks_;
  bool shared_ = false;
  bool wide_ = false;  // whether its samples take more than what stays near the processor
  Piece part_[2];
  index_t width_ = 0, used_ = 0;
  Buffer<T> memory_;
  std::vector<T*> row_, to_;
  std::vector<T> diagonal_;
  std::vector<index_t> batch_, mine_, absent_, line_;
  std::vector<T> missing_;  // 0 for who has no row, else −∞
  Buffer<T> want_;
  Largest<T> best_;
  PackedRows<T> packed_;
  std::vector<TileScratch<T>> scratch_;
};

// The rows of a problem between some of its variables: each gathered when it is asked for. Of all of them: as they are.
template <class T>
class WindowRows {
 public:
  explicit WindowRows(PairRows<T>& all) : all_(all) {}

  void open() { some_ = false; }
  void open(const std::vector<index_t>& position) {
    some_ = true;
    at_ = position;
    width_ = (index_t(at_.size()) + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
    memory_.ensure(std::max<index_t>(1, index_t(at_.size()) * width_));
    row_.assign(at_.size(), nullptr);
    used_ = 0;
  }
  T diagonal(index_t v) const { return all_.diagonal(some_ ? at_[v] : v); }

  const T* row(index_t v, const Wishes<T>& wishes) {
    if (!some_) return all_.row(v, wishes);
    if (!row_[v]) row_[v] = gather(v, wishes);
    return row_[v];
  }

 private:
  const T* gather(index_t v, const Wishes<T>& wishes) {
    const T* from = all_.known(at_[v]);
    if (!from) {
      from = all_.row(at_[v], [&](T* much) {
        T* mine = want_.ensure(width_);
        wishes.want(index_t(at_.size()), mine);
        std::fill(much, much + all_.width(), -std::numeric_limits<T>::infinity());
        for (std::size_t u = 0; u < at_.size(); ++u) much[at_[u]] = mine[u];
      });
    }
    T* to = memory_.data() + used_++ * width_;
    for (std::size_t u = 0; u < at_.size(); ++u) to[u] = from[at_[u]];
    std::fill(to + at_.size(), to + width_, T(0));
    return to;
  }

  PairRows<T>& all_;
  bool some_ = false;
  index_t width_ = 0, used_ = 0;
  std::vector<index_t> at_;
  std::vector<const T*> row_;
  Buffer<T> want_;
  Buffer<T> memory_;
};

}  // namespace maxmargin
