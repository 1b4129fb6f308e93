// What the command itself says, on stderr and with its name, so that it differs from the program's
// output.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace allranks::cli {

template <class... Args>
void Say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fprintf(stderr, "allranks: %s\n", text.c_str());
}

}  // namespace allranks::cli
