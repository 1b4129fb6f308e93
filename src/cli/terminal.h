// What progress on a terminal needs: whether there is one, how wide it is, and times in words.
#pragma once

#include <cstddef>
#include <string>

namespace allranks::cli {

// A terminal on which lines can be drawn again (TERM is neither unset nor "dumb").
bool IsTerminal(int fd);
// 80 where that is not known.
std::size_t ColumnsOf(int fd);
// "42 s", "3:07 min", "1:40 h"
std::string Duration(double seconds);

}  // namespace allranks::cli
