// Vectors of the widest registers of the level this file is compiled for, in the compiler's own vector types.
//
// Conventions: Vec<T> is unaligned-safe when loaded through load(); a comparison gives IVec<T> lanes of 0 or -1.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace maxmargin {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
struct Simd;
template <>
struct Simd<float> {
  typedef float Vec __attribute__((vector_size(kVectorBytes)));
  typedef std::int32_t IVec __attribute__((vector_size(kVectorBytes)));
  using Int = std::int32_t;
};
template <>
struct Simd<double> {
  typedef double Vec __attribute__((vector_size(kVectorBytes)));
  typedef std::int64_t IVec __attribute__((vector_size(kVectorBytes)));
  using Int = std::int64_t;
};

template <class T>
using Vec = typename Simd<T>::Vec;
template <class T>
using IVec = typename Simd<T>::IVec;
template <class T>
constexpr int kLanes = kVectorBytes / int(sizeof(T));

template <class T>
inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof v);
}
// To memory past the caches, for what will not be read again soon: p aligned to whole vectors, a cache line's vectors one
// after the other; streamed() before another thread may read them.
#if defined(__AVX__) && !defined(__clang__)
#ifdef __AVX512F__
inline void stream(float* p, Simd<float>::Vec v) { __builtin_ia32_movntps512(p, v); }
inline void stream(double* p, Simd<double>::Vec v) { __builtin_ia32_movntpd512(p, v); }
#else
inline void stream(float* p, Simd<float>::Vec v) { __builtin_ia32_movntps256(p, v); }
inline void stream(double* p, Simd<double>::Vec v) { __builtin_ia32_movntpd256(p, v); }
#endif
inline void streamed() { __builtin_ia32_sfence(); }
#else
template <class T>
inline void stream(T* p, Vec<T> v) {
  store(p, v);
}
inline void streamed() {}
#endif
template <class T>
inline Vec<T> splat(T x) {
  return x - Vec<T>{};
}

inline bool any(Simd<float>::IVec m) {
#if defined(__AVX__) && !defined(__AVX512F__)
  return __builtin_ia32_movmskps256((Simd<float>::Vec)m) != 0;
#elif defined(__AVX512F__) && !defined(__clang__)
  typedef int Lanes __attribute__((vector_size(64)));
  return __builtin_ia32_ptestmd512((Lanes)m, (Lanes)m, (unsigned short)-1) != 0;
#else
  std::int64_t part[kVectorBytes / 8], all = 0;
  std::memcpy(part, &m, sizeof m);
  for (auto p : part) all |= p;
  return all != 0;
#endif
}
#if defined(__AVX512F__) && !defined(__clang__)
inline bool any(Simd<double>::IVec m) {
  typedef long long Lanes __attribute__((vector_size(64)));
  return __builtin_ia32_ptestmq512((Lanes)m, (Lanes)m, (unsigned char)-1) != 0;
}
#else
inline bool any(Simd<double>::IVec m) {
  std::int64_t all = 0;
  for (int i = 0; i < kVectorBytes / 8; ++i) all |= m[i];
  return all != 0;
}
#endif

// Transpose L vectors of L lanes in place: at distance h, each pair of vectors swaps the off-diagonal h × h blocks.
//   worked example, L = 2: (a0 a1), (b0 b1) → (a0 b0), (a1 b1)
#if defined(__clang__)
#define MAXMARGIN_SHUFFLE(a, b, mask) shuffle_lanes<T>(a, b, mask)
template <class T>
inline Vec<T> shuffle_lanes(Vec<T> a, Vec<T> b, IVec<T> mask) {
  Vec<T> out;
  for (int l = 0; l < kLanes<T>; ++l) out[l] = mask[l] < kLanes<T> ? a[mask[l]] : b[mask[l] - kLanes<T>];
  return out;
}
#else
#define MAXMARGIN_SHUFFLE(a, b, mask) __builtin_shuffle(a, b, mask)
#endif
template <class T>
inline void transpose(Vec<T>* rows) {
  constexpr int L = kLanes<T>;
#pragma GCC unroll 4
  for (int h = L / 2; h >= 1; h /= 2) {
    IVec<T> first{}, second{};
    for (int l = 0; l < L; ++l) {
      first[l] = (l & h) ? L + l - h : l;
      second[l] = (l & h) ? L + l : l + h;
    }
#pragma GCC unroll 16
    for (int r = 0; r < L; ++r) {
      if (r & h) continue;
      const Vec<T> a = rows[r], b = rows[r + h];
      rows[r] = MAXMARGIN_SHUFFLE(a, b, first);
      rows[r + h] = MAXMARGIN_SHUFFLE(a, b, second);
    }
  }
}

