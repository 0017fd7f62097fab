// Kernel rows under a hard byte budget: one block of memory cut into equal slots, least recently used out first.
//
// Keys are sample ids in [0, ids) (`array`: see IdMap). When the samples that rows run over become fewer (or more), resize() re-cuts the
// same memory: fewer columns make more slots.
//   worked example: 10 slots of 100 columns, resized to columns {3, 5, 90}: 333 slots of 3; row r keeps r[3], r[5], r[90]
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

#include "base/threads.hpp"
#include "base/id_map.hpp"

namespace maxmargin {

template <class T>
class RowCache {
 public:
  RowCache(index_t ids, bool array, std::size_t bytes, index_t stride)
      : ids_(ids),
        slot_of_(ids, array),
        capacity_(std::min(bytes / sizeof(T), std::size_t(ids) * std::size_t(stride))) {
    // Huge pages where the kernel has them and rows fill them: rows are long and touched once each. Pages are used only
    // when written.
    const std::size_t size = std::max<std::size_t>(capacity_ * sizeof(T), 1);
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (size >= (std::size_t(8) << 20)) madvise(memory, size, MADV_HUGEPAGE);
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
  T* find(index_t id) const {
    const index_t slot = slot_of_.find(id);
    return slot < 0 ? nullptr : memory_ + slot * stride_;
  }
  // Begin a turn: rows found or placed from now on are kept to its end.
  void begin_turn() { ++turn_; }
  void touch(index_t id) { stamp_[slot_of_.find(id)] = turn_; }

  // Slots for new rows, in the order of ids: unused memory, then the rows used longest ago. Fewer slots than ids come
  // back when this turn's rows fill the cache.
  std::vector<T*> place(const std::vector<index_t>& ids) {
    std::vector<index_t> old;
    for (index_t s = 0; s < used_; ++s)
      if (stamp_[s] < turn_) old.push_back(s);
    const auto older = [&](index_t a, index_t b) { return stamp_[a] != stamp_[b] ? stamp_[a] < stamp_[b] : a < b; };
    const std::size_t need = std::min(ids.size(), old.size());
    if (need < old.size()) std::nth_element(old.begin(), old.begin() + need, old.end(), older);
    std::vector<T*> out;
    std::size_t next = 0;
    for (index_t id : ids) {
      index_t slot = -1;
      if (used_ < slots())
        slot = used_++;
      else if (next < need)
        slot = old[next++];
      else
        break;
      if (id_of_[slot] >= 0) slot_of_.drop(id_of_[slot]);
      id_of_[slot] = id;
      slot_of_.put(id, slot);
      stamp_[slot] = turn_;
      out.push_back(memory_ + slot * stride_);
    }
    return out;
  }

  // Keep columns[0 .. count) of every row (ascending), and cut the memory anew for rows of `stride`.
  void shrink(const index_t* columns, index_t count, index_t stride, int threads) {
    if (count == 0) return clear();
    // Slots [begin, end) may move side by side when the last one's new place ends before the first one's old place.
    for (index_t begin = 0, end; begin < used_; begin = end) {
      end = std::clamp(begin * stride_ / std::max<index_t>(1, stride), begin + 1, used_);
      for_slices(end - begin, slice_size(end - begin, 2 * count), threads, [&](index_t first, index_t last) {
        for (index_t slot = begin + first; slot < begin + last; ++slot) {
          T *from = memory_ + slot * stride_, *to = memory_ + slot * stride;
          for (index_t j = 0; j < count; ++j) to[j] = from[columns[j]];  // to ≤ from and j ≤ columns[j]: safe in place
        }
      });
    }
    recut(stride);
  }

  // Make room for rows of a longer `stride`; the rows used longest ago go when they no longer fit.
  void grow(index_t old_count, index_t stride) {
    if (stride == 0) return;
    const index_t fit = index_t(capacity_ / std::size_t(stride));
    if (used_ > fit) keep_newest(fit, old_count);
    for (index_t slot = used_ - 1; slot > 0; --slot)
      std::memmove(memory_ + slot * stride, memory_ + slot * stride_, std::size_t(old_count) * sizeof(T));
    recut(stride);
  }

  void clear() {
    for (index_t s = 0; s < used_; ++s) slot_of_.drop(id_of_[s]);
    used_ = 0;
    recut(stride_);
  }

  // Ids of the rows held.
  std::vector<index_t> ids() const { return std::vector<index_t>(id_of_.begin(), id_of_.begin() + used_); }

 private:
  void cut(index_t stride) {
    stride_ = stride;
    const index_t n = stride > 0 ? index_t(capacity_ / std::size_t(stride)) : 0;
    id_of_.assign(std::min(n, ids_), -1);
    stamp_.assign(id_of_.size(), 0);
  }
  void recut(index_t stride) {
    const auto ids = this->ids();
    const std::vector<std::uint64_t> stamps(stamp_.begin(), stamp_.begin() + used_);
    cut(stride);
    std::copy(ids.begin(), ids.end(), id_of_.begin());
    std::copy(stamps.begin(), stamps.end(), stamp_.begin());
  }

  void keep_newest(index_t count, index_t old_count) {
    std::vector<index_t> order(used_);
    std::iota(order.begin(), order.end(), index_t(0));
    std::stable_sort(order.begin(), order.end(), [&](index_t a, index_t b) { return stamp_[a] > stamp_[b]; });
    for (index_t i = count; i < used_; ++i) slot_of_.drop(id_of_[order[i]]);
    order.resize(count);
    std::sort(order.begin(), order.end());
    for (index_t to = 0; to < count; ++to) {
      const index_t from = order[to];  // ≥ to, so nothing unread is overwritten
      if (from == to) continue;
      std::memcpy(memory_ + to * stride_, memory_ + from * stride_, std::size_t(old_count) * sizeof(T));
      id_of_[to] = id_of_[from];
      stamp_[to] = stamp_[from];
      slot_of_.put(id_of_[to], to);
    }
    used_ = count;
  }

  index_t ids_;
  IdMap slot_of_;
  std::vector<index_t> id_of_;
  std::vector<std::uint64_t> stamp_;
  std::size_t capacity_, mapped_ = 0;
  T* memory_ = nullptr;
  index_t stride_ = 0, used_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace maxmargin
