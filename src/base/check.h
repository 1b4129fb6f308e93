// CHECKs guard this program's own invariants and stay on in release builds: a node that goes on
// after a broken invariant would give wrong verdicts. A failed CHECK prints its place, the
// condition and the values, and aborts. Input of others (files, PTX, messages) is never CHECKed:
// see base/result.h.
//
//   CHECK(queue.empty());
//   CHECK(warp < warps.size(), "warp {} of {}", warp, warps.size());
//   CHECK_EQ(bytes % 16, 0u);
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace allranks::base_internal {

[[noreturn]] void CheckFailed(const char* file, int line, std::string_view condition,
                              const std::string& detail);

inline std::string CheckDetail() { return {}; }

template <class... Args>
std::string CheckDetail(fmt::format_string<Args...> format, Args&&... args) {
  return fmt::format(format, std::forward<Args>(args)...);
}

template <class T>
std::string CheckValue(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_pointer_v<T>) {
    return fmt::format("{}", static_cast<const void*>(value));
  } else if constexpr (fmt::is_formattable<T>::value) {
    return fmt::format("{}", value);
  } else {
    return "(no text form)";
  }
}

// Out of line of the caller, so that a CHECK costs a compare and a branch where it stands.
template <class A, class B>
[[noreturn]] [[gnu::cold]] [[gnu::noinline]] void CheckPairFailed(const char* file, int line,
                                                                  std::string_view condition,
                                                                  const A& a, const B& b) {
  CheckFailed(file, line, condition, CheckValue(a) + " against " + CheckValue(b));
}

}  // namespace allranks::base_internal

#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) [[unlikely]] {                                                               \
      ::allranks::base_internal::CheckFailed(__FILE__, __LINE__, #condition,                       \
                                             ::allranks::base_internal::CheckDetail(__VA_ARGS__)); \
    }                                                                                              \
  } while (false)

#define ALLRANKS_CHECK_PAIR(a, op, b)                                                   \
  do {                                                                                  \
    const auto& allranks_check_a = (a);                                                 \
    const auto& allranks_check_b = (b);                                                 \
    if (!(allranks_check_a op allranks_check_b)) [[unlikely]] {                         \
      ::allranks::base_internal::CheckPairFailed(__FILE__, __LINE__, #a " " #op " " #b, \
                                                 allranks_check_a, allranks_check_b);   \
    }                                                                                   \
  } while (false)

#define CHECK_EQ(a, b) ALLRANKS_CHECK_PAIR(a, ==, b)
#define CHECK_NE(a, b) ALLRANKS_CHECK_PAIR(a, !=, b)
#define CHECK_LT(a, b) ALLRANKS_CHECK_PAIR(a, <, b)
#define CHECK_LE(a, b) ALLRANKS_CHECK_PAIR(a, <=, b)
#define CHECK_GT(a, b) ALLRANKS_CHECK_PAIR(a, >, b)
#define CHECK_GE(a, b) ALLRANKS_CHECK_PAIR(a, >=, b)
