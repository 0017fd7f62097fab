#include "bindings.hpp"
#include "divide/assignment.hpp"

namespace maxmargin {
namespace {

template <class T>
Array<std::int32_t> nearest(const Points<T>& points, In<index_t> rows, const Points<T>& other, In<index_t> other_rows,
                            In<index_t> end, In<double> offset, int threads) {
  const index_t count = index_t(rows.shape(0)), clusters = index_t(end.shape(0));
  if (offset.shape(0) != end.shape(0) || !clusters || end(clusters - 1) != index_t(other_rows.shape(0)))
    throw std::invalid_argument("nearest_cluster: one end and one offset per cluster, the last end at the last row");
  std::vector<std::int32_t> chosen(count);
  {
    nb::gil_scoped_release release;
    PackedRows<T> packed;
    packed.pack(other, other_rows.data(), index_t(other_rows.shape(0)));
    nearest_cluster(SampleList<T>{&points, rows.data(), count}, packed, end.data(), offset.data(), chosen.data(), threads);
  }
  return to_numpy(chosen);
}

template <class T>
void bind_nearest(nb::module_& m) {
  m.def("nearest_cluster", &nearest<T>, nb::arg("points"), nb::arg("rows"), nb::arg("other"), nb::arg("other_rows"),
        nb::arg("end"), nb::arg("offset"), nb::arg("threads"),
        "For each of `rows` the cluster c with the smallest offset[c] − 2/|c| Σ K(·, s) over its sampled points s, "
        "other_rows[end[c − 1]:end[c]].");
}

}  // namespace

void bind_divide(nb::module_& m) {
  bind_nearest<float>(m);
  bind_nearest<double>(m);
}

}  // namespace maxmargin
