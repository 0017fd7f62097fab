#include "bindings.hpp"
#include "budget/predict.hpp"
#include "budget/sgd.hpp"

namespace maxmargin {
namespace {

using namespace budget;
using nb::literals::operator""_a;

template <class T>
using Array2 = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

// A new NumPy matrix filled by entry(row, column).
template <class T, class Entry>
Array2<T> make2(index_t rows, index_t cols, Entry entry) {
  auto* data = new T[std::size_t(rows) * cols];
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < cols; ++j) data[i * cols + j] = entry(i, j);
  return Array2<T>(data, {std::size_t(rows), std::size_t(cols)}, owner);
}

using Numbers = nb::typed<nb::dict, nb::str, double>;
using State = nb::typed<nb::dict, nb::str, nb::any>;

Numbers counters(const Counters& c) {
  Numbers out;
#define MM_COUNTER(name) out[#name] = c.name;
  MM_COUNTER(steps) MM_COUNTER(violations) MM_COUNTER(duplicates) MM_COUNTER(merges) MM_COUNTER(removals)
  MM_COUNTER(projections) MM_COUNTER(degradation) MM_COUNTER(loss) MM_COUNTER(correct) MM_COUNTER(weight)
  MM_COUNTER(search_seconds) MM_COUNTER(merge_seconds) MM_COUNTER(audits) MM_COUNTER(same_wd_precise)
  MM_COUNTER(same_gss_precise) MM_COUNTER(same_wd_gss) MM_COUNTER(factor_wd) MM_COUNTER(factor_gss)
  MM_COUNTER(useless_wd) MM_COUNTER(useless_gss) MM_COUNTER(total_precise) MM_COUNTER(total_wd) MM_COUNTER(total_gss)
#undef MM_COUNTER
  return out;
}

template <class Real>
State state(Sgd<Real>& sgd) {
  const Model<Real>& model = sgd.model();
  std::vector<std::int32_t> label(model.label.data(), model.label.data() + model.count);
  std::vector<std::int64_t> born(model.born.data(), model.born.data() + model.count);
  State out;
  out["centres"] = make2<Real>(model.count, model.panels.features(),
                               [&](index_t j, index_t k) { return model.panels.at(j, k); });
  out["beta"] = make2<double>(model.outputs, model.count,
                              [&](index_t c, index_t j) { return model.beta[c * model.padded + j]; });
  // Rows of windows: the older window's outputs, then the newer one's; the last column is the intercept's.
  out["windows"] = make2<double>(2 * model.outputs, model.count + 1, [&](index_t r, index_t j) {
    const index_t w = r / model.outputs, c = r % model.outputs;
    return j < model.count ? model.window[w][c * model.padded + j] : model.bias_window[w][c];
  });
  out["label"] = to_numpy(label);
  out["born"] = to_numpy(born);
  out["bias"] = to_numpy(model.bias);
  out["clock"] = to_numpy(std::vector<double>{model.time, model.window_start[0], model.window_start[1],
                                              model.next_window, model.moves});
  return out;
}

template <class Real>
void restore(Sgd<Real>& sgd, In2<Real> centres, In2<double> beta, In2<double> windows, In<std::int32_t> label,
             In<std::int64_t> born, In<double> bias, In<double> clock) {
  Model<Real>& model = sgd.model();
  const index_t n = index_t(centres.shape(0));
  if (model.count != 0 || n > model.slots || index_t(centres.shape(1)) != model.panels.features() ||
      index_t(beta.shape(0)) != model.outputs || index_t(bias.shape(0)) != model.outputs ||
      index_t(windows.shape(0)) != 2 * model.outputs || index_t(windows.shape(1)) != n + 1 || clock.shape(0) != 5)
    throw std::invalid_argument("restore: the state does not fit this model");
  std::vector<double> delta(model.outputs);
  model.time = clock(0);
  model.window_start[0] = clock(1), model.window_start[1] = clock(2), model.next_window = clock(3);
  model.moves = clock(4);
  for (index_t j = 0; j < n; ++j) {
    for (index_t c = 0; c < model.outputs; ++c) delta[c] = beta(c, j);
    model.insert(centres.data() + j * model.panels.features(), delta.data(), label(j));
    model.born[j] = born(j);
    for (index_t r = 0; r < 2 * model.outputs; ++r)
      model.window[r / model.outputs][(r % model.outputs) * model.padded + j] = windows(r, j);
  }
  model.bias.assign(bias.data(), bias.data() + model.outputs);
  for (index_t r = 0; r < 2 * model.outputs; ++r)
    model.bias_window[r / model.outputs][r % model.outputs] = windows(r, n);
}

template <class Real>
void run(Sgd<Real>& sgd, const Matrix& x, In<std::int64_t> order, In<std::int32_t> labels, In<double> weights) {
  if (cols(x) != sgd.model().panels.features()) throw std::invalid_argument("run: wrong number of features");
  std::visit([&](const auto& view) { sgd.run(view, order.data(), index_t(order.size()), labels.data(), weights.data()); },
             x);
}

void require(bool fits) {
  if (!fits) throw std::invalid_argument("budget: shapes of samples, centres, coefficients and result do not fit");
}

template <class Real>
void bind_sgd(nb::module_& m, const char* name) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Sgd<Real>>(m, name, "Budgeted stochastic gradient descent: model, counters and steps.")
      .def(
          "__init__",
          [](Sgd<Real>* self, index_t budget, index_t slots, index_t features, index_t outputs, double gamma, double lam,
             bool intercept, int maintenance, int search, std::shared_ptr<MergeTable> table, bool drop, bool audit) {
            new (self) Sgd<Real>({budget, slots, features, outputs}, gamma, lam, intercept,
                                 {Maintenance(maintenance), Search(search), std::move(table), drop, audit});
          },
          "budget"_a, "slots"_a, "features"_a, "outputs"_a, "gamma"_a, "lam"_a, "intercept"_a, "maintenance"_a,
          "search"_a, nb::arg("table").none(), "drop"_a, "audit"_a,
          "The table may be None where nothing is looked up. `slots` of the budget will do for the rows to come.")
      .def("run", &run<Real>, Release(), "x"_a, "order"_a, "labels"_a, "weights"_a,
           "One step per entry of order, a row of x; labels and weights are indexed by row.")
      .def("reduce", &Sgd<Real>::reduce, Release(), "steps"_a,
           "Of a model restored with more than its budget: so many support vectors less, down to the budget.")
      .def("state", &state<Real>, "The model as arrays.")
      .def("restore", &restore<Real>, "centres"_a, "beta"_a, "windows"_a, "label"_a, "born"_a, "bias"_a,
           "clock"_a, "Take up the state of an earlier run.")
      .def(
          "take_counters",
          [](Sgd<Real>& self) {
            Numbers out = counters(self.model().counters);
            self.model().counters = Counters();
            return out;
          },
          "What happened since they were taken last.")
      .def_prop_ro("count", [](Sgd<Real>& self) { return self.model().count; });
  m.def(
      "budget_decide",
      [](const Matrix& x, In<std::int64_t> rows, In2<Real> centres, In2<double> coef, double gamma, InOut2<double> out,
         int threads) {
        require(cols(x) == index_t(centres.shape(1)) && coef.shape(1) == centres.shape(0) &&
                out.shape(0) == rows.size() && out.shape(1) == coef.shape(0));
        std::visit(
            [&](const auto& view) {
              decide<Real>(view, rows.data(), index_t(rows.size()), centres.data(), index_t(centres.shape(0)),
                           coef.data(), index_t(coef.shape(0)), gamma, out.data(), threads);
            },
            x);
      },
      Release(), "x"_a, "rows"_a, nb::arg("centres").noconvert(), "coef"_a, "gamma"_a, "out"_a, "threads"_a,
      "out[i, c] = sum_j coef[c, j] exp(-gamma |x_rows[i] - centre_j|^2).");
  m.def(
      "budget_kernel",
      [](const Matrix& x, In<std::int64_t> rows, In2<Real> centres, double gamma,
         nb::ndarray<Real, nb::ndim<2>, nb::device::cpu> out, int threads) {
        require(cols(x) == index_t(centres.shape(1)) && out.shape(0) == rows.size() &&
                out.shape(1) == centres.shape(0) && (out.shape(1) < 2 || out.stride(1) == 1));
        std::visit(
            [&](const auto& view) {
              kernel_rows<Real>(view, rows.data(), index_t(rows.size()), centres.data(), index_t(centres.shape(0)), gamma,
                                out.data(), index_t(out.stride(0)), threads);
            },
            x);
      },
      Release(), "x"_a, "rows"_a, nb::arg("centres").noconvert(), "gamma"_a, nb::arg("out").noconvert(), "threads"_a,
      "out[i, j] = exp(-gamma |x_rows[i] - centre_j|^2); the entries of a row of out must be neighbours.");
}

}  // namespace

void bind_budget(nb::module_& m) {
  nb::class_<MergeTable>(m, "MergeTable", "Degradation and h of the merging problem on a square grid: the scaled layout, or the uniform one of the paper.")
      .def(
          "__init__",
          [](MergeTable* self, In2<float> degradation, In2<float> mixing, bool uniform) {
            if (degradation.shape(0) != degradation.shape(1) || degradation.shape(0) < 2 ||
                mixing.shape(0) != degradation.shape(0) || mixing.shape(1) != degradation.shape(1))
              throw std::invalid_argument("MergeTable: two square grids of one size are needed");
            new (self) MergeTable{int(degradation.shape(0)),
                                  uniform,
                                  {degradation.data(), degradation.data() + degradation.size()},
                                  {mixing.data(), mixing.data() + mixing.size()}};
          },
          "degradation"_a, "mixing"_a, "uniform"_a);
  bind_sgd<float>(m, "BudgetSgd32");
  bind_sgd<double>(m, "BudgetSgd64");
}

}  // namespace maxmargin
