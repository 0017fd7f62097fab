// The state of a budgeted kernel SVM: support vectors, their coefficients, and what happened to them.
//
//     w = 1/(lambda t) sum_j beta_j phi(s_j)        t: steps taken
//
// Kept as beta with one scale, the shrinking of every step costs nothing. Slots 0..count-1 are in use; one more than
// the budget exists, for the moment between insertion and budget maintenance. beta has one row per output.
//
// Average of the iterates, each weighted by its number t:  sum_t t w_t / sum_t t = 2/(lambda T(T+1)) sum_t beta(t).
// The sum over t is kept lazily: sum = average + beta * t, so that a step touches only coefficients that change.
#pragma once
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "budget_panels.hpp"

namespace maxmargin::budget {

// What happened so far. Seconds: search = finding the partner and h, merge = the rest of budget maintenance.
struct Counters {
  double steps = 0, violations = 0, duplicates = 0, merges = 0, removals = 0, projections = 0;
  double degradation = 0;                    // sum of |w' - w|^2 in units of beta^2
  double loss = 0, correct = 0, weight = 0;  // running: each sample is judged before the model learns from it
  double search_seconds = 0, merge_seconds = 0;
  // Audit: the same event decided by every method; factors are WD over that of the precise search.
  double audits = 0, same_wd_precise = 0, same_gss_precise = 0, same_wd_gss = 0, factor_wd = 0, factor_gss = 0;
};

template <class Real>
struct Model {
  Model(index_t budget, index_t features, index_t outputs, double gamma)
      : budget(budget),
        outputs(outputs),
        gamma(Real(gamma)),
        panels(budget + 1, features),
        padded(panels.count() * kLanes),
        coef(outputs * padded),
        beta(outputs * padded),
        average(outputs * padded),
        size(padded),
        label(padded),
        born(padded),
        bias(outputs, 0.0),
        bias_average(outputs, 0.0),
        stale(padded, true) {
    for (index_t j = 0; j < padded; ++j) label[j] = -1;
  }

  index_t panels_in_use() const { return (count + kLanes - 1) / kLanes; }
  index_t slots_in_use() const { return panels_in_use() * kLanes; }
  // Sum of beta over the steps before this one.
  double past(std::size_t at) const { return average[at] + beta[at] * (time - 1); }
  void set_beta(std::size_t at, double value, double past_value) {
    beta[at] = value;
    average[at] = past_value - value * (time - 1);
  }
  bool smaller(index_t a, index_t b) const { return size[a] < size[b] || (size[a] == size[b] && born[a] < born[b]); }

  void insert(const Real* x, const double* delta, std::int32_t with_label) {
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
        average[c * padded + i] = average[c * padded + last];
      }
      label[i] = label[last];
      born[i] = born[last];
      touch(i);
    }
    for (index_t c = 0; c < outputs; ++c) beta[c * padded + last] = average[c * padded + last] = 0;
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
    const index_t p = slot / kLanes;
    for (index_t q : changed)
      if (q == p) return;
    changed.push_back(p);
  }

  const index_t budget, outputs;
  const Real gamma;
  Panels<Real> panels;
  const index_t padded;
  index_t count = 0;
  double time = 0;  // steps taken, the current one included
  Aligned<Real> coef;
  Aligned<double> beta, average;
  Aligned<Real> size;  // |beta_j|
  Aligned<std::int32_t> label;
  Aligned<std::int64_t> born;  // the step that brought it, for ties
  std::vector<double> bias, bias_average;
  std::vector<index_t> changed;  // panels changed since the block was measured
  std::vector<char> stale;       // slots changed since the Gram matrix was brought up to date
  Counters counters;
};

}  // namespace maxmargin::budget
