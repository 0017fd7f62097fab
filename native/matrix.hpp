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

using Matrix = std::variant<Dense<float>, Dense<double>, Csr<float, std::int32_t>, Csr<float, std::int64_t>,
                            Csr<double, std::int32_t>, Csr<double, std::int64_t>>;

inline index_t rows(const Matrix& m) {
  return std::visit([](const auto& v) { return v.rows; }, m);
}
inline index_t cols(const Matrix& m) {
  return std::visit([](const auto& v) { return v.cols; }, m);
}

}  // namespace maxmargin
