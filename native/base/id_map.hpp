// Places of sample ids: an array where the part at hand has most of all ids, a hash table where it has a small share, so that
// memory does not grow with the samples of all processes.
#pragma once
#include <unordered_map>
#include <vector>

#include "base/matrix.hpp"

namespace maxmargin {

class IdMap {
 public:
  IdMap(index_t ids, bool array) : place_(array ? ids : 0, -1), array_(array) {}

  index_t find(index_t id) const {  // -1: it has none
    if (array_) return place_[id];
    const auto found = few_.find(id);
    return found == few_.end() ? -1 : found->second;
  }
  void put(index_t id, index_t place) {
    if (array_)
      place_[id] = place;
    else
      few_[id] = place;
  }
  void drop(index_t id) {
    if (array_)
      place_[id] = -1;
    else
      few_.erase(id);
  }

 private:
  std::vector<index_t> place_;
  std::unordered_map<index_t, index_t> few_;
  bool array_;
};

}  // namespace maxmargin
