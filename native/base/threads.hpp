// Loops over samples, shared between threads: fixed slices, handed out one by one to whoever comes.
//
// The thread that calls always works itself, and waits at the end only for helpers that are in the middle of a slice. So
// nothing is lost or late when fewer threads come than were asked for: on a busy machine, in a container that allows no
// more threads, after a fork. Slices are cut by the size of the work, never by the number of threads, and what they give
// is put together in their order: results have the same bits for any number of threads.
//
// Helpers are threads of our own and not OpenMP's: a team of OpenMP waits for its slowest member at the end of every
// loop, whether or not that one had anything to do, and hangs in the child of a fork.
#pragma once
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/matrix.hpp"

namespace maxmargin {

// A slice worth handing over, in multiplications: some 50 µs, which is about what it takes to wake a thread that sleeps.
constexpr index_t kSliceWork = index_t(1) << 17;

// Items per slice when each costs `work` multiplications: a multiple of `unit`, and slices of about equal size.
inline index_t slice_size(index_t count, index_t work, index_t unit = 1) {
  const index_t most = std::max<index_t>(1, kSliceWork / std::max<index_t>(1, work));
  const index_t slices = std::max<index_t>(1, (count + most - 1) / most);
  const index_t size = (count + slices - 1) / slices;
  return std::max<index_t>(1, (size + unit - 1) / unit) * unit;
}

namespace threading {

// Waits for `done` without sleeping for as long as a wake-up would take; whether it came true.
template <class Done>
bool spin(Done&& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// One loop that is shared out; it lives on the stack of the thread that called.
class Loop {
 public:
  using Call = void (*)(void* body, int slot, index_t slice);
  Loop(index_t slices, Call call, void* body) : slices_(slices), call_(call), body_(body) {}

  // Take slices until none is left. `slot` tells the threads of this loop apart.
  void work(int slot) {
    try {
      for (index_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < slices_;) call_(body_, slot, i);
    } catch (...) {
      next_.store(slices_, std::memory_order_relaxed);  // nobody begins another slice
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }
  // Once nobody is at work any more.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  friend class Helpers;
  const index_t slices_;
  const Call call_;
  void* const body_;
  std::atomic<index_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  int wanted_ = 0, slots_ = 1;  // places for helpers; slots given out, the caller's is 0. Both under Helpers' mutex
  std::atomic<int> busy_{0};    // helpers at work; changed under the mutex
  std::condition_variable finished_;
};

// The process's helpers. They serve any loop of any thread, sleep in between, and are never joined: like the threads of
// any runtime they end with the process.
class Helpers {
 public:
  static Helpers& shared() {
    static const int at_fork = pthread_atfork(nullptr, nullptr, [] { shared_.store(nullptr); });  // threads stay behind
    (void)at_fork;
    Helpers* here = shared_.load(std::memory_order_acquire);
    if (here) return *here;
    auto fresh = std::make_unique<Helpers>();
    return shared_.compare_exchange_strong(here, fresh.get()) ? *fresh.release() : *here;
  }

  // Runs the loop with at most `helpers` others; returns when all is done.
  void run(Loop& loop, int helpers) {
    int wake = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      asked_ += helpers;
      hire(std::max(helpers, std::min(asked_, cores_ - 1)));  // callers side by side share helpers beyond the cores
      loop.wanted_ = std::min(helpers, hired_);
      if (loop.wanted_ > 0) {
        open_.push_back(&loop);
        offers_.fetch_add(1, std::memory_order_relaxed);
      }
      wake = std::min(asleep_, loop.wanted_ - spinning_.load(std::memory_order_relaxed));
    }
    for (; wake > 0; --wake) work_.notify_one();
    loop.work(0);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      asked_ -= helpers;
      close(loop);
    }
    spin([&] { return loop.busy_.load(std::memory_order_relaxed) == 0; });
    std::unique_lock<std::mutex> lock(mutex_);  // also when nobody is busy: the last one may still hold the loop
    loop.finished_.wait(lock, [&] { return loop.busy_.load(std::memory_order_relaxed) == 0; });
  }

 private:
  static constexpr int kMost = 256;  // helpers: a bound on what a slip in n_jobs can start

  // Under the mutex. Signals go to the threads that were there before: Python listens on its main thread.
  void hire(int wanted) {
    if (hired_ >= std::min(wanted, kMost)) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; hired_ < std::min(wanted, kMost); ++hired_) std::thread([this] { serve(); }).detach();
    } catch (const std::exception&) {  // no more threads are allowed: those that are there do the work
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Under the mutex: no helper joins from now on.
  void close(Loop& loop) {
    const auto at = std::find(open_.begin(), open_.end(), &loop);
    if (at == open_.end()) return;
    open_.erase(at);
    offers_.fetch_sub(1, std::memory_order_relaxed);
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (open_.empty()) {
        lock.unlock();
        spinning_.fetch_add(1, std::memory_order_relaxed);
        spin([&] { return offers_.load(std::memory_order_relaxed) > 0; });
        lock.lock();
        spinning_.fetch_sub(1, std::memory_order_relaxed);
        ++asleep_;
        work_.wait(lock, [&] { return !open_.empty(); });
        --asleep_;
      }
      Loop& loop = *open_.front();
      const int slot = loop.slots_++;
      loop.busy_.fetch_add(1, std::memory_order_relaxed);
      if (--loop.wanted_ == 0) close(loop);
      lock.unlock();
      loop.work(slot);
      lock.lock();
      if (loop.busy_.fetch_sub(1, std::memory_order_relaxed) == 1) loop.finished_.notify_one();
    }
  }

