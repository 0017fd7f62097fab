// QPs on one kernel matrix that begin from one another: the settings of C and the folds of one gamma, for each pair of classes.
//
//   minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_group β = target        per problem, as in part_state.hpp; f = Kβ, score = c − f
//   stop     violation ≤ tol; a turn that gains nothing, three times, is a stall
//
// A problem begins when its parent is solved, from the parent's β: what is at a bound goes to the new one (0, for a sample
// that a fold leaves out), the rest stays, and the sums are restored. For a fold there is added what its rows did at the last C:
// the solution there (`like`) less that on all rows (`unlike`). f follows from theirs by the rows of what else changed.
//
// A problem is solved by decomposition on one thread: the worst violators and the free variables (set_choice.hpp), their tile
// gathered from the matrix (kept_tile.hpp), SMO on it, and f moved by the rows of what moved: in double, so that what is tested is f itself and
// not what float has made of it. Problems are handed out in the order asked for to the threads that come, those that can begin.
//
// f is kept for all samples of the problem's two ranges (classes), those that a fold leaves out among them: theirs are the
// decision values of a machine that has not seen them. For samples of other classes (`extra`) it is summed at the end. What is
// known of the solution (judged.hpp) is noted then too.
//
//   worked example: classes at samples 0 … 4 and 5 … 7; the pair has ranges [0, 5) and [5, 8), 8 positions; of regression
//   one range, and position p is variable p and p + n.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>

#include "decomposition/family_state.hpp"
#include "decomposition/gram.hpp"
#include "decomposition/inner_smo.hpp"
#include "decomposition/judged.hpp"
#include "decomposition/kept_tile.hpp"
#include "decomposition/restored.hpp"
#include "decomposition/set_choice.hpp"
#include "kernel/tile.hpp"

namespace maxmargin {

class Family {
 public:
  // order: in which problems are handed out, each once.
  Family(const Gram& gram, const FamilyState& state, std::vector<index_t> order, FamilyLimits limits, int threads)
      : gram_(gram), state_(state), order_(std::move(order)), limits_(limits), beta_(state.start.size(), 0.0),
        f_(state.at.back(), 0.0), extra_f_(state.extra.size(), 0.0), stage_(state_.parent.size()), steps_(stage_.size(), 0),
        turns_(stage_.size(), 0), moved_(stage_.size(), 0), begun_moved_(stage_.size(), 0), seconds_(stage_.size(), 0.0),
        judged_(stage_.size()) {
    for (auto& s : stage_) s.store(Stage::waiting);
    for (int t = 0; t < std::max(1, threads); ++t) workers_.push_back(std::make_unique<Worker>(*this));
  }

