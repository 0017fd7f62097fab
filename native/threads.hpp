// Threads: every entry point takes their number; nothing is read from or written to OpenMP's global settings.
#pragma once
#ifdef _OPENMP
#include <omp.h>
#else
inline int omp_get_thread_num() { return 0; }
inline int omp_get_max_threads() { return 1; }
#endif
