// The problems of a family (family.hpp): their samples, bounds, parents. A family changes nothing of it, so that those of
// several gammas share one.
#pragma once
#include <cstdint>
#include <vector>

#include "base/matrix.hpp"

namespace maxmargin {

// As in many.hpp; dropped: nobody wants it any more.
enum class Stage : std::int8_t { waiting, running, converged, stalled, steps, dropped };

// Problem p has samples range[4p] … range[4p + 1] and range[4p + 2] … range[4p + 3], positions at[p] … at[p + 1] of f, and
// variables halves · at[p] … of the other arrays: all of the first half, then all of the second.
struct FamilyState {
  std::vector<index_t> range, at, parent;  // parent < p, or −1: from nothing
  std::vector<index_t> like, unlike;       // whose difference is added to the parent's, or −1
  std::vector<double> ratio;               // of its bounds to its parent's
  std::vector<double> center, lo, hi, start, target;  // start: β of a problem without a parent; target: groups per problem
  std::vector<std::int8_t> group;
  std::vector<index_t> extra_at, extra;  // samples of other classes whose f is wanted
  int groups, halves;
};

struct FamilyLimits {
  double tol;
  index_t steps;  // per problem
};

}  // namespace maxmargin
