#include "bindings.hpp"
#include "decomposition/family.hpp"

namespace maxmargin {
namespace {

template <class V>
std::vector<V> copied(const In<V>& a) {
  return std::vector<V>(a.data(), a.data() + a.shape(0));
}

void check(const FamilyState& s, const Gram& gram, const std::vector<index_t>& order) {
  const std::size_t count = s.parent.size();
  bool fits = s.range.size() == 4 * count && s.like.size() == count && s.unlike.size() == count && s.at.size() == count + 1 && s.ratio.size() == count &&
              s.target.size() == count * std::size_t(s.groups) && s.extra_at.size() == count + 1;
  fits = fits && (s.halves == 1 || s.halves == 2) && s.groups >= 0 && s.groups <= 2;
  const std::size_t variables = fits ? std::size_t(s.at[count]) * std::size_t(s.halves) : 0;
  for (const auto* a : {&s.center, &s.lo, &s.hi, &s.start}) fits = fits && a->size() == variables;
  fits = fits && s.group.size() == variables && s.extra_at[count] == index_t(s.extra.size());
  for (std::size_t p = 0; fits && p < count; ++p) {
    const index_t* r = &s.range[4 * p];
    fits = 0 <= r[0] && r[0] <= r[1] && r[1] <= gram.size() && 0 <= r[2] && r[2] <= r[3] && r[3] <= gram.size() &&
           s.at[p + 1] - s.at[p] == r[1] - r[0] + r[3] - r[2] && s.parent[p] < index_t(p) && s.like[p] < index_t(p) && s.extra_at[p] <= s.extra_at[p + 1];
    for (index_t other : {s.parent[p], s.like[p], s.unlike[p]})
      if (fits && other >= 0) fits = other < index_t(p) && std::equal(r, r + 4, &s.range[4 * other]);
  }
  for (index_t i : s.extra) fits = fits && 0 <= i && i < gram.size();
  std::vector<char> once(count, 0);
  fits = fits && order.size() == count;
  for (index_t p : order) fits = fits && 0 <= p && p < index_t(count) && !std::exchange(once[p], 1);
  if (!fits) throw std::invalid_argument("Family: ranges, parents and state do not fit together");
}

}  // namespace

void bind_family(nb::module_& m) {
  nb::class_<Gram>(m, "Gram", "A whole matrix of kernel values, or of what they are made from, in fixed point.")
      .def(nb::init<index_t, double>(), nb::arg("n"), nb::arg("largest"))
      .def_prop_ro("unit", &Gram::unit, "What one step of the fixed point is.")
      .def(
          "put",
          [](Gram& g, index_t first, In2<double> values, int threads) {
            const index_t count = index_t(values.shape(0));
            if (index_t(values.shape(1)) != g.size() || first < 0 || first + count > g.size())
              throw std::invalid_argument("Gram.put: rows do not fit");
            nb::gil_scoped_release release;
            g.put(first, count, values.data(), threads);
          },
          nb::arg("first"), nb::arg("values"), nb::arg("threads"), "Rows from the first on.")
      .def(
          "put_distances",
          [](Gram& g, index_t first, In2<double> dots, In<double> norm, int threads) {
            const index_t count = index_t(dots.shape(0));
            if (index_t(dots.shape(1)) != g.size() || index_t(norm.shape(0)) != g.size() || first < 0 ||
                first + count > g.size())
              throw std::invalid_argument("Gram.put_distances: rows do not fit");
            nb::gil_scoped_release release;
            g.put_distances(first, count, dots.data(), norm.data(), threads);
          },
          nb::arg("first"), nb::arg("dots"), nb::arg("norm"), nb::arg("threads"),
          "Rows of |x − z| from dot products and squared norms.")
      .def(
          "fill",
          [](Gram& g, const Gram& base, const std::string& kernel, double gamma, double coef0, int degree, int threads) {
            if (base.size() != g.size()) throw std::invalid_argument("Gram.fill: of another size");
            const KernelSpec spec{KernelSpec::parse(kernel), gamma, coef0, degree};
            nb::gil_scoped_release release;
            g.fill(base, spec, threads);
          },
          nb::arg("base"), nb::arg("kernel"), nb::arg("gamma"), nb::arg("coef0"), nb::arg("degree"), nb::arg("threads"),
          "Kernel values from what all gammas have in common.")
      .def(
          "rows",
          [](const Gram& g, In<index_t> rows, InOut2<double> out) {
            if (out.shape(0) != rows.shape(0) || index_t(out.shape(1)) != g.size())
              throw std::invalid_argument("Gram.rows: shapes do not fit");
            for (std::size_t i = 0; i < rows.shape(0); ++i) {
              if (rows(i) < 0 || rows(i) >= g.size()) throw std::invalid_argument("Gram.rows: no such row");
              for (index_t j = 0; j < g.size(); ++j) out(i, j) = g.value(rows(i), j);
            }
          },
          nb::arg("rows"), nb::arg("out"), "Values of some rows.");
  nb::class_<FamilyState>(m, "FamilyState", "Problems that begin from one another, whatever the kernel.")
      .def(
          "__init__",
          [](FamilyState* self, In<index_t> range, In<index_t> at, In<index_t> parent, In<index_t> like, In<index_t> unlike,
             In<double> ratio, In<double> center, In<double> lo, In<double> hi, In<double> start, In<double> target,
             In<std::int8_t> group, In<index_t> extra_at, In<index_t> extra, int groups, int halves) {
            new (self) FamilyState{copied(range), copied(at), copied(parent), copied(like), copied(unlike), copied(ratio),
                                   copied(center), copied(lo), copied(hi), copied(start), copied(target), copied(group),
                                   copied(extra_at), copied(extra), groups, halves};
          },
          nb::arg("range"), nb::arg("at"), nb::arg("parent"), nb::arg("like"), nb::arg("unlike"), nb::arg("ratio"),
          nb::arg("center"), nb::arg("lo"), nb::arg("hi"), nb::arg("start"), nb::arg("target"), nb::arg("group"),
          nb::arg("extra_at"), nb::arg("extra"), nb::arg("groups"), nb::arg("halves"));
  using Self = Family;
  nb::class_<Self>(m, "Family", "QPs on one kernel matrix that begin from one another.")
      .def(
          "__init__",
          [](Self* self, const Gram& gram, const FamilyState& state, In<index_t> order, double tol, index_t max_steps,
             int threads) {
            auto handed = copied(order);
            check(state, gram, handed);
            new (self) Self(gram, state, std::move(handed), FamilyLimits{tol, max_steps}, threads);
          },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::arg("gram"), nb::arg("state"), nb::arg("order"), nb::arg("tol"),
          nb::arg("max_steps"), nb::arg("threads"))
      .def(
          "run",
          [](Self& s, double seconds) {
            nb::gil_scoped_release release;
            return s.run(seconds);
          },
          nb::arg("seconds"), "Go on for about so many seconds; how many problems are done.")
      .def("drop", &Self::drop, nb::arg("problem"), "Leave out a problem that has not begun and that no other begins from.")
      .def_prop_ro(
          "stage",
          [](const Self& s) {
            std::vector<std::int8_t> out;
            for (index_t p = 0; p < s.problems(); ++p) out.push_back(std::int8_t(s.stage(p)));
            return to_numpy(out);
          },
          nb::rv_policy::move, "0 waiting, 1 running, 2 converged, 3 stalled, 4 out of steps, 5 dropped.")
      .def(
          "solutions",
          [](const Self& s, index_t first, index_t last) {
            if (first < 0 || first > last || last > s.problems()) throw std::invalid_argument("Family.solutions: no such problems");
            const FamilyState& t = s.state();
            const std::size_t count = std::size_t(t.at[last] - t.at[first]);
            return std::make_tuple(to_numpy(s.beta(first), count * std::size_t(t.halves)), to_numpy(s.f(first), count),
                                   to_numpy(s.extra_f(first), std::size_t(t.extra_at[last] - t.extra_at[first])));
          },
          nb::arg("first"), nb::arg("last"), "β, f of the samples and f of the extra ones of problems first … last − 1, one after the other.")
      .def_prop_ro(
          "judged",
          [](const Self& s) {
            std::vector<double> out;
            for (const Judged& j : s.judged()) {
              out.insert(out.end(), {j.dual, j.gap, j.violation, j.absolute, j.square});
              for (const double* each : {j.b, j.off, j.mass}) out.insert(out.end(), each, each + s.state().groups);
            }
            return to_numpy(out);
          },
          nb::rv_policy::move,
          "Per problem that is solved: dual, gap, violation, Σ|β|, Σβ²; and by group its multiplier, what its sum misses its "
          "target by, Σ|β|. One after the other.")
      .def_prop_ro("steps", [](const Self& s) { return to_numpy(s.steps()); }, nb::rv_policy::move)
      .def_prop_ro("turns", [](const Self& s) { return to_numpy(s.turns()); }, nb::rv_policy::move)
      .def_prop_ro("moved", [](const Self& s) { return to_numpy(s.moved()); }, nb::rv_policy::move)
      .def_prop_ro("begun_moved", [](const Self& s) { return to_numpy(s.begun_moved()); }, nb::rv_policy::move)
      .def_prop_ro("seconds", [](const Self& s) { return to_numpy(s.seconds()); }, nb::rv_policy::move);
}

}  // namespace maxmargin
