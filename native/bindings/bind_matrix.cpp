#include <stdexcept>

#include "bindings.hpp"
#include "data/entries.hpp"

namespace maxmargin {
namespace {

template <class T>
Matrix dense(nb::ndarray<const T, nb::ndim<2>, nb::device::cpu> x) {
  if (x.shape(0) > 0 && x.shape(1) > 1 && x.stride(1) != 1) throw std::invalid_argument("Matrix: rows must be contiguous");
  return Dense<T>{x.data(), index_t(x.shape(0)), index_t(x.shape(1)),
                  x.shape(0) > 1 ? index_t(x.stride(0)) : index_t(x.shape(1))};
}

template <class T, class I>
Matrix csr(In<T> data, In<I> indices, In<I> indptr, index_t cols) {
  return Csr<T, I>{data.data(), indices.data(), indptr.data(), index_t(indptr.shape(0)) - 1, cols};
}

Array<index_t> nonzeros(const Matrix& x, In<index_t> chosen, int threads) {
  std::vector<index_t> count(chosen.shape(0));
  std::visit(
      [&](const auto& m) {
        if constexpr (std::decay_t<decltype(m)>::dense) {
          nb::gil_scoped_release release;
          count_entries(m, chosen.data(), index_t(count.size()), count.data(), threads);
        } else {
          throw std::invalid_argument("nonzeros: dense matrices only");
        }
      },
      x);
  return to_numpy(count);
}

template <class V, class I>
void entries(const Matrix& x, In<index_t> chosen, In<I> indptr, InOut<I> indices, InOut<V> data, int threads) {
  const auto* m = std::get_if<Dense<V>>(&x);
  if (!m) throw std::invalid_argument("entries: a dense matrix of the type of data only");
  if (index_t(indptr.shape(0)) != m->rows + 1 || indices.shape(0) != data.shape(0) ||
      index_t(data.shape(0)) < index_t(indptr(m->rows)))
    throw std::invalid_argument("entries: shapes do not fit");
  nb::gil_scoped_release release;
  write_entries(*m, chosen.data(), index_t(chosen.shape(0)), indptr.data(), indices.data(), data.data(), threads);
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
  m.def("nonzeros", &nonzeros, nb::arg("x"), nb::arg("rows"), nb::arg("threads"),
        "How many entries of each of these rows of a dense matrix are not zero.");
#define MM_ENTRIES(V, I)                                                                                       \
  m.def("entries", &entries<V, I>, nb::arg("x"), nb::arg("rows"), nb::arg("indptr").noconvert(),               \
        nb::arg("indices").noconvert(), nb::arg("data").noconvert(), nb::arg("threads"),                       \
        "Write the nonzeros of these rows of a dense matrix into CSR arrays laid out by indptr.");
  MM_ENTRIES(float, std::int32_t)
  MM_ENTRIES(float, std::int64_t)
  MM_ENTRIES(double, std::int32_t)
  MM_ENTRIES(double, std::int64_t)
#undef MM_ENTRIES
}

}  // namespace maxmargin
