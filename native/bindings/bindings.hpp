// What every binding file shares: array types and the Matrix handle. Only this folder knows Python.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "base/matrix.hpp"

namespace maxmargin {
namespace nb = nanobind;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A new NumPy array that owns a copy of [data, data + size).
template <class T>
Array<T> to_numpy(const T* data, std::size_t size) {
  auto* copy = new T[size];
  std::copy(data, data + size, copy);
  nb::capsule owner(copy, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return Array<T>(copy, {size}, owner);
}
template <class T>
Array<T> to_numpy(const std::vector<T>& v) {
  return to_numpy(v.data(), v.size());
}

inline void need(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

void bind_matrix(nb::module_& m);
void bind_budget(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_one_norm(nb::module_& m);
void bind_decomposition(nb::module_& m);
void bind_kernels(nb::module_& m);
void bind_divide(nb::module_& m);
void bind_data(nb::module_& m);
void bind_many(nb::module_& m);
void bind_family(nb::module_& m);

}  // namespace maxmargin
