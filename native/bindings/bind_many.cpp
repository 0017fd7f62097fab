#include "bindings.hpp"
#include "decomposition/many.hpp"

namespace maxmargin {
namespace {

template <class V>
std::vector<V> copied(const In<V>& a) {
  return std::vector<V>(a.data(), a.data() + a.shape(0));
}

void check(const ManyState& s, const In<index_t>& end) {
  const auto size = [&](index_t b) { return b < 0 ? 0 : end(b + 1) - end(b); };
  const std::size_t count = s.first.size(), n = s.beta.size();
  bool fits = s.second.size() == count && s.offset.size() == count + 1 && end.shape(0) > 0;
  for (const auto* a : {&s.center, &s.lo, &s.hi}) fits = fits && a->size() == n;
  fits = fits && s.group.size() == n && (count == 0 ? n == 0 : s.offset[count] == index_t(n));
  for (std::size_t p = 0; fits && p < count; ++p)
    fits = s.first[p] >= 0 && std::max(s.first[p], s.second[p]) + 1 < index_t(end.shape(0)) &&
           s.offset[p + 1] - s.offset[p] == size(s.first[p]) + size(s.second[p]);
  if (!fits) throw std::invalid_argument("Many: blocks, offsets and state do not fit together");
}

template <class T>
void bind_many_of(nb::module_& m, const char* name) {
  using Self = Many<T>;
  nb::class_<Self>(m, name, "Many small QPs, each of two blocks of samples, one per thread at a time.")
      .def(
          "__init__",
          [](Self* self, const Points<T>& points, In<index_t> row, In<index_t> end, In<index_t> first, In<index_t> second,
             In<index_t> offset, In<double> sign, In<double> center, In<double> upper, In<double> alpha,
             In<std::int8_t> group, int groups, double tol, index_t max_rounds, index_t max_steps, bool shrinking,
             std::size_t cache_bytes, bool whole, int threads) {
            const std::size_t n = sign.shape(0);
            if (upper.shape(0) != n || alpha.shape(0) != n) throw std::invalid_argument("Many: one sign, bound, alpha each");
            const std::vector<double> zeros(n, 0.0);
            ManyState state{copied(first), copied(second), copied(offset), copied(center), zeros, zeros, zeros, zeros,
                            copied(group), groups};
            for (std::size_t v = 0; v < n; ++v) {  // β = sign · α
              (sign(v) > 0 ? state.hi : state.lo)[v] = sign(v) * upper(v);
              state.beta[v] = sign(v) * alpha(v);
            }
            check(state, end);
            new (self) Self(points, copied(row), copied(end), std::move(state),
                            ManyLimits{tol, max_rounds, max_steps, shrinking}, cache_bytes, whole, threads);
          },
          nb::keep_alive<1, 2>(), nb::arg("points"), nb::arg("row"), nb::arg("end"), nb::arg("first"), nb::arg("second"),
          nb::arg("offset"), nb::arg("sign"), nb::arg("center"), nb::arg("upper"), nb::arg("alpha"), nb::arg("group"),
          nb::arg("groups"), nb::arg("tol"), nb::arg("max_rounds"), nb::arg("max_steps"), nb::arg("shrinking"),
          nb::arg("cache_bytes"), nb::arg("whole"), nb::arg("threads"))
      .def(
          "run",
          [](Self& s, double seconds, double left) {
            nb::gil_scoped_release release;
            return s.run(seconds, left);
          },
          nb::arg("seconds"), nb::arg("left"),
          "Go on for about so many seconds, of `left` that there are for all; how many problems are done.")
      .def(
          "finish",
          [](Self& s, index_t steps) {
            nb::gil_scoped_release release;
            s.finish(steps);
          },
          nb::arg("steps"), "End what is left with at most so many steps each.")
      .def(
          "judged",
          [](const Self& s, In2<double> targets, In<double> magnitude) {
            const int groups = s.state().groups;
            if (targets.shape(0) != s.progress().size() || int(targets.shape(1)) != groups ||
                index_t(magnitude.shape(0)) != s.samples())
              throw std::invalid_argument("Many: targets and magnitudes do not fit the problems");
            std::vector<double> out;
            std::vector<Judged> judged;
            {
              nb::gil_scoped_release release;
              judged = s.judged(targets.data(), magnitude.data());
            }
            std::size_t p = 0;
            for (const Judged& j : judged) {
              const auto how = std::int8_t(s.progress()[p]);
              out.insert(out.end(), {double(how), double(s.rounds()[p]), double(s.steps()[p]), double(s.rows()[p])});
              out.insert(out.end(), {j.dual, j.gap, j.violation, j.support, j.largest, j.absolute, j.square});
              for (const double* each : {j.b, j.off, j.mass}) out.insert(out.end(), each, each + groups);
              ++p;
            }
            return to_numpy(out);
          },
          nb::arg("targets"), nb::arg("magnitude"),
          "Per problem: how it stands (0 waiting, 1 running, 2 converged, 3 stalled, 4 out of rounds, 5 out of steps), rounds, "
          "steps, kernel rows; dual, gap, violation, variables that are not 0, largest magnitude m, Σ|β|m, Σ(βm)²; and by "
          "group its multiplier, what its sum misses its target by, Σ|β|. One after the other.")
      .def_prop_ro("whole", &Self::whole, "Whether all kernel values are computed beforehand.")
      .def_prop_ro("beta", [](const Self& s) { return to_numpy(s.state().beta); }, nb::rv_policy::move)
      .def_prop_ro("f", [](const Self& s) { return to_numpy(s.state().f); }, nb::rv_policy::move);
}

}  // namespace

void bind_many(nb::module_& m) {
  bind_many_of<float>(m, "Many32");
  bind_many_of<double>(m, "Many64");
}

}  // namespace maxmargin
