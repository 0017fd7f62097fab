#include <numeric>
#include <optional>

#include "bindings.hpp"
#include "kernel/neighbours.hpp"
#include "data/copies.hpp"
#include "data/row_hash.hpp"
#include "kernel/row_sums.hpp"

namespace maxmargin {
namespace {

constexpr index_t kRowsAtOnce = 1536;  // W rows packed per pass: a few MB at hundreds of features

// sum[c][j] += Σ_i coef[c · stride + i] K(w_i, sample j) for samples `rows` of a and rows `w_rows` of b.
template <class T>
void kernel_sum_all(const Points<T>& a, const index_t* row, index_t count, const Points<T>& b, const index_t* w_row,
                    index_t w_count, const double* coef, index_t outputs, index_t stride, double* sum, int threads) {
  PackedRows<T> packed;
  std::vector<TileScratch<T>> scratch(std::max(1, threads));
  for (index_t first = 0; first < w_count; first += kRowsAtOnce) {
    const index_t part = std::min(kRowsAtOnce, w_count - first);
    packed.pack(b, w_row + first, part);
    kernel_sum(SampleList<T>{&a, row, count}, packed, Sums<T>{coef + first, outputs, stride, sum, count}, scratch, threads);
  }
}

template <class T>
void bind_points(nb::module_& m, const char* name) {
  nb::class_<Points<T>>(m, name, "Samples prepared for kernel evaluation in one precision.")
      .def(
          "__init__",
          [](Points<T>* self, const Matrix& x, const std::string& kernel, double gamma, double coef0, int degree,
             In<index_t> rows, int threads) {
            const KernelSpec spec{KernelSpec::parse(kernel), gamma, coef0, degree};
            nb::gil_scoped_release release;
            new (self) Points<T>(x, spec, rows.data(), index_t(rows.shape(0)), threads);
          },
          nb::keep_alive<1, 2>(), nb::arg("x"), nb::arg("kernel"), nb::arg("gamma"), nb::arg("coef0"),
          nb::arg("degree"), nb::arg("rows"), nb::arg("threads"))
      .def(
          "__init__",
          [](Points<T>* self, const Matrix& x, const std::string& kernel, double gamma, double coef0, int degree,
             In<double> shift, double largest_norm, int threads) {
            const KernelSpec spec{KernelSpec::parse(kernel), gamma, coef0, degree};
            std::vector<double> by(shift.data(), shift.data() + shift.shape(0));
            nb::gil_scoped_release release;
            new (self) Points<T>(x, spec, std::move(by), T(largest_norm), threads);
          },
          nb::keep_alive<1, 2>(), nb::arg("x"), nb::arg("kernel"), nb::arg("gamma"), nb::arg("coef0"),
          nb::arg("degree"), nb::arg("shift"), nb::arg("largest_norm"), nb::arg("threads"))
      .def_prop_ro("shift", [](const Points<T>& p) { return to_numpy(p.shift()); }, nb::rv_policy::move,
                   "What is taken off every sample; empty: nothing.")
      .def_prop_ro("largest_norm", [](const Points<T>& p) { return double(p.largest_norm()); },
                   "RBF: the largest γ|x|², after the shift.")
      .def_prop_ro("farthest", [](const Points<T>& p) { return double(p.farthest()); },
                   "The largest norm of all rows of the matrix.")
      .def(
          "like",
          [](const Points<T>& self, const Matrix& x, int threads) {
            nb::gil_scoped_release release;
            return Points<T>(x, self, threads);
          },
          nb::keep_alive<0, 2>(), nb::arg("x"), nb::arg("threads"), "Other samples, scaled and shifted as these.")
      .def(
          "sum",
          [](const Points<T>& self, In<index_t> rows, const Points<T>& other, In<index_t> other_rows,
             In2<double> coef, InOut2<double> sum, int threads) {
            if (coef.shape(1) != other_rows.shape(0) || sum.shape(0) != coef.shape(0) ||
                sum.shape(1) != rows.shape(0))
              throw std::invalid_argument("Points.sum: shapes do not fit");
            nb::gil_scoped_release release;
            kernel_sum_all(self, rows.data(), index_t(rows.shape(0)), other, other_rows.data(),
                           index_t(other_rows.shape(0)), coef.data(), index_t(coef.shape(0)), index_t(coef.shape(1)),
                           sum.data(), threads);
          },
          nb::arg("rows"), nb::arg("other"), nb::arg("other_rows"), nb::arg("coef"), nb::arg("sum"),
          nb::arg("threads"), "sum[c, j] += Σ_i coef[c, i] K(other_rows[i], rows[j]).")
      .def(
          "sum_by_block",
          [](const Points<T>& self, In<index_t> rows, const Points<T>& other, In<index_t> end, In2<double> coef,
             InOut2<double> sum, int threads) {
            const index_t blocks = index_t(end.shape(0)) - 1, outputs = index_t(coef.shape(0)), count = index_t(rows.shape(0));
            bool fits = blocks >= 0 && end(0) == 0 && end(blocks) == index_t(coef.shape(1)) &&
                        index_t(sum.shape(0)) == blocks * outputs && index_t(sum.shape(1)) == count;
            for (index_t b = 0; fits && b < blocks; ++b) fits = end(b) <= end(b + 1);
            if (!fits) throw std::invalid_argument("Points.sum_by_block: shapes do not fit");
            std::vector<index_t> every(coef.shape(1));
            std::iota(every.begin(), every.end(), index_t(0));
            nb::gil_scoped_release release;
            for (index_t b = 0; b < blocks; ++b)
              kernel_sum_all(self, rows.data(), count, other, every.data() + end(b), end(b + 1) - end(b), coef.data() + end(b),
                             outputs, index_t(coef.shape(1)), sum.data() + b * outputs * count, threads);
          },
          nb::arg("rows"), nb::arg("other"), nb::arg("end"), nb::arg("coef"), nb::arg("sum"), nb::arg("threads"),
          "sum[b * outputs + c, j] += Σ_i coef[c, i] K(i, rows[j]) over the rows i of block b of `other`.")
      .def(
          "block",
          [](const Points<T>& self, In<index_t> rows, const Points<T>& other, In<index_t> other_rows,
             InOut2<T> out, int threads) {
            const index_t count = index_t(rows.shape(0)), w_count = index_t(other_rows.shape(0));
            const index_t width = (count + kPanel<T> - 1) / kPanel<T> * kPanel<T>;
            const index_t stride = index_t(out.shape(1));
            const bool roomy = stride >= width;  // for whole panels: nothing need be copied
            if (index_t(out.shape(0)) != w_count || (stride != count && !roomy))
              throw std::invalid_argument("Points.block: shapes do not fit");
            nb::gil_scoped_release release;
            PackedRows<T> packed;
            std::vector<TileScratch<T>> scratch(std::max(1, threads));
            Buffer<T> wide;
            packed.pack(other, other_rows.data(), w_count);
            std::vector<T*> to(w_count);
            T* memory = roomy ? out.data() : wide.ensure(std::max<index_t>(1, width * w_count));
            for (index_t i = 0; i < w_count; ++i) to[i] = memory + i * (roomy ? stride : width);
            kernel_rows(SampleList<T>{&self, rows.data(), count}, packed, to.data(), scratch, threads);
            for (index_t i = 0; i < w_count && !roomy; ++i) std::copy(to[i], to[i] + count, out.data() + i * count);
          },
          nb::arg("rows"), nb::arg("other"), nb::arg("other_rows"), nb::arg("out"), nb::arg("threads"),
          "out[i, j] = K(other_rows[i], rows[j]); out may have more columns, up to a multiple of 32, of no meaning.")
      .def(
          "neighbour_order",
          [](const Points<T>& self, In<index_t> rows, int threads) {
            std::vector<index_t> order;
            {
              nb::gil_scoped_release release;
              order = neighbour_order(self, rows.data(), index_t(rows.shape(0)), threads);
            }
            return to_numpy(order);
          },
          nb::arg("rows"), nb::arg("threads"), "Places of `rows` in an order where neighbours are close (dense only).")
      .def(
          "far_share",
          [](const Points<T>& self, In<index_t> rows) {
            nb::gil_scoped_release release;
            return far_share(self, rows.data(), index_t(rows.shape(0)));
          },
          nb::arg("rows"), "About the share of kernel values that are zero by blocks of this order.");
}

constexpr index_t kWorthTheLock = 200000;  // multiplications: about 20 microseconds

template <class T>
void bind_row_sums(nb::module_& m, const char* name) {
  using Rows = RowSums<T>;
  nb::class_<Rows>(m, name, "Kernel sums over rows that are packed once, for single dense samples.")
      .def(
          "__init__",
          [](Rows* self, const Points<T>& points, In2<double> coef, In<index_t> end) {
            const index_t blocks = index_t(end.shape(0)) - 1, outputs = index_t(coef.shape(0));
            bool fits = !points.sparse() && index_t(coef.shape(1)) == points.size() && blocks >= 1 && end(0) == 0 &&
                        end(blocks) == points.size() && (blocks == 1 || outputs == blocks - 1);
            for (index_t b = 0; fits && b < blocks; ++b) fits = end(b) <= end(b + 1);
            if (!fits) throw std::invalid_argument("RowSums: dense points, a coefficient and a block for each of them");
            new (self) Rows(points, coef.data(), outputs, std::vector<index_t>(end.data(), end.data() + blocks + 1));
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::arg("points"), nb::arg("coef").noconvert(), nb::arg("end"))
      .def_prop_ro("shape", [](const Rows& self) { return std::make_tuple(self.values()); }, "That of the intercepts.")
      .def(
          "decide",
          [](const Rows& self, const Matrix& x, In<double> intercept, InOut2<double> out) {
            if (x.index() >= 2 || cols(x) != self.features() || index_t(intercept.shape(0)) != self.values() ||
                index_t(out.shape(0)) != rows(x) || index_t(out.shape(1)) != self.values())
              throw std::invalid_argument("RowSums.decide: shapes do not fit");
            // To take Python's lock again costs more than others wait for some microseconds of work.
            std::optional<nb::gil_scoped_release> release;
            if (rows(x) * self.work() > kWorthTheLock) release.emplace();
            return self.decide(x, intercept.data(), out.data());
          },
          nb::arg("x"), nb::arg("intercept"), nb::arg("out"),
          "out[j, v] = the sum of output v (of several blocks, of pair v) + intercept[v]; whether all are finite.");
}

Array<std::uint64_t> row_hashes(const Matrix& x, In<double> label, int threads) {
  if (index_t(label.shape(0)) != rows(x)) throw std::invalid_argument("row_hashes: one label per row");
  std::vector<std::uint64_t> hash(label.shape(0));
  {
    nb::gil_scoped_release release;
    hash_rows(x, label.data(), hash.data(), threads);
  }
  return to_numpy(hash);
}

Array<bool> rows_equal(const Matrix& x, In<index_t> first, In<index_t> second) {
  std::unique_ptr<bool[]> same(new bool[first.shape(0)]);
  std::visit(
      [&](const auto& m) {
        for (std::size_t t = 0; t < first.shape(0); ++t) same[t] = equal_rows(m, first(t), second(t));
      },
      x);
  return to_numpy(same.get(), first.shape(0));
}

}  // namespace

void bind_kernels(nb::module_& m) {
  bind_points<float>(m, "Points32");
  bind_points<double>(m, "Points64");
  bind_row_sums<float>(m, "RowSums32");
  bind_row_sums<double>(m, "RowSums64");
  m.def("row_hashes", &row_hashes, nb::arg("x"), nb::arg("label"), nb::arg("threads"),
        "A 64-bit hash of each row with its label; equal rows have equal hashes.");
  m.def(
      "spread",
      [](In2<double> alpha, In2<double> unit, InOut2<double> out, In<double> weight, In<index_t> member, In<index_t> owner,
         In<double> member_weight) {
        const std::size_t samples = weight.shape(0), members = member.shape(0);
        bool fits = alpha.shape(1) == samples && unit.shape(1) == samples && owner.shape(0) == members &&
                    member_weight.shape(0) == members && alpha.shape(0) == unit.shape(0) && alpha.shape(0) == out.shape(0);
        for (std::size_t m = 0; fits && m < members; ++m)
          fits = std::size_t(owner(m)) < samples && std::size_t(member(m)) < out.shape(1);
        if (!fits) throw std::invalid_argument("spread: samples, members and rows do not fit together");
        const Copies copies{index_t(members), member.data(), owner.data(), member_weight.data()};
        for (std::size_t r = 0; r < out.shape(0); ++r)
          spread(copies, &alpha.data()[r * samples], &unit.data()[r * samples], weight.data(), &out.data()[r * out.shape(1)]);
      },
      nb::arg("alpha"), nb::arg("unit"), nb::arg("out"), nb::arg("weight"), nb::arg("member"), nb::arg("owner"),
      nb::arg("member_weight"),
      "out[r, row] = its share of alpha[r, sample]: a sample's copies take up to unit·weight each, the first ones first.");
  m.def("rows_equal", &rows_equal, nb::arg("x"), nb::arg("first"), nb::arg("second"),
        "Whether row first[t] equals row second[t], value by value.");
}

}  // namespace maxmargin
