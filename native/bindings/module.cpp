#include "bindings.hpp"

NB_MODULE(MAXMARGIN_MODULE, m) {
  using namespace maxmargin;
  m.doc() = "Native core of maxmargin: loops over samples and features. No globals, no prints, no calls back.";
  bind_matrix(m);
  bind_kernels(m);
  bind_decomposition(m);
  bind_linear(m);
  bind_one_norm(m);
  bind_budget(m);
  bind_divide(m);
  bind_data(m);
  bind_many(m);
  bind_family(m);
}
