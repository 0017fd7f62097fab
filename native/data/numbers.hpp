// Numbers as text, both ways and exact: reading rounds correctly, writing gives the shortest text that reads back equal.
//
// Read are [+-] digits [. digits] [e [+-] digits] with a digit on at least one side of the point, and [+-] inf, infinity
// or nan in any case. Too large is inf and too small is 0, as in Python. No hexadecimal, no underscores.
//
// A reader never looks past the first byte that cannot belong to its number. Texts end with a line feed, so nothing
// else bounds it.
#pragma once
#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>
#ifndef __cpp_lib_to_chars  // older standard libraries convert integers only
#include <locale>
#include <sstream>
#include <string>
#endif

namespace maxmargin {

inline bool is_digit(char c) { return unsigned(c) - '0' < 10u; }
inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }

namespace number_detail {

// The powers of ten that a double holds exactly.
constexpr double kTens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                            1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr std::int64_t kFarExponent = 1000000000000000;  // more than the digits of any text could make up for

// [begin, end) is a number without sign, with `whole` digits before the point.
template <class T>
T convert(const char* begin, const char* end, std::int64_t whole, std::int64_t exponent) {
  T value = 0;
#ifdef __cpp_lib_to_chars
  const bool fits = std::from_chars(begin, end, value).ec != std::errc::result_out_of_range;
#else
  std::istringstream in(std::string(begin, end));
  in.imbue(std::locale::classic());
  in >> value;
  const bool fits = !in.fail();
#endif
  if (fits) return value;
  // Out of range, and nobody says on which side. Worked example: 0.0012 has its first digit at 4, whole = 1; it is
  // 0.12·10^(1 − 4 + 1).
  const std::int64_t at = std::find_if(begin, end, [](char c) { return c != '0' && c != '.'; }) - begin;
  const std::int64_t magnitude = exponent + whole - at + (at > whole);
  return magnitude > 0 ? std::numeric_limits<T>::infinity() : T(0);
}

// Whether d, a correctly rounded double, lies in the middle of two floats: the number itself may lie on either side.
inline bool between_floats(double d) {
  std::uint64_t bits;
  std::memcpy(&bits, &d, sizeof bits);
  return (bits & 0x1fffffff) == 0x10000000;
}

inline bool word(const char* p, const char* lower_case) {
  for (; *lower_case; ++p, ++lower_case)
    if ((*p | 0x20) != *lower_case) return false;
  return true;
}

template <class T>
const char* special(const char* p, T& value) {
  value = std::numeric_limits<T>::quiet_NaN();
  if (word(p, "nan")) return p + 3;
  value = std::numeric_limits<T>::infinity();
  if (word(p, "inf")) return p + (word(p, "infinity") ? 8 : 3);
  return nullptr;
}

// A number without sign.
template <class T>
const char* read_magnitude(const char* p, T& value) {
  const char* const begin = p;
  std::uint64_t digits = 0;  // overflows only past 19 digits
  while (is_digit(*p)) digits = 10 * digits + unsigned(*p++ - '0');
  const std::int64_t whole = p - begin;
  std::int64_t fraction = 0;
  if (*p == '.') {
    const char* const point = ++p;
    while (is_digit(*p)) digits = 10 * digits + unsigned(*p++ - '0');
    fraction = p - point;
  }
  if (whole + fraction == 0) return special(begin, value);
  std::int64_t exponent = 0;
  if ((*p | 0x20) == 'e') {
    const char* q = p + 1;
    const bool below = *q == '-';
    q += below || *q == '+';
    if (is_digit(*q)) {  // else the e is no part of the number
      for (; is_digit(*q); ++q)
        if (exponent < kFarExponent) exponent = 10 * exponent + (*q - '0');
      if (below) exponent = -exponent;
      p = q;
    }
  }
  const std::int64_t scale = exponent - fraction;
  // Digits and power exact, so one operation rounds once (Clinger 1990), where doubles are not computed in more bits.
  if (FLT_EVAL_METHOD == 0 && whole + fraction <= 19 && digits <= (1ull << 53) && scale >= -22 && scale <= 22) {
    const double d = scale < 0 ? double(digits) / kTens[-scale] : double(digits) * kTens[scale];
    if (sizeof(T) == sizeof(double) || !between_floats(d)) {  // from 1e-22 to 1e38: never a subnormal float, nor inf
      value = T(d);
      return p;
    }
  }
  value = convert<T>(begin, p, whole, exponent);
  return p;
}

}  // namespace number_detail

// The number that begins at p; returns the byte after it, or nullptr if there is none.
template <class T>
const char* read_number(const char* p, T& value) {
  const bool negative = *p == '-';
  p = number_detail::read_magnitude(p + (negative || *p == '+'), value);
  if (negative) value = -value;
  return p;
}

constexpr std::size_t kNumberRoom = 32;  // bytes that any number or 64-bit integer fits: -2.2250738585072014e-308 has 24

template <class T>
char* write_number(char* out, T value) {
  constexpr double kWhole = 1e15;  // whole numbers below are written without exponent or point, and quickly
  if (std::isnan(value)) return std::copy_n("nan", 3, out);
  if (std::abs(value) < T(kWhole) && std::trunc(value) == value && !(value == 0 && std::signbit(value)))
    return std::to_chars(out, out + kNumberRoom, std::int64_t(value)).ptr;
#ifdef __cpp_lib_to_chars
  return std::to_chars(out, out + kNumberRoom, value).ptr;
#else
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(std::numeric_limits<T>::max_digits10);
  text << value;
  const std::string written = text.str();
  return std::copy(written.begin(), written.end(), out);
#endif
}

}  // namespace maxmargin
