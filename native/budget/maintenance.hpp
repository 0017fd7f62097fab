// Budget maintenance: one support vector too many becomes as many as allowed, with a small |w' - w|^2.
//
//   merge    the smallest |beta| is merged with the partner of its label that degrades w least, or dropped if the drop
//            rule is on and no partner is of any use (budget/merging.hpp). Ties: the newcomer, then the oldest. A merged beta
//            is at least as long as the longer of the two, so with equal weights the newcomer is soon always the
//            smallest, and its distances are those its margin was computed from: no kernel evaluation, no kernel matrix.
//            When nobody shares its label, the smallest that has a partner is merged.
//   remove   the smallest |beta| leaves, the oldest on ties.
//   project  as remove, after its contribution is projected onto the span of the others.
#pragma once
#include <chrono>
#include <memory>

#include "budget/merging.hpp"
#include "budget/model.hpp"

namespace maxmargin::budget {

enum class Maintenance : int { kMerge = 0, kRemove = 1, kProject = 2 };

class Stopwatch {
 public:
  double lap() {
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

struct Rules {
  Maintenance how;
  Search search;
  std::shared_ptr<const MergeTable> table;
  bool drop, audit;
};

template <class Real>
class Maintainer {
 public:
  Maintainer(Model<Real>& model, const Rules& rules)
      : model_(model),
        rules_(rules),
        candidates_(model.padded),
        search_(rules.table, model.padded),
        row_(model.padded),
        point_(model.panels.features()) {}

  // Add delta * phi(x) to a full model; t holds x's distances to all support vectors.
  void add(const Real* x, const Real* t, const double* delta, std::int32_t label) {
    Stopwatch watch;
    const double searched = model_.counters.search_seconds;
    if (rules_.how == Maintenance::kMerge) {
      if (!absorb(x, t, delta, label)) {
        model_.insert(x, delta, label);
        merge_smallest();
      }
    } else {
      model_.insert(x, delta, label);
      remove_smallest();
    }
    model_.counters.merge_seconds += watch.lap() - (model_.counters.search_seconds - searched) - audited_;
    audited_ = 0;
  }

  // One support vector less, `steps` times at most, down to the budget: of a model put together from several.
  void reduce(index_t steps) {
    Stopwatch watch;
    const double searched = model_.counters.search_seconds;
    for (; model_.count > model_.budget && steps > 0; --steps) {
      if (rules_.how == Maintenance::kMerge) merge_smallest();
      else remove_smallest();
    }
    model_.counters.merge_seconds += watch.lap() - (model_.counters.search_seconds - searched) - audited_;
    audited_ = 0;
  }

 private:
  // The common case: the newcomer is the smallest and has a partner; it never needs a slot.
  bool absorb(const Real* x, const Real* t, const double* delta, std::int32_t label) {
    double size = 0;
    for (index_t c = 0; c < model_.outputs; ++c) size += delta[c] * delta[c];
    size = std::sqrt(size);
    Real least = std::numeric_limits<Real>::infinity();
    const Real* sizes = model_.size.data();
#pragma omp simd reduction(min : least)
    for (index_t j = 0; j < model_.count; ++j) least = sizes[j] < least ? sizes[j] : least;
    if (least < Real(size)) return false;
    propose(t, label, size, -1, delta, 1);
    const Choice choice = choose(t);
    if (choice.slot == kRemove) {  // the newcomer would vanish into any partner
      model_.counters.removals += 1;
      model_.counters.degradation += size * size;
      return true;
    }
    if (choice.slot < 0) return false;
    for (index_t c = 0; c < model_.outputs; ++c) {
      const std::size_t at = c * model_.padded + choice.slot;
      model_.set_beta(at, delta[c] * choice.k1 + model_.beta[at] * choice.k2, choice.k2);
    }
    finish(choice, x, size);
    return true;
  }

  void merge_smallest() {
    const index_t i = smallest_with_partner();
    if (i < 0 || !(model_.size[i] > 0)) {  // a refit may leave a coefficient of zero, which has nothing to give
      remove_smallest();
      return;
    }
    model_.panels.get(i, point_.data());
    measure(point_.data());
    const double size = model_.size[i];
    propose(row_.data(), model_.label[i], size, i, model_.beta.data() + i, model_.padded);
    const Choice choice = choose(row_.data());
    if (choice.slot < 0) {
      model_.counters.removals += 1;
      model_.counters.degradation += size * size;
      model_.discard(i);
      return;
    }
    for (index_t c = 0; c < model_.outputs; ++c) {
      const std::size_t from = c * model_.padded + i, at = c * model_.padded + choice.slot;
      model_.set_beta(at, model_.beta[from] * choice.k1 + model_.beta[at] * choice.k2, choice.k2, from, choice.k1);
    }
    finish(choice, point_.data(), size);
    model_.discard(i);
  }

  // -1 if no label occurs twice.
  index_t smallest_with_partner() const {
    std::vector<index_t> members;
    for (index_t j = 0; j < model_.count; ++j) {
      if (std::size_t(model_.label[j]) >= members.size()) members.resize(model_.label[j] + 1);
      ++members[model_.label[j]];
    }
    index_t i = -1;
    for (index_t j = 0; j < model_.count; ++j)
      if (members[model_.label[j]] > 1 && (i < 0 || model_.smaller(j, i))) i = j;
    return i;
  }

  void remove_smallest() {
    index_t i = 0;
    for (index_t j = 1; j < model_.count; ++j)
      if (model_.smaller(j, i)) i = j;
    const double size = model_.size[i];
    if (rules_.how == Maintenance::kProject) {
      model_.counters.degradation += project(i);
      model_.counters.projections += 1;
    } else {
      model_.counters.degradation += size * size;
      model_.counters.removals += 1;
    }
    model_.discard(i);
  }

  // beta of the others so that their sum with slot i left out is nearest to w: K a = k_i by conjugate gradients from
  // a = 0 (plain removal). Their iterates lower |w' - w|^2 itself, so stopping early is safe. Returns |w' - w|^2.
  double project(index_t i) {
    update_gram();
    const index_t n = model_.count, stride = model_.padded;
    std::vector<Real> a(stride), residual(stride), direction(stride), image(stride);
    const Real* column = gram_.data() + i * stride;
    double norm = 0;
    for (index_t j = 0; j < n; ++j) {
      residual[j] = j == i ? Real(0) : column[j];
      norm += double(residual[j]) * residual[j];
    }
    direction = residual;
    const double goal = norm * 1e-8;
    for (int step = 0; step < 50 && norm > goal; ++step) {
      double curvature = 0;
      for (index_t j = 0; j < n; ++j) {
        const Real* row = gram_.data() + j * stride;
        Real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (index_t k = 0; k < n; ++k) sum += row[k] * direction[k];
        image[j] = j == i ? Real(0) : sum;
        curvature += double(image[j]) * direction[j];
      }
      if (!(curvature > 0)) break;
      const double length = norm / curvature, before = norm;
      norm = 0;
      for (index_t j = 0; j < n; ++j) {
        a[j] += Real(length) * direction[j];
        residual[j] -= Real(length) * image[j];
        norm += double(residual[j]) * residual[j];
      }
      for (index_t j = 0; j < n; ++j) direction[j] = residual[j] + Real(norm / before) * direction[j];
    }
    // |phi_i - sum a phi|^2 = 1 - 2 a.k + a K a = 1 - a.k - a.residual
    double explained = 0;
    for (index_t j = 0; j < n; ++j) explained += double(a[j]) * (double(column[j]) * (j != i) + residual[j]);
    for (index_t c = 0; c < model_.outputs; ++c) {
      const std::size_t row = c * stride;
      const double moved = model_.beta[row + i];
      for (index_t j = 0; j < n; ++j)
        if (j != i) model_.set_beta(row + j, model_.beta[row + j] + a[j] * moved, 1, row + i, a[j]);
    }
    for (index_t j = 0; j < n; ++j) model_.refresh(j);
    const double size = model_.size[i];
    return std::max(0.0, 1 - explained) * size * size;
  }

  // The kernel matrix of the support vectors; only slots that changed are computed.
  void update_gram() {
    const index_t stride = model_.padded;
    if (gram_.empty()) gram_.assign(std::size_t(stride) * stride, Real(0));
    for (index_t j = 0; j < model_.count; ++j) {
      if (!model_.stale[j]) continue;
      model_.stale[j] = false;
      model_.panels.get(j, point_.data());
      measure(point_.data());
      for (index_t k = 0; k < model_.count; ++k)
        gram_[j * stride + k] = gram_[k * stride + j] = exp(-row_[k]);
    }
  }

  void measure(const Real* x) {
    const DenseSample<Real> sample{x};
    model_.panels.measure_block(&sample, 1, model_.panels_in_use(), model_.gamma, row_.data(), model_.padded);
  }

  // Fill candidates_ for a point of this label with coefficients a (stride apart) and |a| = size.
  void propose(const Real* t, std::int32_t label, double size, index_t self, const double* a, index_t stride) {
    const index_t n = model_.slots_in_use();
    candidates_.t = t;
    candidates_.slots = n;
    candidates_.single = model_.outputs == 1;
    Real *ratio = candidates_.ratio.data(), *rho = candidates_.rho.data();
    const Real* sizes = model_.size.data();
    const std::int32_t* labels = model_.label.data();
    const Real inverse = Real(std::min(1 / size, double(kLongest<Real>)));
#pragma omp simd
    for (index_t j = 0; j < n; ++j) {
      const Real times = sizes[j] * inverse;
      ratio[j] = labels[j] == label ? (times < kLongest<Real> ? times : kLongest<Real>) : Real(0);
      rho[j] = 1;
    }
    if (self >= 0) ratio[self] = 0;
    if (candidates_.single) return;
    for (index_t j = 0; j < n; ++j) {
      if (!(ratio[j] > 0)) continue;
      double product = 0;
      for (index_t c = 0; c < model_.outputs; ++c) product += a[c * stride] * model_.beta[c * model_.padded + j];
      rho[j] = Real(std::min(product / (size * double(sizes[j])), 1.0));
    }
  }

  struct Choice {
    index_t slot;
    double h, k1, k2, score;
  };

  Choice choose(const Real* t) {
    Stopwatch watch;
    Partner partner = search_.find(rules_.search, candidates_);
    if (rules_.drop && partner.slot >= 0 && partner.score > kUseless) partner.slot = kRemove;
    model_.counters.search_seconds += watch.lap();
    if (partner.slot < 0) return {partner.slot, 0, 0, 0, 0};
    if (rules_.audit) {
      audit();
      audited_ += watch.lap();
    }
    const double h = partner.h, tj = t[partner.slot];
    return {partner.slot, h, std::exp(-tj * (1 - h) * (1 - h)), std::exp(-tj * h * h), partner.score};
  }

  void finish(const Choice& choice, const Real* x, double size) {
    model_.panels.blend(choice.slot, x, Real(choice.h));
    model_.touch(choice.slot);
    model_.moves += 1;
    model_.counters.merges += 1;
    model_.counters.degradation += choice.score * size * size;
  }

  // The merge at hand by every method, without the drop rule: which partners, and what each really costs.
  void audit() {
    const Partner precise = search_.find(Search::kGoldenPrecise, candidates_);
    const Partner golden = search_.find(Search::kGolden, candidates_);
    const Partner lookup = search_.find(Search::kLookupWd, candidates_);
    Counters& counters = model_.counters;
    counters.audits += 1;
    counters.same_gss_precise += golden.slot == precise.slot;
    counters.same_wd_precise += lookup.slot == precise.slot;
    counters.same_wd_gss += lookup.slot == golden.slot;
    counters.factor_gss += precise.score > 0 ? golden.score / precise.score : 1.0;
    counters.factor_wd += precise.score > 0 ? lookup.score / precise.score : 1.0;
    counters.useless_gss += golden.score > kUseless;
    counters.useless_wd += lookup.score > kUseless;
    counters.total_precise += precise.score;
    counters.total_gss += golden.score;
    counters.total_wd += lookup.score;
  }

  Model<Real>& model_;
  const Rules rules_;
  double audited_ = 0;  // seconds of the audit in this event, which are nobody's
  Candidates<Real> candidates_;
  PartnerSearch<Real> search_;
  Aligned<Real> row_;
  std::vector<Real> point_;
  std::vector<Real> gram_;
};

}  // namespace maxmargin::budget
