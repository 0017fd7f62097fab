// Budgeted stochastic gradient descent for the kernel SVM: Pegasos steps on at most `budget` support vectors.
//
//     minimise  lambda/2 |w|^2 + 1/n sum_i loss(y_i, <w, phi(x_i)>),   loss(y, f) = max(0, 1 - y f)
//
// Step t on (x, y) of weight c:   w <- (1 - 1/t) w + [y f(x) < 1] c y phi(x) / (lambda t),
// that is beta = c y for a violator and nothing else (budget/model.hpp). An intercept is a constant feature of value 1;
// it needs no slot. Several outputs (one-vs-rest) share support vectors and kernel values; a violator's coefficient is
// zero for the outputs whose margin it keeps.
//
// Blocks: t = gamma |x - s|^2 of kSamples samples is measured against the whole model at once; each sample in turn
// measures again only the panels that changed since. The numbers equal those of one sample at a time.
//
// Cost of a step: budget * (features + one exp); of a merge: one search over the budget and one blended row.
#pragma once
#include "budget/maintenance.hpp"

namespace maxmargin::budget {

// sum_j coef_j kernel_j, lane by lane and then over the lanes in double; Kernel maps a slot to its kernel value.
template <class Real, class Kernel>
double expansion(const Real* coef, index_t n, Kernel kernel) {
  Real sum[kPanelLanes] = {};
  for (index_t j = 0; j < n; j += kPanelLanes)
#pragma omp simd
    for (int v = 0; v < kPanelLanes; ++v) sum[v] += coef[j + v] * kernel(j + v);
  double total = 0;
  for (int v = 0; v < kPanelLanes; ++v) total += sum[v];
  return total;
}

// output_c = sum_j coef_cj exp(-t_j) for all outputs, exp computed once; `kernel` is scratch for n numbers.
template <class Real>
void expansions(const Real* t, index_t n, const Real* coef, index_t stride, index_t outputs, Real* kernel,
                double* output) {
  if (outputs == 1) {
    output[0] = expansion(coef, n, [t](index_t j) { return exp(-t[j]); });
    return;
  }
#pragma omp simd
  for (index_t j = 0; j < n; ++j) kernel[j] = exp(-t[j]);
  for (index_t c = 0; c < outputs; ++c)
    output[c] = expansion(coef + c * stride, n, [kernel](index_t j) { return kernel[j]; });
}

template <class Real>
class Sgd {
 public:
  static constexpr int kSamples = 8;  // their t rows (8 x 512 floats) stay in L1

  Sgd(const Shape& shape, double gamma, double lambda, bool intercept, const Rules& rules)
      : model_(shape, gamma),
        maintainer_(model_, rules),
        lambda_(lambda),
        intercept_(intercept),
        block_(std::size_t(kSamples) * model_.padded),
        kernel_(model_.padded),
        output_(shape.outputs),
        delta_(shape.outputs) {}
  Sgd(const Sgd&) = delete;  // the maintainer refers to the model

  Model<Real>& model() { return model_; }
  void reduce(index_t steps) { maintainer_.reduce(steps); }

  // Steps on the rows order[0..n) of x. Labels and weights are indexed by row; label 1 of a single output is +1.
  template <class View>
  void run(const View& x, const std::int64_t* order, index_t n, const std::int32_t* labels, const double* weights) {
    SampleReader<Real, View> reader(x, kSamples, model_.gamma);
    typename SampleReader<Real, View>::Sample samples[kSamples];
    for (index_t begin = 0; begin < n; begin += kSamples) {
      const int size = int(std::min<index_t>(kSamples, n - begin));
      for (int i = 0; i < size; ++i) samples[i] = reader.read(order[begin + i], i);
      model_.changed.clear();
      model_.panels.measure_block(samples, size, model_.panels_in_use(), model_.gamma, block_.data(), model_.padded);
      for (int i = 0; i < size; ++i) {
        Real* t = block_.data() + i * model_.padded;
        for (index_t p : model_.changed) model_.panels.measure_panel(p, samples[i], model_.gamma, t + p * kPanelLanes);
        const index_t row = order[begin + i];
        if (violates(t, labels[row], weights[row])) learn(reader.dense(samples[i]), t, labels[row]);
      }
    }
  }

 private:
  // Judge one sample before learning from it; its coefficients, should it violate a margin, go to delta_.
  bool violates(const Real* t, std::int32_t label, double weight) {
    const index_t outputs = model_.outputs;
    expansions(t, model_.slots_in_use(), model_.coef.data(), model_.padded, outputs, kernel_.data(), output_.data());
    const double scale = model_.time > 0 ? 1 / (lambda_ * model_.time) : 0.0;
    model_.turn_windows();
    model_.time += 1;
    bool violation = false;
    double loss = 0;
    index_t best = 0;
    for (index_t c = 0; c < outputs; ++c) {
      const double y = label == (outputs == 1 ? 1 : c) ? 1 : -1;
      output_[c] = scale * (output_[c] + model_.bias[c]);
      const double lack = 1 - y * output_[c];
      delta_[c] = lack > 0 ? y * weight : 0.0;
      violation |= lack > 0;
      loss += lack > 0 ? lack : 0.0;
      if (output_[c] > output_[best]) best = c;
    }
    const index_t predicted = outputs == 1 ? index_t(output_[0] > 0) : best;
    Counters& counters = model_.counters;
    counters.steps += 1;
    counters.violations += violation;
    counters.loss += weight * loss;
    counters.correct += predicted == label ? weight : 0.0;
    counters.weight += weight;
    return violation && weight > 0;
  }

  void learn(const Real* x, const Real* t, std::int32_t label) {
    if (intercept_)
      for (index_t c = 0; c < model_.outputs; ++c) {
        model_.bias[c] += delta_[c];
        for (auto& sums : model_.bias_window) sums[c] -= delta_[c] * (model_.time - 1);
      }
    const index_t twin = same_point(t, label);
    if (twin >= 0) {
      for (index_t c = 0; c < model_.outputs; ++c) {
        const std::size_t at = c * model_.padded + twin;
        model_.set_beta(at, model_.beta[at] + delta_[c], 1);
      }
      model_.refresh(twin);
      model_.counters.duplicates += 1;
    } else if (model_.count < model_.budget) {
      model_.insert(x, delta_.data(), label);
    } else {
      maintainer_.add(x, t, delta_.data(), label);
    }
  }

  // A support vector of this label at distance 0, or -1: adding to it is exact and free.
  index_t same_point(const Real* t, std::int32_t label) const {
    const std::int32_t* labels = model_.label.data();
    int found = 0;
#pragma omp simd reduction(| : found)
    for (index_t j = 0; j < model_.count; ++j) found |= int(t[j] == 0) & int(labels[j] == label);
    if (found)
      for (index_t j = 0; j < model_.count; ++j)
        if (t[j] == 0 && labels[j] == label) return j;
    return -1;
  }

  Model<Real> model_;
  Maintainer<Real> maintainer_;
  const double lambda_;
  const bool intercept_;
  Aligned<Real> block_, kernel_;
  std::vector<double> output_, delta_;
};

}  // namespace maxmargin::budget
