// Kernel rows under a hard byte budget: one block of memory cut into equal slots, least recently used out first.
//
// Keys are sample ids in [0, ids). When the samples that rows run over become fewer (or more), resize() re-cuts the
// same memory: fewer columns make more slots.
//   worked example: 10 slots of 100 columns, resized to columns {3, 5, 90}: 333 slots of 3; row r keeps r[3], r[5], r[90]
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "matrix.hpp"

namespace maxmargin {

template <class T>
class RowCache {
 public:
  RowCache(index_t ids, std::size_t bytes, index_t stride) : slot_of_(ids, -1), capacity_(bytes / sizeof(T)) {
    // Huge pages where the kernel has them: rows are long and touched once each. Pages are used only when written.
    const std::size_t size = std::max<std::size_t>(capacity_ * sizeof(T), 1);
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(memory, size, MADV_HUGEPAGE);
#endif
    memory_ = static_cast<T*>(memory);
    mapped_ = size;
    cut(stride);
  }
  ~RowCache() { munmap(memory_, mapped_); }
  RowCache(const RowCache&) = delete;
  RowCache& operator=(const RowCache&) = delete;

  index_t slots() const { return index_t(id_of_.size()); }
  index_t stride() const { return stride_; }
  T* find(index_t id) const { return slot_of_[id] < 0 ? nullptr : memory_ + slot_of_[id] * stride_; }
  void touch(index_t id) { stamp_[slot_of_[id]] = ++clock_; }

  // A slot for a new row: a free one, or that of the row used longest ago unless it was used at or after `keep_since`.
  T* insert(index_t id, std::uint64_t keep_since) {
    index_t slot = -1;
    if (used_ < slots()) {
      slot = used_++;
    } else {
      slot = oldest(keep_since);
      if (slot < 0) return nullptr;
      slot_of_[id_of_[slot]] = -1;
    }
    id_of_[slot] = id;
    slot_of_[id] = slot;
    stamp_[slot] = ++clock_;
    return memory_ + slot * stride_;
  }
  std::uint64_t now() const { return clock_ + 1; }

  // Keep columns[0 .. count) of every row (ascending), and cut the memory anew for rows of `stride`.
  void shrink(const index_t* columns, index_t count, index_t stride) {
    for (index_t slot = 0; slot < used_; ++slot) {
      T *from = memory_ + slot * stride_, *to = memory_ + slot * stride;
      for (index_t j = 0; j < count; ++j) to[j] = from[columns[j]];  // to ≤ from and j ≤ columns[j]: safe in place
    }
    recut(stride);
  }

  // Make room for rows of a longer `stride`; the rows used longest ago go when they no longer fit.
  void grow(index_t old_count, index_t stride) {
    const index_t fit = index_t(capacity_ / std::size_t(stride));
    if (used_ > fit) keep_newest(fit, old_count);
    for (index_t slot = used_ - 1; slot > 0; --slot)
      std::memmove(memory_ + slot * stride, memory_ + slot * stride_, std::size_t(old_count) * sizeof(T));
    recut(stride);
  }

  // Ids of the rows held, and their memory.
  std::vector<index_t> ids() const { return std::vector<index_t>(id_of_.begin(), id_of_.begin() + used_); }

 private:
  void cut(index_t stride) {
    stride_ = stride;
    const index_t n = stride > 0 ? index_t(capacity_ / std::size_t(stride)) : 0;
    id_of_.assign(std::min<index_t>(n, index_t(slot_of_.size())), -1);
    stamp_.assign(id_of_.size(), 0);
  }
  void recut(index_t stride) {
    const auto ids = this->ids();
    const std::vector<std::uint64_t> stamps(stamp_.begin(), stamp_.begin() + used_);
    cut(stride);
    std::copy(ids.begin(), ids.end(), id_of_.begin());
    std::copy(stamps.begin(), stamps.end(), stamp_.begin());
  }

  // A second-chance scan would be O(1); n slots are few (thousands) beside the work of filling one.
  index_t oldest(std::uint64_t keep_since) const {
    index_t best = -1;
    std::uint64_t when = keep_since;
    for (index_t s = 0; s < slots(); ++s)
      if (stamp_[s] < when) {
        when = stamp_[s];
        best = s;
      }
    return best;
  }

  void keep_newest(index_t count, index_t old_count) {
    std::vector<std::uint64_t> sorted(stamp_.begin(), stamp_.begin() + used_);
    std::sort(sorted.begin(), sorted.end());
    const std::uint64_t from = count > 0 ? sorted[used_ - count] : std::numeric_limits<std::uint64_t>::max();
    index_t kept = 0;
    for (index_t s = 0; s < used_; ++s) {
      if (stamp_[s] < from) {
        slot_of_[id_of_[s]] = -1;
        continue;
      }
      if (kept != s) {
        std::memcpy(memory_ + kept * stride_, memory_ + s * stride_, std::size_t(old_count) * sizeof(T));
        id_of_[kept] = id_of_[s];
        stamp_[kept] = stamp_[s];
        slot_of_[id_of_[kept]] = kept;
      }
      ++kept;
    }
    used_ = kept;
  }

  std::vector<index_t> slot_of_, id_of_;
  std::vector<std::uint64_t> stamp_;
  std::size_t capacity_, mapped_ = 0;
  T* memory_ = nullptr;
  index_t stride_ = 0, used_ = 0;
  std::uint64_t clock_ = 0;
};

}  // namespace maxmargin
