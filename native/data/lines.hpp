// A block of whole lines, cut at line feeds into pieces that are parsed on their own, side by side.
//
// Each piece writes what it reads into memory of its own, large enough for whatever its bytes can hold, so that the
// loop over entries checks no bound; once the sizes are known, the pieces are copied to their places. The memory is
// used again for the next block and stays in the processor's cache.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/threads.hpp"

namespace maxmargin {

constexpr std::int64_t kPieceBytes = 1 << 16;  // some 200 µs of work; what comes of it fits a core's second-level cache

// Where a text is wrong, and how; offset -1 is nowhere. What the reasons mean is the format's own.
struct Fault {
  std::int64_t offset = -1;
  int reason = 0;
};

template <class T>
struct Piece {
  std::unique_ptr<double[]> labels;
  std::unique_ptr<T[]> values;
  std::int64_t rows = 0, entries = 0, lines = 0;
  Fault fault;

 protected:
  // Enough for `bytes` of text in which a row takes at least 2 of them and an entry `least`.
  void reserve(std::int64_t bytes, int least) {
    labels.reset(new double[std::size_t(bytes / 2 + 1)]);
    values.reset(new T[std::size_t(bytes / least + 1)]);
  }
};

// The byte after the line feed that ends the line of p.
inline const char* after_line(const char* p, const char* end) {
  return static_cast<const char*>(std::memchr(p, '\n', std::size_t(end - p))) + 1;
}

// Format has Piece, and read(p, end, piece, reason): appends the line at p to the piece and returns the byte after its
// line feed, or sets the reason and returns where the line is wrong. `text` ends with a line feed. Returns the first
// fault of the block.
template <class Format>
Fault read_lines(const Format& format, const char* text, std::int64_t size, std::vector<typename Format::Piece>& pieces,
                 int threads) {
  const std::int64_t count = (size + kPieceBytes - 1) / kPieceBytes;
  std::vector<const char*> cut(std::size_t(count) + 1, text + size);
  cut[0] = text;
  for (std::int64_t k = 1; k < count; ++k) {
    const char* near = text + size / count * k - 1;
    cut[k] = near < cut[k - 1] ? cut[k - 1] : after_line(near, text + size);
  }
  pieces.resize(std::size_t(count));
  for (std::int64_t k = 0; k < count; ++k) pieces[k].start(cut[k + 1] - cut[k]);
  std::atomic<std::int64_t> bad{count};  // the first piece found wrong: those after it need not be read
  for_slices(count, 1, threads, [&](std::int64_t k, std::int64_t) {
    if (k > bad) return;
    auto& piece = pieces[k];
    for (const char* p = cut[k]; p < cut[k + 1]; ++piece.lines) {
      int reason = 0;
      p = format.read(p, text + size, piece, reason);
      if (!reason) continue;
      piece.fault = {p - text, reason};
      for (std::int64_t seen = bad; k < seen && !bad.compare_exchange_weak(seen, k);) {
      }
      break;
    }
  });
  return bad < count ? pieces[bad].fault : Fault{};
}

}  // namespace maxmargin
