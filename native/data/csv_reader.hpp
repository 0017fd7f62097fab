// Tables of numbers as text: fields separated by a delimiter, the same number in every row, each a number that may stand
// in quotes; one column may be the label, a number too or any text.
#pragma once
#include <algorithm>

#include "data/growing.hpp"
#include "data/lines.hpp"
#include "data/numbers.hpp"

namespace maxmargin {

enum CsvReason {  // Python has the words
  kNotANumber = 1,
  kEmptyField,
  kTooFewFields,
  kTooManyFields,
  kOpenQuote,
};

template <class T>
struct CsvFormat {
  struct Piece : maxmargin::Piece<T> {
    std::unique_ptr<std::int64_t[]> begins, ends;  // of labels that are text, in the block
    std::int64_t room = -1;

    void start(std::int64_t bytes) {
      if (bytes > room) {
        this->reserve(bytes, 2);  // "1,"
        begins.reset(new std::int64_t[std::size_t(bytes / 2 + 1)]);
        ends.reset(new std::int64_t[std::size_t(bytes / 2 + 1)]);
        room = bytes;
      }
      this->rows = this->entries = this->lines = 0;
      this->fault = {};
    }
  };

  char delimiter;
  std::int64_t columns, label;  // label -1: there is none
  bool text_labels;

  const char* read(const char* p, const char* end, Piece& piece, int& reason) const {
    const char* q = skip(p);
    if (*q == '\n') return q + 1;
    for (std::int64_t j = 0; j < columns; ++j) {
      const char* const field = skip(p);
      if (j == label && text_labels) {
        p = read_text(field, end, piece, reason);
      } else if (j == label) {
        p = read_field(field, piece.labels[piece.rows], reason);
      } else {
        p = read_field(field, piece.values[piece.entries], reason);
        ++piece.entries;
      }
      if (reason) return field;
      p = skip(p);
      const bool last = j + 1 == columns;
      if (*p == delimiter && last) return reason = kTooManyFields, p + 1;
      if (*p == '\n' && !last) return reason = kTooFewFields, p;
      if (*p != (last ? '\n' : delimiter)) return reason = kNotANumber, field;
      ++p;
    }
    ++piece.rows;
    return p;
  }

 private:
  const char* skip(const char* p) const {
    while (is_blank(*p) && *p != delimiter) ++p;
    return p;
  }

  template <class V>
  const char* read_field(const char* p, V& value, int& reason) const {
    const bool quoted = *p == '"';
    if (quoted) p = skip(p + 1);
    if (*p == delimiter || *p == '\n' || (quoted && *p == '"')) return reason = kEmptyField, p;
    p = read_number(p, value);
    if (!p) return reason = kNotANumber, p;
    if (!quoted) return p;
    p = skip(p);
    if (*p != '"') return reason = kNotANumber, p;
    return p + 1;
  }

  // Quoted text keeps its quotes here, and a doubled quote is one of its letters.
  const char* read_text(const char* p, const char* end, Piece& piece, int& reason) const {
    const char* const begin = p;
    if (*p == '"') {
      for (++p; *p != '"' || p[1] == '"'; ++p) {
        if (*p == '"') ++p;
        if (*p == '\n') return reason = kOpenQuote, p;
      }
      ++p;
    } else {
      while (*p != delimiter && *p != '\n') ++p;
    }
    const char* last = p;
    while (last > begin && is_blank(last[-1])) --last;
    if (last == begin) return reason = kEmptyField, p;
    // As distances from the end of the block: a piece does not know where the block begins.
    piece.begins[piece.rows] = begin - end;
    piece.ends[piece.rows] = last - end;
    return p;
  }
};

template <class T>
class CsvReader {
 public:
  CsvReader(char delimiter, std::int64_t columns, std::int64_t label, bool text_labels, int threads)
      : format_{delimiter, columns, label, text_labels}, threads_(threads) {}

  // Appends the rows of a block of whole lines (the last byte is a line feed); at a fault, nothing of the block.
  Fault feed(const char* text, std::int64_t size) {
    const Fault fault = read_lines(format_, text, size, pieces_, threads_);
    if (fault.offset < 0) place(size);
    return fault;
  }

  // More of the same will come: `times` as much as there is now, in all.
  void expect(double times) {
    labels.reserve(std::size_t(double(labels.size()) * times));
    values.reserve(std::size_t(double(values.size()) * times));
  }

  std::int64_t lines = 0;  // of all that was fed
  // Of what was fed and not yet taken. Bounds of text labels are places in the block of that feed.
  Growing<double> labels;
  Growing<std::int64_t> begins, ends;
  Growing<T> values;

 private:
  void place(std::int64_t size) {
    for (const auto& piece : pieces_) {
      lines += piece.lines;
      std::copy_n(piece.values.get(), piece.entries, values.extend(std::size_t(piece.entries)));
      if (format_.text_labels) {
        const auto rows = std::size_t(piece.rows);
        const auto placed = [size](std::int64_t from_end) { return from_end + size; };
        std::transform(piece.begins.get(), piece.begins.get() + rows, begins.extend(rows), placed);
        std::transform(piece.ends.get(), piece.ends.get() + rows, ends.extend(rows), placed);
      } else if (format_.label >= 0) {
        std::copy_n(piece.labels.get(), piece.rows, labels.extend(std::size_t(piece.rows)));
      }
    }
  }

  CsvFormat<T> format_;
  int threads_;
  std::vector<typename CsvFormat<T>::Piece> pieces_;
};

}  // namespace maxmargin
