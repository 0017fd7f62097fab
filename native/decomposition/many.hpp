// Many small QPs at once, each of two blocks of samples (pairs of classes): one problem per thread, the largest first.
//
//   minimise ½ βᵀKβ − cᵀβ    lo ≤ β ≤ hi,  Σ_group β fixed         per problem, as in part_state.hpp; f = Kβ, score = c − f
//   stop     violation ≤ tol with f summed anew in double; else another round; a round that moves nothing is a stall
//
// SMO over the variables of a problem, with kernel rows on demand: of a thousand samples a hundred or so ever move. After some
// steps those that are held at a bound are left out, and again; a round that ends without them ends with f of all. A row
// that is missing is computed together with those of the variables most likely to be wanted next, because several rows
// at a time cost little more than one. What a sample shares with its own block, K(i, block of i), is wanted by every
// problem that the block is in; those pieces are kept for all of them while there is room. Where problems will want most of
// their rows, all of K is computed beforehand, each value once (triangle.hpp): the steps, and every bit, are the same.
//
//   worked example: blocks A (3 samples), B (2), C (4); problem (A, C) has the row K(a₁, A) K(a₁, C), each piece padded to
//   whole panels: [a₁a₁ a₁a₂ a₁a₃ 0 … | a₁c₁ a₁c₂ a₁c₃ a₁c₄ 0 …]; the first piece serves (A, B) as well.
//
// run() returns after about the time that it is given, with problems half done where they are: progress, clocks and
// Ctrl-C live between the calls. One thread at a time works on a problem, so that nothing depends on how many there are.
// Where the time for all is limited, a problem that has had its share of it while others wait goes to the end of the
// queue: it keeps β and will need its rows again.
#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>

#include "decomposition/judged.hpp"
#include "decomposition/pair_rows.hpp"
#include "base/threads.hpp"

namespace maxmargin {

// How a problem stands: rounds, steps: it has had as many as it may.
enum class Progress : std::int8_t { waiting, running, converged, stalled, rounds, steps };

struct ManyLimits {
  double tol;
  index_t rounds, steps;  // per problem; a round ends after 200 steps per variable, if not by itself
  bool shrinking;
};

// What a run of many problems is given and gives back, samples of problem p at [offset[p], offset[p + 1]): those of its
// first block, then those of its second.
struct ManyState {
  std::vector<index_t> first, second, offset;  // second < 0: a problem of one block
  std::vector<double> center, lo, hi, beta, f;
  std::vector<std::int8_t> group;
  int groups;
};

template <class T>
class Many {
 public:
  Many(const Points<T>& points, std::vector<index_t> row, std::vector<index_t> end, ManyState state, ManyLimits limits,
       std::size_t cache_bytes, bool whole, int threads)
      : blocks_(points, std::move(row), std::move(end), cache_bytes, whole),
        state_(std::move(state)),
        limits_(limits),
        progress_(state_.first.size(), Progress::waiting),
        steps_(progress_.size(), 0),
        rounds_(progress_.size(), 0),
        rows_(progress_.size(), 0),
        queue_(progress_.size()) {
    std::iota(queue_.begin(), queue_.end(), index_t(0));
    std::stable_sort(queue_.begin(), queue_.end(), [&](index_t p, index_t q) { return size(p) > size(q); });
    std::vector<int> uses(blocks_.blocks(), 0);
    for (std::size_t p = 0; p < progress_.size(); ++p)
      for (index_t b : {state_.first[p], state_.second[p]})
        if (b >= 0 && ++uses[b] > 1) shared_ = true;
    for (int t = 0; t < std::max(1, threads); ++t) workers_.push_back(std::make_unique<Worker>(*this));
  }

  // Goes on for about so many seconds, of `left` that there are for all problems; how many are done.
  index_t run(double seconds, double left) {
    end_ = after(seconds);
    left_ = after(left);
    limited_ = left < kForever;
    while (!blocks_.prepare(int(workers_.size())))
      if (late()) return 0;
    auto work = [&](int, index_t w) { workers_[w]->advance(); };
    threading::share(index_t(workers_.size()), int(workers_.size()), work);
    return done_.load();
  }

