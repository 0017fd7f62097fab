// The state of a budgeted kernel SVM: support vectors, their coefficients, and what happened to them.
//
//     w = 1/(lambda t) sum_j beta_j phi(s_j)        t: steps taken
//
// Kept as beta with one scale, the shrinking of every step costs nothing. Slots 0..count-1 are in use; one more than
// the budget may fill, for the moment between insertion and budget maintenance. beta has one row per output.
//
// Average of the iterates since step t0, each weighted by its number t:  sum t w_t / sum t = sum beta(t) / (lambda sum t).
// The sum of beta is kept lazily, sum = window + beta * t, so that a step touches only coefficients that change; merging
// carries it along. That wears off as support vectors move, so old iterates are forgotten: two windows start in turn,
// when the steps have grown by 5 % or a support vector has moved once on average, whichever comes first; the older
// one gives the average. Both rules depend on the steps alone, so a stream may be cut anywhere.
#pragma once
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "budget/panels.hpp"

namespace maxmargin::budget {

// What happened so far. Seconds: search = finding the partner and h, merge = the rest of budget maintenance.
struct Counters {
  double steps = 0, violations = 0, duplicates = 0, merges = 0, removals = 0, projections = 0;
  double degradation = 0;                    // sum of |w' - w|^2 in units of beta^2
  double loss = 0, correct = 0, weight = 0;  // running: each sample is judged before the model learns from it
  double search_seconds = 0, merge_seconds = 0;
  // Audit: the same merge decided by every method. Factors are WD over that of the precise search, summed; totals are
  // WD in units of the smaller coefficient's square, summed; useless: what the drop rule would have dropped.
  double audits = 0, same_wd_precise = 0, same_gss_precise = 0, same_wd_gss = 0, factor_wd = 0, factor_gss = 0;
  double useless_wd = 0, useless_gss = 0, total_precise = 0, total_wd = 0, total_gss = 0;
};

// `slots` of the budget are enough for the rows to come: they decide what is allocated, and nothing else.
struct Shape {
  index_t budget, slots, features, outputs;
};

template <class Real>
struct Model {
  Model(const Shape& shape, double gamma)
      : budget(shape.budget),
        slots(shape.slots),
        outputs(shape.outputs),
        gamma(Real(gamma)),
        panels(shape.slots + 1, shape.features),
        padded(panels.count() * kPanelLanes),
        coef(outputs * padded),
        beta(outputs * padded),
        window{Aligned<double>(outputs * padded), Aligned<double>(outputs * padded)},
        size(padded),
        label(padded),
        born(padded),
        bias(outputs, 0.0),
        bias_window{std::vector<double>(outputs), std::vector<double>(outputs)},
        stale(padded, true) {
    for (index_t j = 0; j < padded; ++j) label[j] = -1;
  }

  index_t panels_in_use() const { return (count + kPanelLanes - 1) / kPanelLanes; }
  index_t slots_in_use() const { return panels_in_use() * kPanelLanes; }
  // beta[at] <- value. What the windows had summed up is scaled by `keep`; `share` of slot `from`'s sum joins it.
  void set_beta(std::size_t at, double value, double keep, std::size_t from = 0, double share = 0) {
    for (auto& sums : window) {
      const double past = keep * (sums[at] + beta[at] * (time - 1));
      const double joins = share == 0 ? 0 : share * (sums[from] + beta[from] * (time - 1));
      sums[at] = past + joins - value * (time - 1);
    }
    beta[at] = value;
  }

  // Between steps: start a new window when it is due.
  void turn_windows() {
    if (time < next_window && moves < kWindowMoves * double(budget)) return;
    moves = 0;
    window_start[0] = window_start[1];
    window_start[1] = time;
    next_window = std::max(time + 1, std::floor(kWindowGrowth * time));
    for (index_t at = 0; at < outputs * padded; ++at) {
      window[0][at] = window[1][at];
      window[1][at] = -beta[at] * time;
    }
    for (index_t c = 0; c < outputs; ++c) {
      bias_window[0][c] = bias_window[1][c];
      bias_window[1][c] = -bias[c] * time;
    }
  }

  bool smaller(index_t a, index_t b) const { return size[a] < size[b] || (size[a] == size[b] && born[a] < born[b]); }

  void insert(const Real* x, const double* delta, std::int32_t with_label) {
    if (count > slots) throw std::length_error("budget: more rows came than slots were made for");
    const index_t slot = count++;
    panels.set(slot, x);
    for (index_t c = 0; c < outputs; ++c) set_beta(c * padded + slot, delta[c], 0);
    label[slot] = with_label;
    born[slot] = std::int64_t(time);
    touch(slot);
  }

  // Slot i leaves; the last one takes its place.
  void discard(index_t i) {
    const index_t last = --count;
    if (i != last) {
      for (index_t k = 0; k < panels.features(); ++k) panels.at(i, k) = panels.at(last, k);
      panels.refresh_norm(i);
      for (index_t c = 0; c < outputs; ++c) {
        beta[c * padded + i] = beta[c * padded + last];
        for (auto& sums : window) sums[c * padded + i] = sums[c * padded + last];
      }
      label[i] = label[last];
      born[i] = born[last];
      touch(i);
    }
    for (index_t c = 0; c < outputs; ++c)
      beta[c * padded + last] = window[0][c * padded + last] = window[1][c * padded + last] = 0;
    label[last] = -1;
    refresh(last);
  }

  // After a change of beta alone: the copies of it that the loops read.
  void refresh(index_t slot) {
    double sum = 0;
    for (index_t c = 0; c < outputs; ++c) {
      const double b = beta[c * padded + slot];
      coef[c * padded + slot] = Real(b);
      sum += b * b;
    }
    size[slot] = Real(std::sqrt(sum));
  }

  // After a change of the support vector: blocks measured before must measure this panel again.
  void touch(index_t slot) {
    refresh(slot);
    stale[slot] = true;
    const index_t p = slot / kPanelLanes;
    for (index_t q : changed)
      if (q == p) return;
    changed.push_back(p);
  }

  static constexpr double kWindowGrowth = 1.05, kWindowMoves = 1;  // measured: longer averages are worse
  const index_t budget, slots, outputs;
  const Real gamma;
  Panels<Real> panels;
  const index_t padded;
  index_t count = 0;
  double time = 0;  // steps taken, the current one included
  Aligned<Real> coef;
  Aligned<double> beta, window[2];
  Aligned<Real> size;  // |beta_j|
  Aligned<std::int32_t> label;
  Aligned<std::int64_t> born;  // the step that brought it, for ties
  std::vector<double> bias, bias_window[2];
  double window_start[2] = {0, 0}, next_window = 1, moves = 0;
  std::vector<index_t> changed;  // panels changed since the block was measured
  std::vector<char> stale;       // slots changed since the Gram matrix was brought up to date
  Counters counters;
};

}  // namespace maxmargin::budget
