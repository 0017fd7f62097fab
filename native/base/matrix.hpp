// Read-only views of a user's samples: dense row-major or CSR, float or double values, 32- or 64-bit indices.
// Nothing here owns memory; the bindings keep the NumPy arrays alive for as long as a Matrix lives.
#pragma once
#include <cstdint>
#include <variant>

namespace maxmargin {

using index_t = std::int64_t;

template <class T>
struct Dense {
  static constexpr bool dense = true;
  using value_type = T;
  const T* data;
  index_t rows, cols;
  index_t stride;  // elements from one row to the next
  const T* row(index_t i) const { return data + i * stride; }
};

template <class T, class I>
struct Csr {
  static constexpr bool dense = false;
  using value_type = T;
  const T* data;
  const I* indices;
  const I* indptr;
  index_t rows, cols;
};

// Stored values of all rows: what a pass has to read.
template <class T>
index_t stored(const Dense<T>& x) {
  return x.rows * x.cols;
}
template <class T, class I>
index_t stored(const Csr<T, I>& x) {
  return index_t(x.indptr[x.rows] - x.indptr[0]);
}
// The mean of a row's stored values, and one more for the row itself: what it costs to read one.
template <class View>
index_t per_row(const View& x) {
  return x.rows ? stored(x) / x.rows + 1 : 1;
}

using Matrix = std::variant<Dense<float>, Dense<double>, Csr<float, std::int32_t>, Csr<float, std::int64_t>,
                            Csr<double, std::int32_t>, Csr<double, std::int64_t>>;

inline index_t rows(const Matrix& m) {
  return std::visit([](const auto& v) { return v.rows; }, m);
}
inline index_t cols(const Matrix& m) {
  return std::visit([](const auto& v) { return v.cols; }, m);
}

}  // namespace maxmargin
