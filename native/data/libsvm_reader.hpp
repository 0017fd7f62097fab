// LIBSVM's text format: `label [qid:number] index:value index:value … [# comment]`, one row per line.
//
// Indices are whole numbers below 10¹⁸ in any order, each once per line; a row that is not ascending is sorted. They are
// stored less `shift`, in 32 bits until one of them needs more.
#pragma once
#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

#include "data/growing.hpp"
#include "data/lines.hpp"
#include "data/numbers.hpp"

namespace maxmargin {

enum LibsvmReason {  // Python has the words
  kNotALabel = 1,
  kNoLabel,
  kSeveralLabels,
  kNotAPair,
  kBadIndex,
  kIndexTooLow,
  kIndexTooHigh,
  kNoValue,
  kBadValue,
  kTwice,
  kBadQuery,
  kNoQuery,
  kLateQuery,
};

template <class T>
struct LibsvmFormat {
  struct Piece : maxmargin::Piece<T> {
    std::unique_ptr<std::int64_t[]> lengths, queries, indices;
    std::int64_t room = -1, low, high;

    void start(std::int64_t bytes) {
      if (bytes > room) {
        this->reserve(bytes, 4);  // " i:v"
        lengths.reset(new std::int64_t[std::size_t(bytes / 2 + 1)]);
        queries.reset(new std::int64_t[std::size_t(bytes / 2 + 1)]);
        indices.reset(new std::int64_t[std::size_t(bytes / 4 + 1)]);
        room = bytes;
      }
      this->rows = this->entries = this->lines = 0;
      this->fault = {};
      low = std::numeric_limits<std::int64_t>::max();
      high = -1;
    }
  };

  std::int64_t lowest, highest;  // indices that may occur
  bool queries;                  // whether each row must have a qid

  const char* read(const char* p, const char* end, Piece& piece, int& reason) const {
    while (is_blank(*p)) ++p;
    if (*p == '\n') return p + 1;
    if (*p == '#') return after_line(p, end);
    const char* q = read_number(p, piece.labels[piece.rows]);
    if (!q || !ends(*q)) return reason = label_reason(p), p;
    q = read_query(skip(q), p, piece, reason);
    if (reason) return q;
    const char* const first = q;
    const std::int64_t begin = piece.entries;
    std::int64_t previous = -1;
    bool ascending = true;
    for (; *q != '\n' && *q != '#'; q = skip(q)) {
      std::uint64_t index = 0;
      p = q;
      while (is_digit(*q)) index = 10 * index + unsigned(*q++ - '0');
      const auto i = std::int64_t(index);
      if (*q != ':' || q == p || q - p > 18 || i < lowest || i > highest) return reason = pair_reason(p, q, i), p;
      const char* const value = q + 1;
      q = read_number(value, piece.values[piece.entries]);
      if (!q || !ends(*q)) return reason = ends(*value) ? kNoValue : kBadValue, p;
      piece.indices[piece.entries++] = i;
      ascending &= i > previous;
      previous = i;
    }
    if (!ascending) {
      const std::int64_t twice = sort(piece, begin);
      if (twice >= 0) return reason = kTwice, second(first, twice);
    }
    if (piece.entries > begin) {
      piece.low = std::min(piece.low, piece.indices[begin]);
      piece.high = std::max(piece.high, piece.indices[piece.entries - 1]);
    }
    piece.lengths[piece.rows++] = piece.entries - begin;
    return *q == '\n' ? q + 1 : after_line(q, end);
  }

 private:
  static bool ends(char c) { return is_blank(c) || c == '\n' || c == '#'; }
  static const char* skip(const char* p) {
    while (is_blank(*p)) ++p;
    return p;
  }
  static const char* token_end(const char* p) {
    while (!ends(*p)) ++p;
    return p;
  }

  static bool is_query(const char* p) { return p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':'; }

  static int label_reason(const char* p) {
    const std::string token(p, token_end(p));
    if (token.find(':') != std::string::npos) return kNoLabel;
    return token.find(',') != std::string::npos ? kSeveralLabels : kNotALabel;
  }

  // q is where the digits that begin at p end, and i their number if there are at most 18.
  int pair_reason(const char* p, const char* q, std::int64_t i) const {
    const char* const end = token_end(p);
    if (std::find(p, end, ':') == end) return kNotAPair;
    if (is_query(p)) return kLateQuery;
    if (*q != ':' || q == p) return kBadIndex;
    return q - p <= 18 && i < lowest ? kIndexTooLow : kIndexTooHigh;
  }

  const char* read_query(const char* q, const char* label, Piece& piece, int& reason) const {
    if (!is_query(q)) {
      if (queries) reason = kNoQuery;
      return queries ? label : q;
    }
    const char* const end = token_end(q);
    const auto result = std::from_chars(q + 4, end, piece.queries[piece.rows]);
    if (result.ec != std::errc() || result.ptr != end) return reason = kBadQuery, q;
    return skip(end);
  }

