// Which x86-64 level this processor runs. Compiled for the baseline, so that asking is always safe.
#include <nanobind/nanobind.h>

static const char* level() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return "v4";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return "v3";
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) return "v2";
#endif
  return "portable";
}

NB_MODULE(_cpu, m) { m.def("level", &level, "x86-64 level of this processor: v2, v3, v4, or portable."); }
