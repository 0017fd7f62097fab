// Rows as lines of text: LIBSVM's format, and dense rows separated by a delimiter. Numbers are the shortest that read
// back the same.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "data/numbers.hpp"
#include "base/matrix.hpp"
#include "base/threads.hpp"

namespace maxmargin {

constexpr index_t kRowsAtOnce = 256;  // rows that a thread writes before it asks for more

// write(i, text) appends line i; returns the lines [first, last) in order, in parts.
template <class Write>
std::vector<std::string> write_lines(index_t first, index_t last, int threads, const Write& write) {
  return map_slices(last - first, kRowsAtOnce, threads, [&](index_t begin, index_t end) {
    std::string text;
    for (index_t i = first + begin; i < first + end; ++i) write(i, text);
    return text;
  });
}

template <class T>
void append_number(std::string& text, T value) {
  char room[kNumberRoom];
  text.append(room, write_number(room, value));
}

template <class T>
void append_entry(std::string& text, index_t index, T value) {
  char room[2 * kNumberRoom + 2];
  room[0] = ' ';
  char* p = std::to_chars(room + 1, room + kNumberRoom, index).ptr;
  *p++ = ':';
  text.append(room, write_number(p, value));
}

// `label [qid:query] index:value …`; zeros of dense rows are left out, stored ones of CSR are not.
template <class M>
void libsvm_line(const M& x, index_t i, double label, const std::int64_t* query, index_t shift, std::string& text) {
  append_number(text, label);
  if (query) text.append(" qid:").append(std::to_string(*query));
  if constexpr (M::dense) {
    for (index_t j = 0; j < x.cols; ++j)
      if (x.row(i)[j] != 0) append_entry(text, j + shift, x.row(i)[j]);
  } else {
    for (index_t k = x.indptr[i]; k < index_t(x.indptr[i + 1]); ++k) append_entry(text, x.indices[k] + shift, x.data[k]);
  }
  text.push_back('\n');
}

// The label first, where there is one: a number, or bytes that are written as they are.
struct Labels {
  const double* numbers = nullptr;
  const char* bytes = nullptr;
  const std::int64_t* ends = nullptr;  // in bytes

  bool append(index_t i, std::string& text) const {
    if (numbers) append_number(text, numbers[i]);
    if (ends) text.append(bytes + (i ? ends[i - 1] : 0), bytes + ends[i]);
    return numbers || ends;
  }
};

template <class T>
void csv_line(const Dense<T>& x, index_t i, const Labels& labels, char delimiter, std::string& text) {
  bool more = labels.append(i, text);
  for (index_t j = 0; j < x.cols; ++j, more = true) {
    if (more) text.push_back(delimiter);
    append_number(text, x.row(i)[j]);
  }
  text.push_back('\n');
}

}  // namespace maxmargin
