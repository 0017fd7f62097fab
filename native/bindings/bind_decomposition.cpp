#include "bindings.hpp"
#include "decomposition/inner_smo.hpp"
#include "decomposition/part.hpp"

namespace maxmargin {
namespace {

template <class T>
Part<T>* make_part(Part<T>* self, const Points<T>* points, In<index_t> row, In2<double> center, In2<double> lo,
                   In2<double> hi, In2<double> beta, In2<std::int8_t> group, In<double> f, std::size_t cache_bytes,
                   int threads, index_t first, index_t total) {
  const std::size_t n = row.shape(0), halves = center.shape(0);
  for (const auto* a : {&center, &lo, &hi, &beta})
    if (a->shape(0) != halves || a->shape(1) != n) throw std::invalid_argument("Part: state must be halves × samples");
  if (group.shape(0) != halves || group.shape(1) != n || f.shape(0) != n)
    throw std::invalid_argument("Part: state must be halves × samples");
  if (total < 0) total = index_t(n);
  if (first < 0 || first + index_t(n) > total) throw std::invalid_argument("Part: ids go beyond the total");
  nb::gil_scoped_release release;
  return new (self) Part<T>(points, std::vector<index_t>(row.data(), row.data() + n), int(halves), center.data(),
                            lo.data(), hi.data(), beta.data(), group.data(), f.data(), cache_bytes, threads, first,
                            total);
}

template <class T>
void check_held(const Part<T>& part, const In<index_t>& id) {
  for (std::size_t i = 0; i < id.shape(0); ++i)
    if (!part.holds(id(i))) throw std::invalid_argument("Part: a sample of another part");
}

template <class T>
void check_rows(const In<index_t>& id, const Points<T>& from, const In<index_t>& row) {
  if (row.shape(0) != id.shape(0)) throw std::invalid_argument("Part: one row per sample");
  for (std::size_t i = 0; i < row.shape(0); ++i)
    if (row(i) < 0 || row(i) >= from.size()) throw std::invalid_argument("Part: a row that the points do not have");
}

// Numbers among so many samples.
std::vector<index_t> numbers(const In<index_t>& which, index_t count) {
  for (std::size_t k = 0; k < which.shape(0); ++k)
    if (which(k) < 0 || which(k) >= count) throw std::invalid_argument("Part: no such sample in the tile");
  return std::vector<index_t>(which.data(), which.data() + which.shape(0));
}

template <class T>
void check_update(const Part<T>& part, const In<index_t>& id, const In<double>& coef, const Points<T>* from,
                  const In<index_t>& row) {
  if (coef.shape(0) != id.shape(0)) throw std::invalid_argument("Part.update: one coefficient per sample");
  if (from) return check_rows(id, *from, row);
  if (row.shape(0) != id.shape(0) || !part.missing(id.data(), index_t(id.shape(0))).empty())
    throw std::invalid_argument("Part.update: put the missing rows first");
}

template <class T>
void bind_part(nb::module_& m, const char* name) {
  using Self = Part<T>;
  nb::class_<Self>(m, name, "A part of the samples of one QP: gradient, variables, and a slice of the kernel rows.")
      .def(
          "__init__", [](Self* self, const Points<T>* points, In<index_t> row, In2<double> center, In2<double> lo,
                         In2<double> hi, In2<double> beta, In2<std::int8_t> group, In<double> f,
                         std::size_t cache_bytes, int threads, index_t first, index_t total) {
            make_part(self, points, row, center, lo, hi, beta, group, f, cache_bytes, threads, first, total);
          },
          nb::keep_alive<1, 2>(), nb::arg("points").none(), nb::arg("row"), nb::arg("center"), nb::arg("lo"),
          nb::arg("hi"), nb::arg("beta"), nb::arg("group"), nb::arg("f"), nb::arg("cache_bytes"), nb::arg("threads"), nb::arg("first") = 0,
          nb::arg("total") = -1)
      .def(
          "restart",
          [](Self& s, In2<double> center, In2<double> lo, In2<double> hi, In2<double> beta, In2<std::int8_t> group,
             In<double> f) {
            bool fits = index_t(f.shape(0)) == s.samples_held();
            for (const auto* a : {&center, &lo, &hi, &beta})
              fits = fits && index_t(a->shape(0)) == s.halves() && index_t(a->shape(1)) == s.samples_held();
            fits = fits && index_t(group.shape(0)) == s.halves() && index_t(group.shape(1)) == s.samples_held();
            if (!fits || s.size() != s.samples_held())
              throw std::invalid_argument("Part.restart: the state of all samples, none of which is left out");
            s.restart(center.data(), lo.data(), hi.data(), beta.data(), group.data(), f.data());
          },
          nb::arg("center"), nb::arg("lo"), nb::arg("hi"), nb::arg("beta"), nb::arg("group"), nb::arg("f"),
          "Another problem of the same samples: cached rows are kept.")
      .def_prop_ro("active", [](const Self& s) { return to_numpy(s.active()); }, nb::rv_policy::move, "Ids of the active samples.")
      .def_prop_ro(
          "f",
          [](const Self& s) {
            std::vector<double> out(s.samples_held());
            s.f(out.data());
            return to_numpy(out);
          },
          nb::rv_policy::move, "K·beta by sample; of those left out as it was then.")
      .def_prop_ro(
          "beta",
          [](const Self& s) {
            std::vector<double> out(s.halves() * s.samples_held());
            s.beta(out.data());
            return to_numpy(out);
          },
          nb::rv_policy::move, "By half and sample, in one dimension.")
      .def_prop_ro("support", &Self::support, "Samples whose halves do not cancel.")
      .def_prop_ro("size", &Self::size)
      .def_prop_ro("cache_slots", &Self::cache_slots)
      .def(
          "extremes",
          [](const Self& s, bool everyone) {
            nb::gil_scoped_release release;
            const Extremes e = s.extremes(everyone);
            return std::make_tuple(e.max_up[0], e.max_up[1], e.min_low[0], e.min_low[1]);
          },
          nb::arg("everyone") = false,
          "(max_up of group 0, of group 1, min_low of group 0, of group 1) over the active variables, or all.")
      .def(
          "candidates",
          [](Self& s, int group, index_t k, double above, double below) {
            Candidates c;
            {
              nb::gil_scoped_release release;
              c = s.candidates(group, k, above, below);
            }
            return std::make_tuple(to_numpy(c.up), to_numpy(c.up_score), to_numpy(c.low), to_numpy(c.low_score));
          },
          nb::arg("group"), nb::arg("k"), nb::arg("above"), nb::arg("below"),
          "Up to k variables of a group on either side, worst first: (up, up_score, low, low_score).")
      .def(
          "read",
          [](const Self& s, In<index_t> id) {
            const std::size_t q = id.shape(0), m = q * std::size_t(s.halves());
            check_held(s, id);
            std::vector<double> beta(m), lo(m), hi(m), center(m), f(q);
            std::vector<std::int8_t> group(m);
            s.read(id.data(), index_t(q), beta.data(), lo.data(), hi.data(), center.data(), group.data(), f.data());
            return std::make_tuple(to_numpy(beta), to_numpy(lo), to_numpy(hi), to_numpy(center), to_numpy(group),
                                   to_numpy(f));
          },
          nb::arg("id"), "(beta, lo, hi, center, group) of samples of this part by half and sample, and their f.")
      .def(
          "write",
          [](Self& s, In<index_t> id, In2<double> beta) {
            if (index_t(beta.shape(0)) != s.halves() || beta.shape(1) != id.shape(0))
              throw std::invalid_argument("Part.write: beta must be halves × samples");
            s.write(id.data(), index_t(id.shape(0)), beta.data());
          },
          nb::arg("id"), nb::arg("beta"), "beta of those of the samples that this part holds.")
      .def(
          "add",
          [](Self& s, In<index_t> id, In<double> values) {
            check_held(s, id);
            if (values.shape(0) != id.shape(0)) throw std::invalid_argument("Part.add: one value per sample");
            s.add(id.data(), index_t(id.shape(0)), values.data());
          },
          nb::arg("id"), nb::arg("values"), "To f of samples of this part.")
      .def(
          "add_active",
          [](Self& s, In<double> values) {
            if (index_t(values.shape(0)) != s.size()) throw std::invalid_argument("Part.add_active: one value per active sample");
            s.add_active(values.data());
          },
          nb::arg("values"), "To f of the active samples, in the order of `active`.")
      .def(
          "are_active",
          [](const Self& s, In<index_t> id) {
            check_held(s, id);
            std::unique_ptr<bool[]> out(new bool[id.shape(0)]);
            for (std::size_t i = 0; i < id.shape(0); ++i) out[i] = s.is_active(id(i));
            return to_numpy(out.get(), id.shape(0));
          },
          nb::arg("id"), "Of samples of this part.")
      .def(
          "tile",
          [](nb::handle_t<Self> self, In<index_t> id, const Points<T>& from, In<index_t> row, std::optional<In<index_t>> awaited) {
            Self& s = nb::cast<Self&>(self);
            check_rows(id, from, row);
            const std::vector<index_t> later = awaited ? numbers(*awaited, index_t(id.shape(0))) : std::vector<index_t>();
            TileView<T> tile;
            std::vector<index_t> place(id.shape(0));
            {
              nb::gil_scoped_release release;
              tile = s.tile_of(from, id.data(), row.data(), index_t(id.shape(0)), place.data(), later);
            }
            const std::size_t ld = std::size_t(tile.ld);
            return std::make_tuple(nb::ndarray<nb::numpy, const T, nb::ndim<2>>(tile.data, {ld, ld}, self),
                                   to_numpy(place));
          },
          nb::arg("id"), nb::arg("points"), nb::arg("row"), nb::arg("awaited") = nb::none(),
          "K between distinct samples, padded, valid until the next call; and where each one stands in it. The rows of newcomers "
          "that are awaited, numbers among the samples, follow by take_rows.")
      .def(
          "take_rows",
          [](Self& s, In<index_t> awaited, In2<T> values) {
            const std::vector<index_t> which = numbers(awaited, s.members());
            if (values.shape(0) != awaited.shape(0) || index_t(values.shape(1)) < s.members())
              throw std::invalid_argument("Part.take_rows: the rows do not fit");
            nb::gil_scoped_release release;
            s.take_rows(which, values.data(), index_t(values.shape(1)));
          },
          nb::arg("awaited"), nb::arg("values"),
          "The awaited rows of the last tile, the samples in the order in which they were given to it.")
      .def(
          "missing",
          [](const Self& s, In<index_t> id) { return to_numpy(s.missing(id.data(), index_t(id.shape(0)))); },
          nb::arg("id"), "Those of the samples whose kernel row is not cached.")
      .def(
          "put",
          [](Self& s, In<index_t> id, In2<double> block) {
            if (block.shape(0) != id.shape(0) || index_t(block.shape(1)) != s.size() ||
                index_t(id.shape(0)) > s.cache_slots())
              throw std::invalid_argument("Part.put: the block does not fit");
            nb::gil_scoped_release release;
            s.put(id.data(), index_t(id.shape(0)), block.data());
          },
          nb::arg("id"), nb::arg("block"), "Kernel rows from outside, over the active samples.")
      .def(
          "update",
          [](Self& s, In<index_t> id, In<double> coef, const Points<T>* from, In<index_t> row) {
            check_update(s, id, coef, from, row);
            nb::gil_scoped_release release;
            return s.update(from, id.data(), row.data(), index_t(id.shape(0)), coef.data());
          },
          nb::arg("id"), nb::arg("coef"), nb::arg("points").none(), nb::arg("row"),
          "f += Σ coef_i K(·, id_i), the samples being these rows of `points`; returns the number of cache hits.")
      .def(
          "update_into",
          [](Self& s, In<index_t> id, In<double> coef, const Points<T>* from, In<index_t> row, InOut<double> sum) {
            check_update(s, id, coef, from, row);
            if (index_t(sum.shape(0)) != s.size())
              throw std::invalid_argument("Part.update_into: one number per active sample");
            nb::gil_scoped_release release;
            return s.update(from, id.data(), row.data(), index_t(id.shape(0)), coef.data(), sum.data());
          },
          nb::arg("id"), nb::arg("coef"), nb::arg("points").none(), nb::arg("row"), nb::arg("sum"),
          "The same into `sum`, by active sample, instead of f.")
      .def(
          "movable",
          [](const Self& s, double up0, double up1, double low0, double low1) {
            std::vector<index_t> found;
            {
              nb::gil_scoped_release release;
              found = s.movable(Extremes{{up0, up1}, {low0, low1}});
            }
            return to_numpy(found);
          },
          "Positions of the samples that could still move, given the extremes.")
      .def(
          "restrict",
          [](Self& s, In<index_t> keep) {
            nb::gil_scoped_release release;
            s.restrict_to(keep.data(), index_t(keep.shape(0)));
          },
          nb::arg("keep"), "Keep the samples at these ascending positions; cached rows lose the other columns.")
      .def(
          "take_back",
          [](Self& s, double up0, double up1, double low0, double low1) {
            nb::gil_scoped_release release;
            s.take_back(Extremes{{up0, up1}, {low0, low1}});
          },
          "Samples left out that could move, given the extremes, are active again, behind the others; then fill().")
      .def_prop_ro("cached", [](const Self& s) { return to_numpy(s.cached()); }, nb::rv_policy::move, "Ids of the rows in the cache.")
      .def(
          "fill",
          [](Self& s, index_t begin, In<index_t> id, const Points<T>& from, In<index_t> row) {
            check_rows(id, from, row);
            if (!s.native() || begin < 0 || begin > s.size()) throw std::invalid_argument("Part.fill: nothing to fill");
            nb::gil_scoped_release release;
            s.fill(begin, from, id.data(), row.data(), index_t(id.shape(0)));
          },
          nb::arg("begin"), nb::arg("id"), nb::arg("points"), nb::arg("row"),
          "Cached rows of samples, the rows of `points`, at the active positions from `begin` on.");
}

template <class T>
std::tuple<index_t, double> inner_smo(In2<T> tile, InOut<double> beta, In<double> lo, In<double> hi,
                                      InOut<double> score, In<std::int8_t> group, int groups, double tol,
                                      index_t max_steps, FreeStep* all) {
  const index_t q = index_t(beta.shape(0)), ld = index_t(tile.shape(1));
  if (ld % kLanes<T> != 0 || ld < q || index_t(tile.shape(0)) < q)
    throw std::invalid_argument("inner_smo: pad the tile's rows to a multiple of 16");
  nb::gil_scoped_release release;
  TileRows<T> rows{tile.data(), ld};
  FreeStep own;
  InnerSmo<T> smo(rows, q, beta.data(), lo.data(), hi.data(), score.data(), group.data(), groups, all ? *all : own);
  const SmoReport r = smo.run(tol, max_steps);
  return {r.steps, r.violation};
}

}  // namespace

void bind_decomposition(nb::module_& m) {
  bind_part<float>(m, "Part32");
  bind_part<double>(m, "Part64");
  nb::class_<FreeStep>(m, "FreeStep", "Steps on all free variables: what pairs of the same problem have cost since the last.")
      .def(nb::init<>());
  const char* doc =
      "SMO on a q × q kernel tile (row length padded with finite numbers to a multiple of 16). beta and score are changed in "
      "place; `all` goes from one working set of a problem to the next. Returns (steps, violation).";
  m.def("inner_smo", &inner_smo<float>, nb::arg("tile").noconvert(), nb::arg("beta"), nb::arg("lo"), nb::arg("hi"),
        nb::arg("score"), nb::arg("group"), nb::arg("groups"), nb::arg("tol"), nb::arg("max_steps"),
        nb::arg("all") = nb::none(), doc);
  m.def("inner_smo", &inner_smo<double>, nb::arg("tile").noconvert(), nb::arg("beta"), nb::arg("lo"), nb::arg("hi"),
        nb::arg("score"), nb::arg("group"), nb::arg("groups"), nb::arg("tol"), nb::arg("max_steps"),
        nb::arg("all") = nb::none(), doc);
}

}  // namespace maxmargin
