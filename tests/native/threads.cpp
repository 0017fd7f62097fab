// Drives native/base/threads.hpp hard: many short loops, loops of many callers at once, loops within loops, errors, forks.
// Prints what went wrong and returns 1, or nothing and 0. Compiled and run by tests/unit/test_threads.py.
#include "base/threads.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

using namespace maxmargin;

namespace {

void need(bool ok, const char* what) {
  if (ok) return;
  std::printf("%s\n", what);
  std::exit(1);
}

// Every item is visited exactly once, in slices of the size asked for.
void visits_each_once(index_t count, index_t size, int threads) {
  std::vector<int> seen(count, 0);
  for_slices(count, size, threads, [&](index_t begin, index_t end) {
    need(begin % size == 0 && end == std::min(begin + size, count), "a slice has other bounds than asked for");
    for (index_t i = begin; i < end; ++i) ++seen[i];
  });
  for (int s : seen) need(s == 1, "an item was left out or visited twice");
}

// Slots are below the number of threads, and no two threads hold one at a time: plain counters do not race.
void slots_are_private(index_t slices, int threads) {
  std::vector<index_t> done(threads, 0);
  for_slices(
      slices, 1, threads,
      [&](int slot) {
        need(0 <= slot && slot < threads, "a slot beyond the number of threads");
        return &done[slot];
      },
      [&](index_t* mine, index_t, index_t) { ++*mine; });
  index_t all = 0;
  for (index_t d : done) all += d;
  need(all == slices, "counts by slot do not add up");
}

double harmonic(index_t count, index_t size, int threads) {
  return sum_slices(count, size, threads, [&](index_t begin, index_t end) {
    double sum = 0;
    for (index_t i = begin; i < end; ++i) sum += 1 / double(i + 1);
    return sum;
  });
}

void errors_come_back(int threads) {
  for (index_t at : {0, 7, 99}) {
    bool caught = false;
    try {
      for_slices(100, 1, threads, [&](index_t i, index_t) {
        if (i == at) throw std::runtime_error("of a slice");
      });
    } catch (const std::runtime_error&) {
      caught = true;
    }
    need(caught, "an error in a slice was lost");
  }
}

void loops_in_loops(int threads) {
  std::vector<double> sums = map_slices(8, 1, threads, [&](index_t, index_t) { return harmonic(1000, 64, threads); });
  for (double s : sums) need(s == harmonic(1000, 64, 1), "an inner loop gives another sum");
}

void everything(int threads) {
  for (index_t count : {0, 1, 2, 63, 64, 65, 1000})
    for (index_t size : {1, 2, 64, 5000}) visits_each_once(count, size, threads);
  for (int repeat = 0; repeat < 50; ++repeat) slots_are_private(20, threads);
  for (index_t size : {1, 100, 4096})
    need(harmonic(10000, size, threads) == harmonic(10000, size, 1), "a sum depends on the number of threads");
  errors_come_back(threads);
  loops_in_loops(threads);
}

void callers_side_by_side() {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) callers.emplace_back([i] { everything(1 + i); });
  for (std::thread& t : callers) t.join();
}

// The child has no helpers of its own until it asks for them.
void in_a_fork() {
  everything(3);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a child that waits for threads it left behind would wait for ever
    everything(3);
    std::_Exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  need(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a loop in the child of a fork failed or hung");
}

// No helper can start: stacks of threads do not fit into the address space that is allowed.
void alone() {
  const rlimit room{rlim_t(64) << 20, rlim_t(64) << 20};
  need(setrlimit(RLIMIT_AS, &room) == 0, "setrlimit failed");
  pthread_attr_t large;
  pthread_attr_init(&large);
  pthread_attr_setstacksize(&large, std::size_t(256) << 20);
  pthread_setattr_default_np(&large);
  bool started = true;
  try {
    std::thread([] {}).join();
  } catch (const std::system_error&) {
    started = false;
  }
  need(!started, "a thread started where none should: this test shows nothing");
  everything(4);
}

}  // namespace

int main(int, char** argv) {
  if (!std::strcmp(argv[1], "alone")) alone();
  else if (!std::strcmp(argv[1], "fork")) in_a_fork();
  else {
    for (int threads : {1, 2, 3, 8}) everything(threads);
    callers_side_by_side();
  }
  return 0;
}
