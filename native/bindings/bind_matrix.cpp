#include <stdexcept>

#include "bindings.hpp"

namespace maxmargin {
namespace {

template <class T>
Matrix dense(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> x) {
  if (x.shape(1) > 1 && x.stride(1) != 1) throw std::invalid_argument("Matrix: rows must be contiguous");
  return Dense<T>{x.data(), index_t(x.shape(0)), index_t(x.shape(1)),
                  x.shape(0) > 1 ? index_t(x.stride(0)) : index_t(x.shape(1))};
}

template <class T, class I>
Matrix csr(In<T> data, In<I> indices, In<I> indptr, index_t cols) {
  return Csr<T, I>{data.data(), indices.data(), indptr.data(), index_t(indptr.shape(0)) - 1, cols};
}

}  // namespace

void bind_matrix(nb::module_& m) {
  // keep_alive: the views point into NumPy's memory, so each argument lives as long as the Matrix.
  nb::class_<Matrix>(m, "Matrix", "A view of samples: dense rows or CSR, float32 or float64. Copies nothing.")
      .def_static("dense", &dense<float>, nb::keep_alive<0, 1>(), nb::arg("x").noconvert())
      .def_static("dense", &dense<double>, nb::keep_alive<0, 1>(), nb::arg("x").noconvert())
#define MM_CSR(T, I)                                                                                       \
  .def_static("csr", &csr<T, I>, nb::keep_alive<0, 1>(), nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), \
              nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(), \
              nb::arg("cols"))
          MM_CSR(float, std::int32_t) MM_CSR(float, std::int64_t) MM_CSR(double, std::int32_t)
              MM_CSR(double, std::int64_t)
#undef MM_CSR
      .def_prop_ro("shape", [](const Matrix& x) { return std::make_pair(rows(x), cols(x)); });
}

}  // namespace maxmargin
