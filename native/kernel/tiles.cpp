// What tile.hpp declares as compiled elsewhere: here.
#include "kernel/tile.hpp"

namespace maxmargin {
MAXMARGIN_TILES(float)
MAXMARGIN_TILES(double)
}  // namespace maxmargin
