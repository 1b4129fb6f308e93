// printf of kernels: formats what vprintf was given. Pure; builtins.cpp reads the arguments from
// device memory and hands the text on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace allranks::node {

// Where the arguments come from. They stand one after the other, each aligned to its size, as
// nvcc packs them for vprintf.
struct PrintfSource {
  // `size` (4 or 8) bytes at `offset` of the argument buffer; nullopt if they cannot be read.
  std::function<std::optional<std::uint64_t>(std::uint64_t offset, int size)> argument;
  // The string at a device address; nullopt if it cannot be read.
  std::function<std::optional<std::string>(std::uint64_t address)> string;
};

struct PrintfResult {
  std::string text;
  int arguments = 0;  // how many were used: what printf returns on a device
  bool ok = true;     // false: something could not be read
};

// All conversions of C's printf but %n, which takes its argument and does nothing. Widths and
// precisions are bounded, so a format cannot ask for more than kMaxPrintf bytes of text.
PrintfResult FormatPrintf(std::string_view format, const PrintfSource& source);

inline constexpr std::size_t kMaxPrintf = 16 * 1024;

}  // namespace allranks::node
