#include <stdexcept>

#include "bindings.hpp"
#include "linear/cutting_plane.hpp"
#include "linear/descent.hpp"
#include "linear/gram.hpp"
#include "linear/joint.hpp"
#include "linear/reduced.hpp"
#include "linear/search.hpp"

namespace maxmargin {
namespace {

using namespace linear;
using Doubles = In<double>;

Loss loss_named(const std::string& name) {
  if (name == "hinge") return Loss::hinge;
  if (name == "squared_hinge") return Loss::squared;
  throw std::invalid_argument("loss must be 'hinge' or 'squared_hinge'");
}

// Whether there is one hinge per sample, or two.
bool of_samples(index_t hinges, index_t n) { return hinges == n || hinges == 2 * n; }

void outputs_step(const Matrix& x, Doubles w, double bias, Doubles sign, Doubles shift, index_t begin, index_t end,
                  InOut<double> out, int threads) {
  const index_t n = rows(x), hinges = index_t(out.shape(0));
  need(index_t(w.shape(0)) == cols(x) && of_samples(hinges, n) && index_t(sign.shape(0)) == hinges &&
           (index_t(shift.shape(0)) == hinges || shift.shape(0) == 0) && 0 <= begin && end <= n,
       "linear_outputs: shapes do not match");
  nb::gil_scoped_release release;
  outputs(x, w.data(), bias, sign.data(), shift.shape(0) ? shift.data() : nullptr, hinges, begin, end, out.data(), threads);
}

void sum_rows_step(const Matrix& x, Doubles coef, InOut<double> sum, int threads) {
  need(index_t(coef.shape(0)) == rows(x) && index_t(sum.shape(0)) == cols(x), "linear_sum_rows: shapes do not match");
  nb::gil_scoped_release release;
  sum_rows(x, coef.data(), sum.data(), threads);
}

index_t add_rows_step(const Matrix& x, In<index_t> which, Doubles coef, InOut<double> sum, int threads) {
  need(which.shape(0) == coef.shape(0) && index_t(sum.shape(0)) == cols(x), "linear_add_rows: shapes do not match");
  nb::gil_scoped_release release;
  return add_rows(x, which.data(), coef.data(), index_t(which.shape(0)), sum.data(), threads);
}

template <class G>
void gram_step(const Matrix& x, In<index_t> which, Doubles weight, double bias, bool precise, InOut2<G> gram,
               int threads) {
  const index_t size = cols(x) + (bias != 0 ? 1 : 0);
  need(which.shape(0) == weight.shape(0) && index_t(gram.shape(0)) == size && index_t(gram.shape(1)) == size,
       "linear_gram: shapes do not match");
  nb::gil_scoped_release release;
  const index_t count = index_t(which.shape(0));
  if (precise) weighted_gram<double>(x, which.data(), weight.data(), count, bias, gram.data(), threads);
  else weighted_gram<float>(x, which.data(), weight.data(), count, bias, gram.data(), threads);
}

void product_step(const Matrix& x, In<index_t> which, Doubles weight, double bias, Doubles p, InOut<double> out,
                  int threads) {
  const index_t size = cols(x) + (bias != 0 ? 1 : 0);
  need(which.shape(0) == weight.shape(0) && index_t(p.shape(0)) == size && index_t(out.shape(0)) == size,
       "linear_product: shapes do not match");
  nb::gil_scoped_release release;
  band_product(x, which.data(), weight.data(), index_t(which.shape(0)), bias, p.data(), out.data(), threads);
}

using DualsTuple =
    std::tuple<Array<index_t>, Array<double>, Array<index_t>, Array<double>, double, double, double>;

// One member of all parts as one array.
template <class T>
Array<T> joined(const std::vector<Duals>& parts, std::vector<T> Duals::*member) {
  std::size_t size = 0;
  for (const Duals& part : parts) size += (part.*member).size();
  auto* all = new T[size];
  nb::capsule owner(all, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  T* to = all;
  for (const Duals& part : parts) to = std::copy((part.*member).begin(), (part.*member).end(), to);
  return Array<T>(all, {size}, owner);
}

DualsTuple duals_step(const std::string& loss, double h, double lazy, Doubles m, Doubles other, double mix, Doubles weight,
                     Doubles sign, Doubles path, InOut<double> alpha, int threads) {
  const Loss kind = loss_named(loss);
  const std::size_t n = m.shape(0);
  need(other.shape(0) == n && weight.shape(0) == n && sign.shape(0) == n && alpha.shape(0) == n &&
           (path.shape(0) == n || path.shape(0) == 0),
       "linear_duals: shapes do not match");
  std::vector<Duals> parts;
  {
    nb::gil_scoped_release release;
    parts = duals(kind, h, lazy, m.data(), other.data(), mix, weight.data(), sign.data(),
                  path.shape(0) ? path.data() : nullptr, alpha.data(), index_t(n), threads);
  }
  double total = 0, risk = 0, mass = 0;
  for (const Duals& part : parts) total += part.total, risk += part.loss, mass += part.mass;
  return {joined(parts, &Duals::rows), joined(parts, &Duals::delta), joined(parts, &Duals::band),
          joined(parts, &Duals::slope), total, risk, mass};
}

void predict_step(double h, Doubles m, Doubles q, Doubles weight, InOut<double> path, int threads) {
  const std::size_t n = m.shape(0);
  need(q.shape(0) == n && weight.shape(0) == n && path.shape(0) == n, "linear_predict: shapes do not match");
  nb::gil_scoped_release release;
  predict_duals(h, m.data(), q.data(), weight.data(), path.data(), index_t(n), threads);
}

std::pair<double, double> slope_step(const std::string& loss, double h, Doubles m, Doubles q, Doubles weight, double k,
                                     int threads) {
  const Loss kind = loss_named(loss);
  need(q.shape(0) == m.shape(0) && weight.shape(0) == m.shape(0), "linear_slope: shapes do not match");
  nb::gil_scoped_release release;
  const Slope s = smooth_slope(kind, h, m.data(), q.data(), weight.data(), k, index_t(m.shape(0)), threads);
  return {s.first, s.second};
}

double advance_step(const std::string& loss, InOut<double> m, Doubles q, double k, Doubles weight, int threads) {
  const Loss kind = loss_named(loss);
  need(q.shape(0) == m.shape(0) && weight.shape(0) == m.shape(0), "linear_advance: shapes do not match");
  nb::gil_scoped_release release;
  return advance(kind, m.data(), q.data(), k, weight.data(), index_t(m.shape(0)), threads);
}

double search_step(Doubles m, Doubles q, Doubles weight, double quad, double lin, int threads) {
  need(q.shape(0) == m.shape(0) && weight.shape(0) == m.shape(0), "hinge_search: shapes do not match");
  nb::gil_scoped_release release;
  return hinge_search(m.data(), q.data(), weight.data(), quad, lin, index_t(m.shape(0)), threads);
}

double hinge_slope_step(Doubles m, Doubles q, Doubles weight, int threads) {
  need(q.shape(0) == m.shape(0) && weight.shape(0) == m.shape(0), "hinge_slope: shapes do not match");
  nb::gil_scoped_release release;
  return hinge_slope(m.data(), q.data(), weight.data(), index_t(m.shape(0)), threads);
}

auto hinge_rises_step(Doubles m, Doubles q, Doubles weight, double low, double high, int threads) {
  need(q.shape(0) == m.shape(0) && weight.shape(0) == m.shape(0), "hinge_rises: shapes do not match");
  std::vector<double> rise;
  {
    nb::gil_scoped_release release;
    rise = hinge_rises(Buckets(low, high), m.data(), q.data(), weight.data(), index_t(m.shape(0)), threads);
  }
  return to_numpy(rise);
}

auto hinge_bucket_step(Doubles m, Doubles q, Doubles weight, double low, double high, int bucket, int threads) {
  need(q.shape(0) == m.shape(0) && weight.shape(0) == m.shape(0), "hinge_bucket: shapes do not match");
  std::vector<double> at, jump;
  {
    nb::gil_scoped_release release;
    for (const Hinge& hinge : hinges_of(Buckets(low, high), bucket, m.data(), q.data(), weight.data(),
                                        index_t(m.shape(0)), threads))
      at.push_back(hinge.at), jump.push_back(hinge.jump);
  }
  return std::make_pair(to_numpy(at), to_numpy(jump));
}

std::tuple<index_t, double, double, double, index_t> descent_step(const Matrix& x, InOut<index_t> active, index_t count,
                                                                  Doubles sign, Doubles target, Doubles upper,
                                                                  Doubles diag, Doubles norms, double bias,
                                                                  double offset, double above, double below,
                                                                  InOut<double> alpha, InOut<double> w,
                                                                  std::uint64_t seed) {
  const std::size_t n = std::size_t(rows(x)), hinges = alpha.shape(0);
  need(of_samples(index_t(hinges), index_t(n)) && sign.shape(0) == hinges && upper.shape(0) == hinges &&
           diag.shape(0) == hinges && norms.shape(0) == n && (target.shape(0) == hinges || target.shape(0) == 0) &&
           index_t(w.shape(0)) == cols(x) + (bias != 0 ? 1 : 0) && count <= index_t(active.shape(0)),
       "descent_epoch: shapes do not match");
  nb::gil_scoped_release release;
  const Epoch e = descent_epoch(x, active.data(), count, index_t(hinges), sign.data(),
                                target.shape(0) ? target.data() : nullptr, upper.data(), diag.data(), norms.data(), bias,
                                offset, above, below, alpha.data(), w.data(), seed);
  return {e.active, e.largest, e.smallest, e.moved, e.steps};
}

void norms_step(const Matrix& x, InOut<double> out, int threads) {
  need(index_t(out.shape(0)) == rows(x), "linear_norms: shapes do not match");
  nb::gil_scoped_release release;
  row_norms(x, out.data(), threads);
}

double extents_step(const Matrix& x, InOut<double> out, int threads) {
  need(index_t(out.shape(0)) == cols(x), "linear_extents: shapes do not match");
  nb::gil_scoped_release release;
  return extents(x, out.data(), threads);
}

void joint_outputs_step(const Matrix& x, In2<double> w, Doubles shift, index_t begin, index_t end, InOut2<double> out,
                        int threads) {
  const std::size_t n = std::size_t(rows(x)), classes = w.shape(0);
  need(index_t(w.shape(1)) == cols(x) && shift.shape(0) == classes && out.shape(0) == n && out.shape(1) == classes &&
           0 <= begin && end <= index_t(n),
       "joint_outputs: shapes do not match");
  nb::gil_scoped_release release;
  joint_outputs(x, w.data(), shift.data(), index_t(classes), begin, end, out.data(), threads);
}

void joint_add_step(const Matrix& x, In<index_t> which, Doubles coef, In<index_t> starts, InOut2<double> sum,
                    int threads) {
  const std::size_t classes = sum.shape(0);
  need(which.shape(0) == coef.shape(0) && index_t(sum.shape(1)) == cols(x) && starts.shape(0) == classes + 1 &&
           starts(classes) == index_t(which.shape(0)),
       "joint_add: shapes do not match");
  nb::gil_scoped_release release;
  joint_add(x, which.data(), coef.data(), starts.data(), index_t(classes), sum.data(), threads);
}

void joint_worst_step(In2<double> s, In2<double> other, double mix, In<index_t> label, InOut<index_t> out, int threads) {
  const std::size_t n = s.shape(0), classes = s.shape(1);
  need(other.shape(0) == n && other.shape(1) == classes && label.shape(0) == n && out.shape(0) == n,
       "joint_worst: shapes do not match");
  nb::gil_scoped_release release;
  joint_worst(s.data(), other.data(), mix, label.data(), index_t(n), index_t(classes), out.data(), threads);
}

double joint_advance_step(InOut2<double> s, In2<double> q, double k, In<index_t> label, Doubles weight, int threads) {
  const std::size_t n = s.shape(0), classes = s.shape(1);
  need(q.shape(0) == n && q.shape(1) == classes && label.shape(0) == n && weight.shape(0) == n,
       "joint_advance: shapes do not match");
  nb::gil_scoped_release release;
  return joint_advance(s.data(), q.data(), k, label.data(), weight.data(), index_t(n), index_t(classes), threads);
}

double joint_search_step(In2<double> s, In2<double> q, In<index_t> label, Doubles weight, double quad, double lin,
                         double far, int threads) {
  const std::size_t n = s.shape(0), classes = s.shape(1);
  need(q.shape(0) == n && q.shape(1) == classes && label.shape(0) == n && weight.shape(0) == n,
       "joint_search: shapes do not match");
  nb::gil_scoped_release release;
  return joint_search(s.data(), q.data(), label.data(), weight.data(), quad, lin, far, index_t(n), index_t(classes),
                      threads);
}

std::pair<double, index_t> joint_epoch_step(const Matrix& x, InOut<index_t> which, In<index_t> label, Doubles upper, Doubles norms,
                      double bias, Doubles offset, InOut2<double> beta, InOut2<double> v, std::uint64_t seed) {
  const std::size_t n = std::size_t(rows(x)), classes = v.shape(0);
  need(label.shape(0) == n && upper.shape(0) == n && norms.shape(0) == n && offset.shape(0) == classes &&
           beta.shape(0) == n && beta.shape(1) == classes && index_t(v.shape(1)) == cols(x) + (bias != 0 ? 1 : 0),
       "joint_epoch: shapes do not match");
  nb::gil_scoped_release release;
  return joint_epoch(x, which.data(), index_t(which.shape(0)), label.data(), upper.data(), norms.data(), bias, offset.data(),
              beta.data(), v.data(), index_t(classes), seed);
}

Array<double> reduced_step(In2<double> gram, Doubles offset, double C, In2<double> balance, Doubles size, double level,
                           InOut<double> beta) {
  const std::size_t t = offset.shape(0);
  need(t > 0 && gram.shape(0) >= t && gram.shape(1) >= t && balance.shape(1) == t && size.shape(0) == t &&
           beta.shape(0) == t,
       "reduced_problem: shapes do not match");
  std::vector<double> intercepts;
  {
    nb::gil_scoped_release release;
    intercepts = reduced_problem(gram.data(), index_t(gram.shape(1)), offset.data(), C, balance.data(),
                                 index_t(balance.shape(0)), size.data(), level, index_t(t), beta.data());
  }
  return to_numpy(intercepts);
}

}  // namespace

void bind_linear(nb::module_& m) {
  using namespace nb::literals;
  m.def("linear_outputs", &outputs_step, "x"_a, "w"_a, "bias"_a, "sign"_a, "shift"_a, "begin"_a, "end"_a,
        "out"_a.noconvert(), "threads"_a,
        "out_i = sign_i * (<x_i, w> + bias) + shift_i (empty: 0) for begin <= i < end and their second hinges, if there are.");
  m.def("linear_add_rows", &add_rows_step, "x"_a, "rows"_a, "coef"_a, "sum"_a.noconvert(), "threads"_a,
        "sum += sum over k of coef_k * x[rows_k]; returns the most additions that a term goes through.");
  m.def("linear_sum_rows", &sum_rows_step, "x"_a, "coef"_a, "sum"_a.noconvert(), "threads"_a,
        "sum += sum over i of coef_i * x_i; rows whose coef is 0 are not read.");
  m.def("linear_gram", &gram_step<double>, "x"_a, "rows"_a, "weight"_a, "bias"_a, "precise"_a, "gram"_a.noconvert(),
        "threads"_a);
  m.def("linear_gram", &gram_step<float>, "x"_a, "rows"_a, "weight"_a, "bias"_a, "precise"_a, "gram"_a.noconvert(),
        "threads"_a, "Upper triangle of gram += sum of weight * x x', x with the constant feature `bias` unless 0.");
  m.def("linear_product", &product_step, "x"_a, "rows"_a, "weight"_a, "bias"_a, "p"_a, "out"_a.noconvert(),
        "threads"_a, "out = sum of weight * x <x, p> over the rows, x with the constant feature `bias` unless 0.");
  m.def("linear_norms", &norms_step, "x"_a, "out"_a.noconvert(), "threads"_a, "out_i = <x_i, x_i>.");
  m.def("linear_extents", &extents_step, "x"_a, "largest"_a.noconvert(), "threads"_a,
        "largest_j = max over i of |x_ij|; returns the largest <x_i, x_i>.");
  m.def("linear_duals", &duals_step, "loss"_a, "h"_a, "lazy"_a, "m"_a, "other"_a, "mix"_a, "weight"_a, "sign"_a,
        "path"_a, "alpha"_a.noconvert(), "threads"_a,
        "Duals at margins (1-mix)*m + mix*other: (changed rows, sign*delta, band, slopes, offset, loss, sum of duals).");
  m.def("linear_predict", &predict_step, "h"_a, "m"_a, "q"_a, "weight"_a, "path"_a.noconvert(), "threads"_a,
        "path = the duals of the rounded hinge that its linearisation promises after the step q from margins m.");
  m.def("linear_slope", &slope_step, "loss"_a, "h"_a, "m"_a, "q"_a, "weight"_a, "k"_a, "threads"_a,
        "First and second derivative of the smooth risk at margins m + k*q.");
  m.def("linear_advance", &advance_step, "loss"_a, "m"_a.noconvert(), "q"_a, "k"_a, "weight"_a, "threads"_a,
        "m += k*q; the risk there.");
  m.def("hinge_search", &search_step, "m"_a, "q"_a, "weight"_a, "quad"_a, "lin"_a, "threads"_a,
        "argmin over k >= 0 of quad/2 k^2 + lin k + sum of weight * max(0, 1 - m - k q), exactly.");
  m.def("hinge_slope", &hinge_slope_step, "m"_a, "q"_a, "weight"_a, "threads"_a,
        "Minus the derivative of that sum just right of k = 0. With the next two: hinge_search over many processes.");
  m.def("hinge_rises", &hinge_rises_step, "m"_a, "q"_a, "weight"_a, "low"_a, "high"_a, "threads"_a,
        "By how much the derivative rises in each of 512 parts of [low, high), beyond them, and elsewhere.");
  m.def("hinge_bucket", &hinge_bucket_step, "m"_a, "q"_a, "weight"_a, "low"_a, "high"_a, "bucket"_a, "threads"_a,
        "Where the hinges of one of those parts are, and by how much the derivative rises at each.");
  m.def("joint_outputs", &joint_outputs_step, "x"_a, "w"_a, "shift"_a, "begin"_a, "end"_a, "out"_a.noconvert(),
        "threads"_a, "out[i, c] = <x_i, w_c> + shift_c for begin <= i < end.");
  m.def("joint_add", &joint_add_step, "x"_a, "rows"_a, "coef"_a, "starts"_a, "sum"_a.noconvert(), "threads"_a,
        "sum[c] += sum of coef_k * x[rows_k] over starts_c <= k < starts_{c+1}.");
  m.def("joint_worst", &joint_worst_step, "s"_a, "other"_a, "mix"_a, "label"_a, "out"_a.noconvert(), "threads"_a,
        "out_i = the class with the largest joint loss at scores (1-mix)*s + mix*other.");
  m.def("joint_advance", &joint_advance_step, "s"_a.noconvert(), "q"_a, "k"_a, "label"_a, "weight"_a, "threads"_a,
        "s += k*q; the joint risk there.");
  m.def("joint_search", &joint_search_step, "s"_a, "q"_a, "label"_a, "weight"_a, "quad"_a, "lin"_a, "far"_a,
        "threads"_a, "argmin over 0 <= k <= far of quad/2 k^2 + lin k + joint risk at s + k q, exactly.");
  m.def("joint_epoch", &joint_epoch_step, "x"_a, "rows"_a.noconvert(), "label"_a, "upper"_a, "norms"_a, "bias"_a,
        "offset"_a, "beta"_a.noconvert(), "v"_a.noconvert(), "seed"_a,
        "Dual descent for the joint problem, once over the rows: beta (n x K) and the sums v = beta' x. Shuffles rows. "
        "(sum of |steps|, samples that moved)");
  m.def("reduced_problem", &reduced_step, "gram"_a, "offset"_a, "C"_a, "balance"_a, "size"_a, "level"_a,
        "beta"_a.noconvert(),
        "beta = argmax of C b'beta - C^2/2 beta'G beta, beta >= 0, sum <= 1, balance beta = 0, from a feasible beta; "
        "returns the intercepts. Cuts have the sizes given, the value that of level.");
  m.def("descent_epoch", &descent_step, "x"_a, "active"_a.noconvert(), "count"_a, "sign"_a, "target"_a, "upper"_a,
        "diag"_a, "norms"_a, "bias"_a, "offset"_a, "above"_a, "below"_a, "alpha"_a.noconvert(), "w"_a.noconvert(), "seed"_a,
        "One epoch of dual coordinate descent over the samples active[:count], with one hinge each, or two; targets: empty "
        "for 1. (samples left, largest and smallest projected gradient, "
        "sum of |steps|, their number).");
}

}  // namespace maxmargin