  static inline std::atomic<Helpers*> shared_{nullptr};
  const int cores_ = int(std::thread::hardware_concurrency());
  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<Loop*> open_;  // with places left, the oldest first
  int hired_ = 0, asleep_ = 0, asked_ = 0;  // the last: by all loops that run now
  std::atomic<int> offers_{0}, spinning_{0};  // size of open_; helpers about to look again
};

// body(slot, slice) for every slice of [0, slices), slot < max(1, threads).
template <class Body>
void share(index_t slices, int threads, Body& body) {
  const int helpers = int(std::min<index_t>(threads, slices)) - 1;
  if (helpers <= 0) {
    for (index_t i = 0; i < slices; ++i) body(0, i);
    return;
  }
  Loop loop(slices, [](void* b, int slot, index_t i) { (*static_cast<Body*>(b))(slot, i); }, &body);
  Helpers::shared().run(loop, helpers);
  loop.rethrow();
}

}  // namespace threading

// body(begin, end) for the slices [0, size), [size, 2 size), … of [0, count).
template <class Body>
void for_slices(index_t count, index_t size, int threads, Body&& body) {
  auto one = [&](int, index_t i) { body(i * size, std::min((i + 1) * size, count)); };
  threading::share((count + size - 1) / size, threads, one);
}

// The same with memory for each thread at work: body(own, begin, end), own = make(slot) at its first slice. Slots are
// numbered from 0 and fewer than `threads`, so memory that outlives the loop can be kept by slot.
template <class Make, class Body>
void for_slices(index_t count, index_t size, int threads, Make&& make, Body&& body) {
  using Own = decltype(make(0));
  std::vector<std::unique_ptr<Own>> own(std::max(1, threads));
  auto one = [&](int slot, index_t i) {
    if (!own[slot]) own[slot] = std::make_unique<Own>(make(slot));
    body(*own[slot], i * size, std::min((i + 1) * size, count));
  };
  threading::share((count + size - 1) / size, threads, one);
}

// What body(begin, end) returns for each slice, in their order.
template <class Body>
auto map_slices(index_t count, index_t size, int threads, Body&& body) {
  std::vector<decltype(body(index_t(0), index_t(0)))> out((count + size - 1) / size);
  auto one = [&](int, index_t i) { out[i] = body(i * size, std::min((i + 1) * size, count)); };
  threading::share(index_t(out.size()), threads, one);
  return out;
}

// Σ of body(begin, end) over the slices.
template <class Body>
auto sum_slices(index_t count, index_t size, int threads, Body&& body) {
  decltype(body(index_t(0), index_t(0))) sum{};
  for (const auto& part : map_slices(count, size, threads, body)) sum += part;
  return sum;
}

}  // namespace maxmargin