// Lane by lane; b where either is NaN. One instruction each, which compilers do not find by themselves.
template <class V>
inline V larger(V a, V b) {
  return a > b ? a : b;
}
template <class V>
inline V smaller(V a, V b) {
  return a < b ? a : b;
}
#if defined(__AVX__) && !defined(__AVX512F__)
inline Simd<float>::Vec larger(Simd<float>::Vec a, Simd<float>::Vec b) { return __builtin_ia32_maxps256(a, b); }
inline Simd<float>::Vec smaller(Simd<float>::Vec a, Simd<float>::Vec b) { return __builtin_ia32_minps256(a, b); }
inline Simd<double>::Vec larger(Simd<double>::Vec a, Simd<double>::Vec b) { return __builtin_ia32_maxpd256(a, b); }
inline Simd<double>::Vec smaller(Simd<double>::Vec a, Simd<double>::Vec b) { return __builtin_ia32_minpd256(a, b); }
#endif

// The same bits as another type.
template <class To, class From>
[[gnu::always_inline]] inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// e^x to about 1 ulp (float) or 2 ulp (double); 0 where it is below half the smallest normal number, finite above the
// largest argument. x = n ln 2 + r with |r| ≤ ln 2 / 2: adding 1.5·2^mantissa rounds x / ln 2 to the integer n in the low
// bits; 2^n of the smallest n is 0. A value V is a vector, with integers I in its lanes, or a single number: without
// branches and loops, so that the compiler makes vectors of the loop around it.
template <class V, class I>
struct ExpOfFloats {
  V shifted, r, q;
  static constexpr float more[] = {0.0416683875f, 0.1666652068f, 0.4999999345f};  // minimax of (e^r − 1 − r) / r², error 3e-9

  [[gnu::always_inline]] inline void begin(V x) {
    const V within = smaller(V{} + 88.0f, larger(V{} - 88.0f, x));
    shifted = within * 1.44269504f + 12582912.0f;
    const V n = shifted - 12582912.0f;
    r = (within - n * 0.693359375f) - n * -2.12194440e-4f;
    q = 0.0013814609f * r + 0.0083687103f;
  }
  [[gnu::always_inline]] inline void next(int step) { q = q * r + more[step]; }
  [[gnu::always_inline]] inline V end() const {
    const I power = (bits_as<I>(shifted) - 0x4b400000 + 127) << 23;
    return (q * (r * r) + r + 1.0f) * bits_as<V>(power);
  }
};

template <class V, class... C>
[[gnu::always_inline]] inline V horner(V r, V q, C... c) {
  ((q = q * r + c), ...);
  return q;
}

template <class V, class I>
[[gnu::always_inline]] inline V exp_of_doubles(V x) {
  const V within = smaller(V{} + 709.0, larger(V{} - 709.0, x));
  const V shifted = within * 1.4426950408889634 + 6755399441055744.0;
  const V n = shifted - 6755399441055744.0;
  const V r = (within - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
  // Taylor to r^13: the next term is below 5e-18
  const V q = horner(r, V{} + 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                     1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5);
  const I power = (bits_as<I>(shifted) - 0x4338000000000000 + 1023) << 52;
  return (q * (r * r) + r + 1.0) * bits_as<V>(power);
}

template <class V, class I>
[[gnu::always_inline]] inline V exp_of_floats(V x) {
  ExpOfFloats<V, I> e;
  e.begin(x);
  e.next(0);
  e.next(1);
  e.next(2);
  return e.end();
}

[[gnu::always_inline]] inline float exp(float x) { return exp_of_floats<float, std::int32_t>(x); }
[[gnu::always_inline]] inline double exp(double x) { return exp_of_doubles<double, std::int64_t>(x); }
inline Simd<float>::Vec exp(Simd<float>::Vec x) { return exp_of_floats<Simd<float>::Vec, Simd<float>::IVec>(x); }
inline Simd<double>::Vec exp(Simd<double>::Vec x) { return exp_of_doubles<Simd<double>::Vec, Simd<double>::IVec>(x); }

// `count` vectors in place, all of them step by step: the steps of one wait for each other, so that side by side they take
// little longer than one alone.
template <int count>
[[gnu::always_inline]] inline void exp_all(Simd<float>::Vec* x) {
  ExpOfFloats<Simd<float>::Vec, Simd<float>::IVec> e[count];
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) e[i].begin(x[i]);
#pragma GCC unroll 3
  for (int step = 0; step < 3; ++step)
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) e[i].next(step);
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) x[i] = e[i].end();
}
template <int count>
inline void exp_all(Simd<double>::Vec* x) {
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) x[i] = exp(x[i]);
}

// a * b + sum, rounded as in loops over vectors: once where the level has fma, else twice. Of a plain scalar sum the
// compiler may vectorise the products alone, and round differently.
template <class T>
inline T multiply_add(T a, T b, T sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, sum);
#else
  return a * b + sum;
#endif
}

}  // namespace maxmargin
