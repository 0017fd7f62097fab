#include <nanobind/stl/optional.h>

#include <stdexcept>

#include "bindings.hpp"
#include "data/csv_reader.hpp"
#include "data/libsvm_reader.hpp"
#include "data/writer.hpp"

namespace maxmargin {
namespace {

// The elements of a Growing, as a NumPy array that owns them. No copy.
template <class T>
Array<T> taken(Growing<T>& from) {
  auto [elements, size] = from.release();
  T* data = elements.release();
  nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  return Array<T>(data, {size}, owner);
}

template <class Reader>
std::pair<std::int64_t, int> feed(Reader& reader, In<std::uint8_t> text) {
  const auto* begin = reinterpret_cast<const char*>(text.data());
  if (text.shape(0) == 0 || begin[text.shape(0) - 1] != '\n')
    throw std::invalid_argument("feed: the text must end with a line feed");
  nb::gil_scoped_release release;
  const Fault fault = reader.feed(begin, std::int64_t(text.shape(0)));
  return {fault.offset, fault.reason};
}

template <class T>
using LibsvmRows = std::tuple<Array<double>, Array<std::int64_t>, nb::object, Array<T>, Array<std::int64_t>>;

template <class T>
LibsvmRows<T> take_libsvm(LibsvmReader<T>& reader) {
  nb::object indices = reader.is_wide ? nb::cast(taken(reader.wide)) : nb::cast(taken(reader.narrow));
  return {taken(reader.labels), taken(reader.lengths), indices, taken(reader.values), taken(reader.queries)};
}

template <class T>
void bind_libsvm_reader(nb::module_& m, const char* name) {
  using Reader = LibsvmReader<T>;
  nb::class_<Reader>(m, name, "Rows of LIBSVM text, block by block.")
      .def(nb::init<std::int64_t, std::int64_t, std::int64_t, bool, int>(), nb::arg("lowest"), nb::arg("highest"),
           nb::arg("shift"), nb::arg("queries"), nb::arg("threads"))
      .def("feed", &feed<Reader>, nb::arg("text").noconvert(),
           "Append a block of whole lines; (offset, reason) of its first fault, (-1, 0) if there is none.")
      .def("expect", &Reader::expect, nb::arg("times"), "Room for so many times as much as was fed and not taken.")
      .def("take", &take_libsvm<T>, "labels, row lengths, indices, values and query numbers so far, and begin again.")
      .def_ro("lines", &Reader::lines)
      .def_ro("low", &Reader::low)
      .def_ro("high", &Reader::high);
}

template <class T>
std::pair<Array<double>, Array<T>> take_csv(CsvReader<T>& reader) {
  return {taken(reader.labels), taken(reader.values)};
}

template <class T>
std::pair<Array<std::int64_t>, Array<std::int64_t>> csv_bounds(CsvReader<T>& reader) {
  return {taken(reader.begins), taken(reader.ends)};
}

template <class T>
void bind_csv_reader(nb::module_& m, const char* name) {
  using Reader = CsvReader<T>;
  nb::class_<Reader>(m, name, "Rows of a table of numbers as text, block by block.")
      .def(nb::init<char, std::int64_t, std::int64_t, bool, int>(), nb::arg("delimiter"), nb::arg("columns"),
           nb::arg("label"), nb::arg("text_labels"), nb::arg("threads"))
      .def("feed", &feed<Reader>, nb::arg("text").noconvert(),
           "Append a block of whole lines; (offset, reason) of its first fault, (-1, 0) if there is none.")
      .def("expect", &Reader::expect, nb::arg("times"), "Room for so many times as much as was fed and not taken.")
      .def("take", &take_csv<T>, "labels that are numbers and values so far, and begin again.")
      .def("bounds", &csv_bounds<T>, "Where in the block just fed labels that are text begin and end.")
      .def_ro("lines", &Reader::lines);
}

nb::bytes joined(const std::vector<std::string>& parts) {
  std::size_t size = 0;
  for (const auto& part : parts) size += part.size();
  nb::bytes out = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(size)));
  if (!out.is_valid()) throw nb::python_error();
  char* to = PyBytes_AS_STRING(out.ptr());
  for (const auto& part : parts) to = std::copy(part.begin(), part.end(), to);
  return out;
}

nb::bytes libsvm_text(const Matrix& x, In<double> labels, std::optional<In<std::int64_t>> queries, index_t first,
                      index_t last, index_t shift, int threads) {
  if (first < 0 || first > last || last > rows(x) || index_t(labels.shape(0)) != rows(x) ||
      (queries && index_t(queries->shape(0)) != rows(x)))
    throw std::invalid_argument("libsvm_text: shapes do not fit");
  const double* y = labels.data();
  const std::int64_t* q = queries ? queries->data() : nullptr;
  std::vector<std::string> parts;
  {
    nb::gil_scoped_release release;
    parts = std::visit(
        [&](const auto& v) {
          return write_lines(first, last, threads, [&](index_t i, std::string& text) {
            libsvm_line(v, i, y[i], q ? q + i : nullptr, shift, text);
          });
        },
        x);
  }
  return joined(parts);
}

nb::bytes csv_text(const Matrix& x, std::optional<In<double>> numbers, In<std::uint8_t> bytes, In<std::int64_t> ends,
                   char delimiter, index_t first, index_t last, int threads) {
  const index_t n = rows(x), named = index_t(ends.shape(0));
  bool fits = first >= 0 && first <= last && last <= n && (named == 0 || named == n);
  for (index_t i = 0; fits && i < named; ++i) fits = ends(i) >= (i ? ends(i - 1) : 0);
  if (!fits || (named && ends(n - 1) != index_t(bytes.shape(0))) || (numbers && index_t(numbers->shape(0)) != n))
    throw std::invalid_argument("csv_text: shapes do not fit");
  const Labels labels{numbers ? numbers->data() : nullptr, reinterpret_cast<const char*>(bytes.data()),
                      named ? ends.data() : nullptr};
  std::vector<std::string> parts;
  std::visit(
      [&](const auto& v) {
        if constexpr (std::decay_t<decltype(v)>::dense) {
          nb::gil_scoped_release release;
          parts = write_lines(first, last, threads,
                              [&](index_t i, std::string& text) { csv_line(v, i, labels, delimiter, text); });
        } else {
          throw std::invalid_argument("csv_text: dense matrices only");
        }
      },
      x);
  return joined(parts);
}

}  // namespace

void bind_data(nb::module_& m) {
  bind_libsvm_reader<float>(m, "LibsvmReader32");
  bind_libsvm_reader<double>(m, "LibsvmReader64");
  bind_csv_reader<float>(m, "CsvReader32");
  bind_csv_reader<double>(m, "CsvReader64");
  m.def("libsvm_text", &libsvm_text, nb::arg("x"), nb::arg("labels").noconvert(), nb::arg("queries").none(),
        nb::arg("first"), nb::arg("last"), nb::arg("shift"), nb::arg("threads"),
        "Rows [first, last) as lines of LIBSVM's format.");
  m.def("csv_text", &csv_text, nb::arg("x"), nb::arg("numbers").none(), nb::arg("bytes").noconvert(),
        nb::arg("ends").noconvert(), nb::arg("delimiter"), nb::arg("first"), nb::arg("last"), nb::arg("threads"),
        "Rows [first, last) of a dense matrix as lines, after labels that are numbers or bytes (or none).");
}

}  // namespace maxmargin