  // Goes on for about so many seconds; how many problems are done.
  index_t run(double seconds) {
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, 1e8)));
    auto work = [&](int, index_t w) { workers_[w]->advance(); };
    threading::share(index_t(workers_.size()), int(workers_.size()), work);
    return done_.load();
  }
  // A problem that has not begun, and from which no other begins, need not be solved.
  void drop(index_t p) {
    Stage waiting = Stage::waiting;
    if (stage_[p].compare_exchange_strong(waiting, Stage::dropped)) ++done_;
  }

  const FamilyState& state() const { return state_; }
  const double* beta(index_t p) const { return beta_.data() + state_.at[p] * state_.halves; }
  const double* f(index_t p) const { return f_.data() + state_.at[p]; }
  const double* extra_f(index_t p) const { return extra_f_.data() + state_.extra_at[p]; }
  index_t problems() const { return index_t(stage_.size()); }
  Stage stage(index_t p) const { return stage_[p].load(std::memory_order_acquire); }
  const std::vector<index_t>& steps() const { return steps_; }
  const std::vector<index_t>& turns() const { return turns_; }
  const std::vector<index_t>& moved() const { return moved_; }
  const std::vector<index_t>& begun_moved() const { return begun_moved_; }
  const std::vector<double>& seconds() const { return seconds_; }
  const std::vector<Judged>& judged() const { return judged_; }  // of samples of magnitude 1

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kInner = 0.1;  // of the violation: how far a turn is solved
  static constexpr double kFine = 4e-6;  // of the largest score: what SMO in float cannot tell apart
  static constexpr double kBetter = 0.9;  // a violation that has not become so much smaller in kPatience turns is a stall
  static constexpr int kPatience = 100;

  index_t size(index_t p) const { return state_.at[p + 1] - state_.at[p]; }
  bool late() const { return Clock::now() >= end_; }
  static bool over(Stage s) { return s != Stage::waiting && s != Stage::running; }

  bool waiting() {
    std::lock_guard<std::mutex> hold(lock_);
    return first_ < problems();
  }
  // The first problem that waits and can begin; −1: none now.
  index_t take() {
    std::lock_guard<std::mutex> hold(lock_);
    while (first_ < problems() && stage_[order_[first_]].load() != Stage::waiting) ++first_;
    for (index_t k = first_; k < problems(); ++k) {
      const index_t p = order_[k];
      if (stage_[p].load() != Stage::waiting) continue;
      // All that it begins from: of one that is under way, β and f do not belong together.
      bool ready = true;
      for (index_t q : {state_.parent[p], state_.like[p], state_.unlike[p]})
        ready = ready && (q < 0 || over(stage_[q].load(std::memory_order_acquire)));
      if (!ready) continue;
      stage_[p].store(Stage::running);
      return p;
    }
    return -1;
  }

  class Worker {
   public:
    explicit Worker(Family& family) : family_(family), state_(family.state_) {}

    void advance() {
      for (;;) {
        if (family_.late()) return;
        if (problem_ < 0) {
          problem_ = family_.take();
          if (problem_ < 0) {
            if (!family_.waiting()) return;
            std::this_thread::sleep_for(std::chrono::microseconds(50));  // for a parent that another thread is at
            continue;
          }
          const auto begun = Clock::now();
          begin();
          family_.seconds_[problem_] += since(begun);
          continue;
        }
        const auto begun = Clock::now();
        const index_t p = problem_;
        turn();
        family_.seconds_[p] += since(begun);
      }
    }

   private:
    static double since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

    // ---- the start ---------------------------------------------------------------------------------------------------

    void begin() {
      const index_t p = problem_;
      m_ = family_.size(p);
      variables_ = m_ * state_.halves;
      const index_t from = state_.at[p] * state_.halves;
      center_ = state_.center.data() + from;
      lo_ = state_.lo.data() + from;
      hi_ = state_.hi.data() + from;
      beta_ = family_.beta_.data() + from;
      group_ = state_.group.data() + from;
      f_ = family_.f_.data() + state_.at[p];
      range_ = state_.range.data() + 4 * p;
      idle_ = stale_ = 0;
      all_.reset();
      least_ = kInf;
      set_.clear();
      float_.clear(variables_, SetChoice::kLargest);
      double_.clear(variables_, SetChoice::kLargest);
      const index_t parent = state_.parent[p];
      const auto solved = [&](index_t q) { return q >= 0 && family_.stage_[q].load() != Stage::dropped; };
      const bool known = solved(parent);
      like_ = solved(state_.like[p]) && solved(state_.unlike[p]) ? state_.like[p] : -1;
      known ? inherit(parent) : void(std::copy(state_.start.data() + from, state_.start.data() + from + variables_, beta_));
      for (int g = 0; g < state_.groups; ++g) {
        const auto mine = [&](index_t v) { return state_.groups < 2 || group_[v] == g; };
        if (known) mend(beta_, lo_, hi_, variables_, mine, state_.target[p * state_.groups + g], order_);
        restore(beta_, lo_, hi_, variables_, mine, state_.target[p * state_.groups + g]);
      }
      known ? follow(parent) : sum_up();
    }

    // β from the parent's: bounds to bounds.
    void inherit(index_t parent) {
      const index_t from = state_.at[parent] * state_.halves;
      const double *b = of(parent), *lo = state_.lo.data() + from, *hi = state_.hi.data() + from;
      const index_t unlike = state_.unlike[problem_];
      for (index_t v = 0; v < variables_; ++v) {
        double bound = b[v] == 0 ? 0.0 : b[v] >= hi[v] ? hi_[v] : b[v] <= lo[v] ? lo_[v] : b[v];
        if (like_ >= 0) bound += of(like_)[v] - of(unlike)[v];
        beta_[v] = std::clamp(bound, lo_[v], hi_[v]);
      }
    }
    const double* of(index_t p) const { return family_.beta(p); }

    double coef(const double* b, index_t p) const { return state_.halves == 2 ? b[p] + b[p + m_] : b[p]; }

    // f = s · (parent's f) + K (β − s · parent's β), with the s of the fewest changes; or from nothing, if that is less.
    void follow(index_t parent) {
      const double *b = of(parent), *f = family_.f(parent);
      index_t best = 0;
      double scale = 0;
      for (index_t p = 0; p < m_; ++p) best += coef(beta_, p) != 0;
      for (double s : {1.0, state_.ratio[problem_]}) {
        index_t count = 0;
        for (index_t p = 0; p < m_; ++p) count += different(coef(beta_, p), s * coef(b, p));
        if (count < best) best = count, scale = s;
      }
      if (scale == 0) return sum_up();
      list_.clear();
      weight_.clear();
      const index_t unlike = state_.unlike[problem_];
      for (index_t p = 0; p < m_; ++p) {
        f_[p] = scale * f[p];
        double change = coef(beta_, p) - scale * coef(b, p);
        if (like_ >= 0) {
          f_[p] += family_.f(like_)[p] - family_.f(unlike)[p];
          change -= coef(of(like_), p) - coef(of(unlike), p);
        }
        if (std::abs(change) > 1e-15 * std::abs(coef(beta_, p))) add(p, change);
      }
      family_.begun_moved_[problem_] = index_t(list_.size());
      apply();
    }
    // Where the scale has only rounded; what is left of it is added all the same, as it is not exactly 0.
    static bool different(double a, double b) { return std::abs(a - b) > 1e-14 * std::abs(a); }

    void sum_up() {
      std::fill(f_, f_ + m_, 0.0);
      list_.clear();
      weight_.clear();
      for (index_t p = 0; p < m_; ++p)
        if (const double c = coef(beta_, p)) add(p, c);
      family_.begun_moved_[problem_] = index_t(list_.size());
      apply();
    }

    // ---- f -----------------------------------------------------------------------------------------------------------

    index_t sample(index_t p) const {
      const index_t first = range_[1] - range_[0];
      return p < first ? range_[0] + p : range_[2] + p - first;
    }
    void add(index_t p, double weight) {
      list_.push_back(family_.gram_.row(sample(p)));
      weight_.push_back(weight * family_.gram_.unit());
    }
    // f += what was listed.
    void apply() {
      const index_t first = range_[1] - range_[0];
      if (list_.empty()) return;
      some_ = list_;
      for (auto& row : some_) row += range_[0];
      add_weighted(some_.data(), weight_.data(), index_t(some_.size()), first, f_);
      if (m_ == first) return;
      some_ = list_;
      for (auto& row : some_) row += range_[2];
      add_weighted(some_.data(), weight_.data(), index_t(some_.size()), m_ - first, f_ + first);
    }

    // ---- a turn ------------------------------------------------------------------------------------------------------

    void turn() {
      const double violation = look();
      if (violation <= family_.limits_.tol) return finish(Stage::converged);
      if (!(violation < std::numeric_limits<double>::infinity()) || idle_ >= 3) return finish(Stage::stalled);
      if (family_.steps_[problem_] >= family_.limits_.steps) return finish(Stage::steps);
      if (violation < kBetter * least_) {
        least_ = violation;
        stale_ = 0;
      } else if (++stale_ > kPatience) {
        return finish(Stage::stalled);
      }
      const bool whole = select();
      const double tol = whole ? 0.5 * family_.limits_.tol : std::max(0.5 * family_.limits_.tol, kInner * violation);
      double largest = 0;
      for (index_t v : set_) largest = std::max(largest, std::abs(score_[v] - middle(v)));
      const bool fine = tol < kFine * largest;
      if (whole)
        fine ? solve_whole<double>(tol) : solve_whole<float>(tol);
      else
        fine ? solve(double_, tol) : solve(float_, tol);
      ++family_.turns_[problem_];
      move();
    }

    template <class T>
    void solve(KeptTile<T>& tile, double tol) {
      tile.arrange(set_, family_.gram_, [&](index_t v) { return sample(v % m_); });
      TileRows<T> rows{tile.data(), tile.ld()};
      inner<T>(rows, tol);
    }
    template <class T>
    void solve_whole(double tol) {
      WholeRows<T> rows(family_.gram_, range_, state_.halves);
      inner<T>(rows, tol);
    }
    template <class T, class Rows>
    void inner(Rows& rows, double tol) {
      read();
      const index_t q = index_t(set_.size());
      InnerSmo<T, Rows> smo(rows, q, b_.data(), l_.data(), h_.data(), s_.data(), g_.data(), state_.groups,
                            all_);
      family_.steps_[problem_] += smo.run(tol, 200 * q).steps;
    }

    // The largest score that can rise and the smallest that can fall, of each group; the violation.
    double look() {
      double worst = 0, nothing = 0;
      for (int g = 0; g < 2; ++g) top_[g] = -kInf, bottom_[g] = kInf;
      score_.resize(variables_);
      for (index_t h = 0; h < state_.halves; ++h)
        for (index_t p = 0; p < m_; ++p) {
          const index_t v = h * m_ + p;
          const double s = score_[v] = center_[v] - f_[p];
          if (lo_[v] == hi_[v]) continue;
          const int g = state_.groups < 2 ? 0 : group_[v];
          nothing += s - s;
          if (beta_[v] < hi_[v]) top_[g] = std::max(top_[g], s);
          if (beta_[v] > lo_[v]) bottom_[g] = std::min(bottom_[g], s);
        }
      if (nothing != 0) return kInf;  // what is not a number
      if (state_.groups == 0) return std::max({worst, top_[0], -bottom_[0]});
      for (int g = 0; g < state_.groups; ++g)
        if (std::isfinite(top_[g]) && std::isfinite(bottom_[g])) worst = std::max(worst, top_[g] - bottom_[g]);
      return worst;
    }

    // Whether the set is all variables.
    bool select() {
      choice_.begin();
      for (index_t v = 0; v < variables_; ++v) {
        if (lo_[v] == hi_[v]) continue;
        const bool up = beta_[v] < hi_[v], low = beta_[v] > lo_[v];
        const double rise = up ? score_[v] - middle(v) : -kInf, fall = low ? middle(v) - score_[v] : -kInf;
        choice_.offer(v, rise, fall, state_.groups < 2 ? 0 : group_[v]);
      }
      return choice_.choose(variables_, set_);
    }

    // The state of the set; scores from the middle of their group's, whose differences alone count: so float tells them apart.
    void read() {
      const index_t q = index_t(set_.size());
      for (auto* a : {&b_, &l_, &h_, &s_}) a->resize(q);
      g_.resize(q);
      for (index_t i = 0; i < q; ++i) {
        const index_t v = set_[i];
        b_[i] = beta_[v];
        l_[i] = lo_[v];
        h_[i] = hi_[v];
        s_[i] = score_[v] - middle(v);
        g_[i] = group_[v];
      }
      before_ = s_;
    }
    double middle(index_t v) const {
      const int g = state_.groups < 2 ? 0 : group_[v];
      if (state_.groups == 0) return 0.0;
      return std::isfinite(top_[g]) && std::isfinite(bottom_[g]) ? 0.5 * (top_[g] + bottom_[g]) : score_[v];
    }

    void move() {
      list_.clear();
      weight_.clear();
      double gain = 0;
      for (std::size_t i = 0; i < set_.size(); ++i) {
        const index_t v = set_[i];
        gain += (b_[i] - beta_[v]) * (before_[i] + s_[i]);
        b_[i] -= std::exchange(beta_[v], b_[i]);  // from here on: the change
      }
      change_.clear();
      for (std::size_t i = 0; i < set_.size(); ++i)
        if (b_[i] != 0) change_.push_back({set_[i] % m_, b_[i]});
      if (state_.halves == 2) {
        if (state_.groups < 2) one_half_each();
        std::sort(change_.begin(), change_.end());
      }
      for (std::size_t i = 0; i < change_.size();) {
        double sum = 0;
        const index_t p = change_[i].first;
        for (; i < change_.size() && change_[i].first == p; ++i) sum += change_[i].second;
        if (sum != 0) add(p, sum);
      }
      idle_ = gain > 0 && !list_.empty() ? 0 : idle_ + 1;
      family_.moved_[problem_] += index_t(list_.size());
      apply();
    }
    // a and a* both positive gain nothing, and hide their difference.
    void one_half_each() {
      for (index_t v : set_) {
        const index_t p = v % m_;
        const double common = std::min(beta_[p], -beta_[p + m_]);
        if (!(common > 0)) continue;
        const double total = beta_[p] + beta_[p + m_];
        beta_[p] = std::max(total, 0.0);
        beta_[p + m_] = std::min(total, 0.0);
      }
    }

    // f of samples of other classes: by the rows of all coefficients, over all samples, or by the rows of the extra samples,
    // over those of the problem; whichever is less.
    void sum_extra() {
      const index_t p = problem_, from = state_.extra_at[p], count = state_.extra_at[p + 1] - from;
      if (count == 0) return;
      const Gram& gram = family_.gram_;
      double* out = family_.extra_f_.data() + from;
      list_.clear();
      weight_.clear();
      for (index_t i = 0; i < m_; ++i)
        if (const double c = coef(beta_, i)) add(i, c);
      if (index_t(list_.size()) * gram.size() <= count * m_) {
        everyone_.assign(gram.size(), 0.0);
        add_weighted(list_.data(), weight_.data(), index_t(list_.size()), gram.size(), everyone_.data());
        for (index_t i = 0; i < count; ++i) out[i] = everyone_[state_.extra[from + i]];
        return;
      }
      const index_t first = range_[1] - range_[0];
      everyone_.resize(m_);
      for (index_t i = 0; i < m_; ++i) everyone_[i] = coef(beta_, i) * gram.unit();
      for (index_t i = 0; i < count; ++i) {
        const std::int32_t* row = gram.row(state_.extra[from + i]);
        out[i] = dot(row + range_[0], everyone_.data(), first) + dot(row + range_[2], everyone_.data() + first, m_ - first);
      }
    }

    void finish(Stage how) {
      const index_t p = problem_;
      sum_extra();
      score_.resize(variables_);
      for (index_t v = 0; v < variables_; ++v) score_[v] = f_[v % m_];
      const ProblemView view{variables_, center_, lo_, hi_, beta_, score_.data(), group_, state_.groups};
      family_.judged_[p] = judge(view, state_.target.data() + p * state_.groups, [](index_t) { return 1.0; });
      problem_ = -1;
      family_.stage_[p].store(how, std::memory_order_release);
      ++family_.done_;
    }

    static constexpr double kInf = std::numeric_limits<double>::infinity();
    Family& family_;
    const FamilyState& state_;
    index_t problem_ = -1, like_ = -1, m_ = 0, variables_ = 0;
    int idle_ = 0, stale_ = 0;
    double least_ = 0;  // violation so far, and turns that have not bettered it
    const double *center_ = nullptr, *lo_ = nullptr, *hi_ = nullptr;
    double *beta_ = nullptr, *f_ = nullptr;
    const std::int8_t* group_ = nullptr;
    const index_t* range_ = nullptr;
    double top_[2], bottom_[2];
    std::vector<double> score_, b_, l_, h_, s_, before_, weight_, everyone_;
    std::vector<std::int8_t> g_;
    SetChoice choice_;
    FreeStep all_;
    std::vector<index_t> set_;
    KeptTile<float> float_;
    KeptTile<double> double_;
    std::vector<const std::int32_t*> list_, some_;
    std::vector<std::pair<index_t, double>> change_;
    std::vector<std::pair<double, index_t>> order_;
  };

  const Gram& gram_;
  const FamilyState& state_;
  std::vector<index_t> order_;
  FamilyLimits limits_;
  std::vector<double> beta_, f_, extra_f_;
  std::vector<std::atomic<Stage>> stage_;
  std::vector<index_t> steps_, turns_, moved_, begun_moved_;
  std::vector<double> seconds_;
  std::vector<Judged> judged_;
  std::mutex lock_;
  index_t first_ = 0;  // in order_: what is before it has begun
  std::atomic<index_t> done_{0};
  Clock::time_point end_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace maxmargin
