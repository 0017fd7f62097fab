// An array that grows at its end and is then handed over. Room that was never written to takes no memory, so whoever knows
// about how much will come reserves it: growing step by step may leave copies behind in the heap.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace maxmargin {

struct Free {
  void operator()(void* p) const noexcept { std::free(p); }
};
template <class T>
using Owned = std::unique_ptr<T[], Free>;

template <class T>
class Growing {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  std::size_t size() const { return size_; }
  T* data() { return data_.get(); }

  // `more` elements without values at the end; returns the first of them.
  T* extend(std::size_t more) {
    if (size_ + more > room_) resize_room(size_ + more > room_ + room_ / 2 ? size_ + more : room_ + room_ / 2);
    T* first = data_.get() + size_;
    size_ += more;
    return first;
  }

  // Room for so many elements in all, if there is so much.
  void reserve(std::size_t room) {
    if (room <= room_) return;
    try {
      resize_room(room);
    } catch (const std::bad_alloc&) {  // a guess too high: it grows as it must
    }
  }

  // The elements, no longer ours.
  std::pair<Owned<T>, std::size_t> release() {
    resize_room(size_);
    const std::size_t size = std::exchange(size_, 0);
    room_ = 0;
    return {std::move(data_), size};
  }

 private:
  void resize_room(std::size_t room) {
    void* moved = std::realloc(data_.get(), (room ? room : 1) * sizeof(T));
    if (!moved) throw std::bad_alloc();
    data_.release();
    data_.reset(static_cast<T*>(moved));
    room_ = room;
  }

  Owned<T> data_;
  std::size_t size_ = 0, room_ = 0;
};

}  // namespace maxmargin
