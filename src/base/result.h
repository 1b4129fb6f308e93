// Expected failures as values. A function that can fail for a reason outside this program (a file,
// a candidate's PTX, a message from a client) returns Result<T>; the message is written for the
// person who can remedy it. Faults of our own are CHECKs (base/check.h), never Results.
#pragma once

#include <fmt/format.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace allranks {

struct Error {
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

// A Result without a value: `return Ok();` or `return Fail(...)`.
using Status = Result<void>;

inline Status Ok() { return {}; }

// `return Fail("{}: unknown key '{}'", file, key);` in any function that returns a Result.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> Fail(fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error{fmt::format(format, std::forward<Args>(args)...)});
}

// Passes an error on unchanged, from a Result of one type to a function that returns another.
[[nodiscard]] inline tl::unexpected<Error> Fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace allranks