  // Ends what is left with at most so many steps each, whatever time it takes.
  void finish(index_t steps) {
    limits_.steps = steps;
    blocks_.on_demand();
    run(kForever, kForever);
  }

  // What is known of the solutions: targets by problem and group, the magnitude of each sample.
  std::vector<Judged> judged(const double* target, const double* magnitude) const {
    std::vector<Judged> out(progress_.size());
    const ManyState& s = state_;
    auto one = [&](int, index_t p) {
      const index_t at = s.offset[p], first = blocks_.begin(s.first[p]), count = blocks_.count(s.first[p]);
      const index_t second = s.second[p] < 0 ? 0 : blocks_.begin(s.second[p]) - count;
      const ProblemView view{size(p), &s.center[at], &s.lo[at], &s.hi[at], &s.beta[at], &s.f[at], &s.group[at], s.groups};
      out[p] = judge(view, target + p * s.groups, [&](index_t v) { return magnitude[v + (v < count ? first : second)]; });
    };
    threading::share(index_t(out.size()), s.offset.back() < kOneThread ? 1 : int(workers_.size()), one);
    return out;
  }

  bool whole() const { return blocks_.all() != nullptr; }  // whether all of K is computed beforehand
  index_t samples() const { return blocks_.samples(); }
  const ManyState& state() const { return state_; }
  const std::vector<Progress>& progress() const { return progress_; }
  const std::vector<index_t>& steps() const { return steps_; }
  const std::vector<index_t>& rounds() const { return rounds_; }
  const std::vector<index_t>& rows() const { return rows_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr index_t kOneThread = 1 << 14;  // variables that one thread judges before another would have come
  static constexpr double kForever = 1e8;  // seconds: some years, which the clock can still count
  static constexpr double kTight = 0.9;  // of tol, by the scores that SMO keeps: what rounding may add
  static constexpr index_t kSlice = 4096;  // steps between two looks at the clock: a millisecond or so
  static constexpr index_t kLook = 64;     // steps after which variables are left out; a look takes as long as one of them
  static constexpr index_t kRound = 200;   // steps per variable, after which f is summed anew

  static Clock::time_point after(double seconds) {
    const std::chrono::duration<double> time(std::min(seconds, kForever));
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
  }
  index_t size(index_t p) const { return state_.offset[p + 1] - state_.offset[p]; }
  bool late() const { return Clock::now() >= end_; }

  // The next problem, and when it has had its share of the time; −1: none.
  index_t take(Clock::time_point& until) {
    std::lock_guard<std::mutex> hold(lock_);
    if (queue_.empty()) return -1;
    const index_t p = queue_.front();
    queue_.pop_front();
    const auto now = Clock::now();
    const double share = std::min(1.0, double(workers_.size()) / double(queue_.size() + 1));
    until = now + std::chrono::duration_cast<Clock::duration>((left_ - now) * share);
    return p;
  }
  bool others_wait() {
    std::lock_guard<std::mutex> hold(lock_);
    return !queue_.empty();
  }
  void put_back(index_t p) {
    std::lock_guard<std::mutex> hold(lock_);
    queue_.push_back(p);
  }

  // One thread's problem, its rows, and its SMO over positions (padding has β = lo = hi = 0).
  class Worker {
   public:
    explicit Worker(Many& many) : many_(many), rows_(many.blocks_), window_(rows_) {}

    void advance() {
      for (;;) {
        if (problem_ < 0 && !begin()) return;
        while (problem_ >= 0) {
          if (many_.late()) return;
          slice();
          if (problem_ >= 0 && many_.limited_ && Clock::now() >= until_ && many_.others_wait()) put_back();
        }
      }
    }

   private:
    bool begin() {
      problem_ = many_.take(until_);
      if (problem_ < 0) return false;
      ManyState& s = many_.state_;
      many_.progress_[problem_] = Progress::running;
      all_.reset();
      rows_.begin(s.first[problem_], s.second[problem_], many_.shared_);
      const index_t width = rows_.width();
      for (auto* a : {&center_, &lo_, &hi_, &beta_, &f_, &score_}) a->assign(width, 0.0);
      group_.assign(width, 0);
      place_.clear();
      for (index_t v = 0; v < width; ++v)
        if (rows_.member(v)) place_.push_back(v);
      const index_t from = s.offset[problem_];
      for (std::size_t i = 0; i < place_.size(); ++i) {
        center_[place_[i]] = s.center[from + i];
        lo_[place_[i]] = s.lo[from + i];
        hi_[place_[i]] = s.hi[from + i];
        beta_[place_[i]] = s.beta[from + i];
        group_[place_[i]] = s.group[from + i];
      }
      refresh();
      return true;
    }

    // f anew, in double, from the rows of what is not 0; then the next round, or the end.
    void refresh() {
      wanted_.clear();
      for (index_t v : place_)
        if (beta_[v] != 0 && !rows_.known(v)) wanted_.push_back(v);
      rows_.fetch(wanted_);
      row_.clear();
      weight_.clear();
      for (index_t v : place_)
        if (beta_[v] != 0) {
          row_.push_back(rows_.known(v));
          weight_.push_back(beta_[v]);
        }
      std::fill(f_.begin(), f_.end(), 0.0);
      add_weighted(row_.data(), weight_.data(), index_t(row_.size()), rows_.width(), f_.data());
      const double violation = measure();
      index_t& rounds = many_.rounds_[problem_];
      if (violation <= many_.limits_.tol) return finish(Progress::converged);
      if (many_.steps_[problem_] >= many_.limits_.steps) return finish(Progress::steps);
      if (rounds >= many_.limits_.rounds) return finish(Progress::rounds);
      if (!(violation < last_) && rounds > 2) return finish(Progress::stalled);  // NaN as well
      last_ = violation;
      ++rounds;
      round_steps_ = 0;
      for (index_t v = 0; v < rows_.width(); ++v) score_[v] = center_[v] - f_[v];
      active_ = place_;
      window_.open();
      smo_ = std::make_unique<Smo>(window_, rows_.width(), beta_.data(), lo_.data(), hi_.data(), score_.data(), group_.data(),
                                   many_.state_.groups, all_);
      whole_ = true;
      until_look_ = kLook;
    }

    // Some steps; a round is over when the scores that SMO keeps say so.
    void slice() {
      const index_t left = std::max<index_t>(0, many_.limits_.steps - many_.steps_[problem_]);
      const index_t most = std::min({left, kSlice, until_look_});
      const SmoReport r = smo_->run(kTight * many_.limits_.tol, most);
      many_.steps_[problem_] += r.steps;
      round_steps_ += r.steps;
      until_look_ -= r.steps;
      if (r.steps < most || left == 0 || round_steps_ >= kRound * many_.size(problem_)) {
        settle();
        refresh();
      } else if (until_look_ == 0) {
        until_look_ = kLook;
        if (many_.limits_.shrinking) shrink();
      }
    }

    // β and scores of a window go to their places.
    void settle() {
      if (whole_) return;
      for (std::size_t i = 0; i < active_.size(); ++i) {
        beta_[active_[i]] = some_.beta[i];
        score_[active_[i]] = some_.score[i];
      }
    }

    // Leaves out who is held at a bound by a score beyond the other side's extreme.
    void shrink() {
      settle();
      const int groups = many_.state_.groups;
      double top[2], bottom[2];
      for (int g = 0; g < 2; ++g) {
        bottom[g] = groups == 0 ? 0.0 : std::numeric_limits<double>::infinity();
        top[g] = -bottom[g];
      }
      const auto set = [&](index_t v) { return groups > 1 ? int(group_[v]) : 0; };
      for (index_t v : active_) {
        if (beta_[v] < hi_[v]) top[set(v)] = std::max(top[set(v)], score_[v]);
        if (beta_[v] > lo_[v]) bottom[set(v)] = std::min(bottom[set(v)], score_[v]);
      }
      kept_.clear();
      for (index_t v : active_)
        if ((beta_[v] < hi_[v] && score_[v] >= bottom[set(v)]) || (beta_[v] > lo_[v] && score_[v] <= top[set(v)]))
          kept_.push_back(v);
      if (10 * kept_.size() > 8 * active_.size() || kept_.size() < 2) return;
      active_.swap(kept_);
      some_.take(active_, beta_, lo_, hi_, score_, group_);
      window_.open(active_);
      smo_ = std::make_unique<Smo>(window_, index_t(active_.size()), some_.beta.data(), some_.lo.data(), some_.hi.data(),
                                   some_.score.data(), some_.group.data(), groups, all_);
      whole_ = false;
    }

    double measure() const {
      double worst = 0;
      for (int g = 0; g < std::max(1, many_.state_.groups); ++g) {
        double up = -std::numeric_limits<double>::infinity(), low = -up, nothing = 0;
        for (index_t v : place_) {
          if (many_.state_.groups > 1 && group_[v] != g) continue;
          const double score = center_[v] - f_[v];
          nothing += score - score;  // NaN for ever, if it is not a finite number
          if (beta_[v] < hi_[v]) up = std::max(up, score);
          if (beta_[v] > lo_[v]) low = std::min(low, score);
        }
        const double violation = many_.state_.groups == 0 ? std::max(up, -low) : up - low;
        if (nothing != 0) return nothing;
        if (std::isfinite(violation) || many_.state_.groups == 0) worst = std::max(worst, violation);
      }
      return worst;
    }

    void keep() {
      ManyState& s = many_.state_;
      const index_t from = s.offset[problem_];
      for (std::size_t i = 0; i < place_.size(); ++i) {
        s.beta[from + i] = beta_[place_[i]];
        s.f[from + i] = f_[place_[i]];
      }
    }
    void put_back() {
      settle();
      keep();
      many_.progress_[problem_] = Progress::waiting;
      many_.put_back(problem_);
      leave();
    }
    void finish(Progress how) {
      keep();
      many_.progress_[problem_] = how;
      ++many_.done_;
      leave();
    }
    void leave() {
      many_.rows_[problem_] += rows_.rows();
      problem_ = -1;
      last_ = std::numeric_limits<double>::infinity();
      smo_.reset();
    }

    using Smo = InnerSmo<T, WindowRows<T>>;
    // The state of some variables.
    struct Some {
      std::vector<double> beta, lo, hi, score;
      std::vector<std::int8_t> group;
      void take(const std::vector<index_t>& at, const std::vector<double>& b, const std::vector<double>& l,
                const std::vector<double>& h, const std::vector<double>& s, const std::vector<std::int8_t>& g) {
        for (auto* a : {&beta, &lo, &hi, &score}) a->resize(at.size());
        group.resize(at.size());
        for (std::size_t i = 0; i < at.size(); ++i) {
          beta[i] = b[at[i]];
          lo[i] = l[at[i]];
          hi[i] = h[at[i]];
          score[i] = s[at[i]];
          group[i] = g[at[i]];
        }
      }
    };
    Many& many_;
    index_t problem_ = -1;
    index_t round_steps_ = 0;
    Clock::time_point until_;
    double last_ = std::numeric_limits<double>::infinity();
    PairRows<T> rows_;
    WindowRows<T> window_;
    FreeStep all_;
    std::unique_ptr<Smo> smo_;
    Some some_;                      // what smo_ works on, unless that is the whole problem
    bool whole_ = true;
    index_t until_look_ = 0;         // steps
    std::vector<index_t> active_, kept_;
    std::vector<double> center_, lo_, hi_, beta_, f_, score_, weight_;
    std::vector<std::int8_t> group_;
    std::vector<index_t> place_, wanted_;
    std::vector<const T*> row_;
  };

  BlockRows<T> blocks_;
  ManyState state_;
  ManyLimits limits_;
  bool shared_ = false;  // whether a block is in more than one problem
  std::vector<Progress> progress_;
  std::vector<index_t> steps_, rounds_, rows_;  // of each problem
  std::mutex lock_;
  std::deque<index_t> queue_;
  std::atomic<index_t> done_{0};
  Clock::time_point end_, left_;
  bool limited_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace maxmargin
