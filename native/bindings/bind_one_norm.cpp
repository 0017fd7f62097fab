#include "bindings.hpp"
#include "linear/gram.hpp"
#include "linear/model.hpp"
#include "linear/one_norm.hpp"

namespace maxmargin {
namespace {

using namespace linear;
using Doubles = In<double>;

void chosen_gram_step(const Matrix& x, In<index_t> which, Doubles weight, double bias, In<std::int32_t> place,
                      InOut2<double> gram, int threads) {
  const index_t features = cols(x) + (bias != 0 ? 1 : 0), size = index_t(gram.shape(0));
  need(which.shape(0) == weight.shape(0) && index_t(place.shape(0)) == features && gram.shape(1) == gram.shape(0),
       "linear_chosen_gram: shapes do not match");
  for (index_t j = 0; j < features; ++j)
    need(-1 <= place.data()[j] && place.data()[j] < size, "linear_chosen_gram: a feature's place is outside of the matrix");
  nb::gil_scoped_release release;
  chosen_gram(x, which.data(), weight.data(), index_t(which.shape(0)), bias, place.data(), size, gram.data(), threads);
}

std::tuple<index_t, double, index_t> one_norm_step(const Matrix& z, InOut<index_t> features, index_t count, bool fresh,
                                                   Doubles curve, Doubles penalty, Doubles most_bend, InOut<double> w,
                                                   InOut<double> u, std::uint64_t seed) {
  const std::size_t d = std::size_t(rows(z)), n = std::size_t(cols(z));
  need(curve.shape(0) == n && u.shape(0) == n && penalty.shape(0) == d && most_bend.shape(0) == d && w.shape(0) == d &&
           0 <= count && count <= index_t(features.shape(0)),
       "one_norm_epoch: shapes do not match");
  for (index_t k = 0; k < count; ++k)
    need(0 <= features.data()[k] && features.data()[k] < index_t(d), "one_norm_epoch: features must be rows of z");
  nb::gil_scoped_release release;
  const OneNormEpoch e = one_norm_epoch(z, features.data(), count, fresh, curve.data(), penalty.data(), most_bend.data(),
                                        w.data(), u.data(), seed);
  return {e.left, e.largest, e.reads};
}

std::pair<index_t, double> sweeps_step(In2<double> H, Doubles penalty, InOut<double> w, InOut<double> grad, double calm,
                                       index_t most) {
  const std::size_t size = w.shape(0);
  need(H.shape(0) == size && H.shape(1) == size && penalty.shape(0) == size && grad.shape(0) == size,
       "one_norm_sweeps: shapes do not match");
  nb::gil_scoped_release release;
  const Sweeps s = model_sweeps(H.data(), index_t(size), penalty.data(), w.data(), grad.data(), calm, most);
  return {s.count, s.largest};
}

void mirror_step(InOut2<double> H) {
  need(H.shape(0) == H.shape(1), "linear_mirror: the matrix must be square");
  nb::gil_scoped_release release;
  mirror(H.data(), index_t(H.shape(0)));
}

template <class T, class I>
void by_feature_step(const Matrix& x, Doubles sign, Doubles curve, double bias, InOut<T> value, InOut<I> index,
                     InOut<I> start, InOut<double> squares) {
  const std::size_t n = std::size_t(rows(x)), size = std::size_t(cols(x)) + (bias != 0 ? 1 : 0);
  const std::size_t count = std::size_t(std::visit([](const auto& view) { return stored(view); }, x)) + (bias != 0 ? n : 0);
  need(!std::visit([](const auto& view) { return std::decay_t<decltype(view)>::dense; }, x) && sign.shape(0) == n &&
           curve.shape(0) == n && value.shape(0) == count && index.shape(0) == count && start.shape(0) == size + 1 &&
           squares.shape(0) == size,
       "linear_by_feature: shapes do not match");
  nb::gil_scoped_release release;
  by_feature(x, sign.data(), curve.data(), bias, value.data(), index.data(), start.data(), squares.data());
}

template <class T, class I>
void bind_by_feature(nb::module_& m) {
  using namespace nb::literals;
  m.def("linear_by_feature", &by_feature_step<T, I>, "x"_a, "sign"_a, "curve"_a, "bias"_a, "value"_a.noconvert(),
        "index"_a.noconvert(), "start"_a.noconvert(), "squares"_a.noconvert(),
        "A CSR matrix by features: rows of sign_i * x_ij, the constant feature last unless 0, and their sums of curve * x^2.");
}

}  // namespace

void bind_one_norm(nb::module_& m) {
  using namespace nb::literals;
  m.def("linear_chosen_gram", &chosen_gram_step, "x"_a, "rows"_a, "weight"_a, "bias"_a, "place"_a, "gram"_a.noconvert(),
        "threads"_a, "Upper triangle of gram += sum of weight * x x' for the features that have a place in it, not -1; "
        "places ascend, that of the constant feature `bias` (unless 0) last.");
  m.def("one_norm_epoch", &one_norm_step, "z"_a, "features"_a.noconvert(), "count"_a, "fresh"_a, "curve"_a, "penalty"_a,
        "most_bend"_a, "w"_a.noconvert(), "u"_a.noconvert(), "seed"_a,
        "One epoch of coordinate descent under the 1-norm over features[:count] (rows of z): shuffled if fresh, else those "
        "that rest at 0 leave. (features left, largest violation, entries read).");
  m.def("one_norm_sweeps", &sweeps_step, "H"_a, "penalty"_a, "w"_a.noconvert(), "grad"_a.noconvert(), "calm"_a, "most"_a,
        "Coordinate descent on the model of Hessian H under the 1-norm, until the violation seen is at most calm; w and the "
        "model's gradient move. (sweeps, largest violation of the last).");
  m.def("linear_mirror", &mirror_step, "H"_a.noconvert(), "The lower triangle of H from its upper one.");
  bind_by_feature<float, std::int32_t>(m);
  bind_by_feature<float, std::int64_t>(m);
  bind_by_feature<double, std::int32_t>(m);
  bind_by_feature<double, std::int64_t>(m);
}

}  // namespace maxmargin