  // The entries from `begin` on in ascending order; returns an index that occurs twice, or -1.
  static std::int64_t sort(Piece& piece, std::int64_t begin) {
    std::vector<std::pair<std::int64_t, T>> row;
    for (std::int64_t k = begin; k < piece.entries; ++k) row.emplace_back(piece.indices[k], piece.values[k]);
    std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (k && row[k].first == row[k - 1].first) return row[k].first;
      std::tie(piece.indices[begin + std::int64_t(k)], piece.values[begin + std::int64_t(k)]) = row[k];
    }
    return -1;
  }

  // The second pair with this index among those of a line that is known to have two.
  static const char* second(const char* p, std::int64_t index) {
    for (bool found = false;; p = skip(token_end(p))) {
      std::int64_t i = 0;
      std::from_chars(p, token_end(p), i);
      if (i == index && std::exchange(found, true)) return p;
    }
  }
};

template <class T>
class LibsvmReader {
 public:
  LibsvmReader(std::int64_t lowest, std::int64_t highest, std::int64_t shift, bool queries, int threads)
      : format_{lowest, highest, queries}, shift_(shift), threads_(threads) {}

  // Appends the rows of a block of whole lines (the last byte is a line feed); at a fault, nothing of the block.
  Fault feed(const char* text, std::int64_t size) {
    const Fault fault = read_lines(format_, text, size, pieces_, threads_);
    if (fault.offset < 0) place();
    return fault;
  }

  // More of the same will come: `times` as much as there is now, in all.
  void expect(double times) {
    const auto total = [times](std::size_t now) { return std::size_t(double(now) * times); };
    labels.reserve(total(labels.size()));
    lengths.reserve(total(lengths.size()));
    queries.reserve(total(queries.size()));
    values.reserve(total(values.size()));
    narrow.reserve(total(narrow.size()));
    wide.reserve(total(wide.size()));
  }

  // Of all that was fed: lines, and the smallest and largest index (large and -1 if there is none).
  std::int64_t lines = 0, low = std::numeric_limits<std::int64_t>::max(), high = -1;
  // Of what was fed and not yet taken.
  Growing<double> labels;
  Growing<std::int64_t> queries, lengths, wide;
  Growing<std::int32_t> narrow;
  Growing<T> values;
  bool is_wide = false;  // whether indices are in `wide`

 private:
  using Piece = typename LibsvmFormat<T>::Piece;

  void place() {
    std::vector<std::int64_t> row(pieces_.size() + 1), entry(pieces_.size() + 1);
    for (std::size_t k = 0; k < pieces_.size(); ++k) {
      row[k + 1] = row[k] + pieces_[k].rows;
      entry[k + 1] = entry[k] + pieces_[k].entries;
      lines += pieces_[k].lines;
      low = std::min(low, pieces_[k].low);
      high = std::max(high, pieces_[k].high);
    }
    if (!is_wide && high - shift_ > std::numeric_limits<std::int32_t>::max()) widen();
    const auto rows = std::size_t(row.back()), entries = std::size_t(entry.back());
    double* const to_labels = labels.extend(rows);
    std::int64_t* const to_lengths = lengths.extend(rows);
    std::int64_t* const to_queries = queries.extend(format_.queries ? rows : 0);
    T* const to_values = values.extend(entries);
    std::int64_t* const to_wide = wide.extend(is_wide ? entries : 0);
    std::int32_t* const to_narrow = narrow.extend(is_wide ? 0 : entries);
    for_slices(std::int64_t(pieces_.size()), 1, threads_, [&](std::int64_t k, std::int64_t) {
      const Piece& piece = pieces_[k];
      std::copy_n(piece.labels.get(), piece.rows, to_labels + row[k]);
      std::copy_n(piece.lengths.get(), piece.rows, to_lengths + row[k]);
      if (format_.queries) std::copy_n(piece.queries.get(), piece.rows, to_queries + row[k]);
      std::copy_n(piece.values.get(), piece.entries, to_values + entry[k]);
      for (std::int64_t j = 0; is_wide && j < piece.entries; ++j) to_wide[entry[k] + j] = piece.indices[j] - shift_;
      for (std::int64_t j = 0; !is_wide && j < piece.entries; ++j)
        to_narrow[entry[k] + j] = std::int32_t(piece.indices[j] - shift_);
    });
  }

  void widen() {
    std::copy_n(narrow.data(), narrow.size(), wide.extend(narrow.size()));
    narrow = {};
    is_wide = true;
  }

  LibsvmFormat<T> format_;
  std::int64_t shift_;
  int threads_;
  std::vector<Piece> pieces_;
};

}  // namespace maxmargin
