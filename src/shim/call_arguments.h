// The public entry points of libcuda.so.1 and libcudart.so.13, made from the rows of a calls.def:
// each calls the function that does the work and has the name and the arguments at hand for the
// report of an error. The files of the library define the functions under their public names;
// ALLRANKS_INNER_NAME, used on every row before the CUDA header is read, gives them other symbols,
// and calls.cpp defines the public symbols. Calls within a library therefore report nothing.
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#define ALLRANKS_PRAGMA(text) _Pragma(#text)
#define ALLRANKS_INNER_NAME(name) ALLRANKS_PRAGMA(redefine_extname name own_##name)
// The head of a public function that the CUDA header does not declare to everybody (an older
// version, one for per-thread streams). The compiler renames symbols at declarations only, not at
// a definition that comes first.
#define ALLRANKS_SYMBOL(type, name, parameters) \
  ALLRANKS_EXPORT type name parameters;         \
  type name parameters

namespace allranks::shim {

// Text of bounded length.
class ArgumentText {
 public:
  ArgumentText(char* text, std::size_t size) : text_(text), size_(size) { text_[0] = '\0'; }

  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    if (used_ + 1 >= size_) return;
    va_list values;
    va_start(values, format);
    const int more = vsnprintf(text_ + used_, size_ - used_, format, values);
    va_end(values);
    if (more > 0) used_ += static_cast<std::size_t>(more);
  }

  bool begun = false;  // has an argument

 private:
  char* text_;
  std::size_t size_, used_ = 0;
};

template <class T, class = void>
struct IsComplete : std::false_type {};
template <class T>
struct IsComplete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

// How an argument reads, or that it says nothing: where a result goes, and handles, which are
// addresses of this library's own that differ between runs. Null always says something.
// Structures have overloads of DescribeStruct in the calls.cpp that has them; others are left out.
template <class T>
bool DescribeStruct(const T&, ArgumentText*, std::string_view) {
  return false;
}

inline void AddName(ArgumentText* text, std::string_view name) {
  text->Add("%s%.*s=", text->begun ? ", " : "(", static_cast<int>(name.size()), name.data());
  text->begun = true;
}

template <class T>
void AddArgument(ArgumentText* text, std::string_view name, const T& value) {
  if constexpr (std::is_same_v<T, const char*>) {
    AddName(text, name);
    value == nullptr ? text->Add("null") : text->Add("\"%.80s\"", value);
  } else if constexpr (std::is_pointer_v<T>) {
    using To = std::remove_pointer_t<T>;
    if (value == nullptr) {
      AddName(text, name);
      text->Add("null");
    } else if constexpr (std::is_void_v<To>) {
      AddName(text, name);
      text->Add("%p", const_cast<const void*>(static_cast<const volatile void*>(value)));
    } else if constexpr (std::is_const_v<To> && std::is_class_v<To> && IsComplete<To>::value) {
      DescribeStruct(*value, text, name);
    }
  } else if constexpr (std::is_same_v<T, unsigned long long>) {  // device addresses, handles, flags
    AddName(text, name);
    text->Add("%#llx", value);
  } else if constexpr (std::is_enum_v<T>) {
    AddName(text, name);
    text->Add("%d", static_cast<int>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    AddName(text, name);
    text->Add("%g", static_cast<double>(value));
  } else if constexpr (std::is_signed_v<T>) {
    AddName(text, name);
    text->Add("%lld", static_cast<long long>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    AddName(text, name);
    text->Add("%llu", static_cast<unsigned long long>(value));
  } else if constexpr (std::is_class_v<T>) {
    DescribeStruct(value, text, name);
  }
}

// "(name=value, ...)". `names`: of all values, separated by commas.
template <class... T>
void WriteArguments(char* out, std::size_t size, std::string_view names, const T&... values) {
  ArgumentText text(out, size);
  [[maybe_unused]] const auto next = [&names] {
    const std::size_t end = names.find(',');
    std::string_view name = names.substr(0, end);
    names = end == std::string_view::npos ? std::string_view() : names.substr(end + 1);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    return name;
  };
  (AddArgument(&text, next(), values), ...);
  text.Add("%s", text.begun ? ")" : "()");
}

template <class F>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = R;
  template <std::size_t I>
  using Argument = std::tuple_element_t<I, std::tuple<A...>>;
};
template <class R, class... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};

}  // namespace allranks::shim

// ALLRANKS_PARAMETERS(function, name...): its parameters, under these names.
#define ALLRANKS_TYPE(f, i) ::allranks::shim::Signature<decltype(&f)>::template Argument<i>
#define ALLRANKS_P0(f)
#define ALLRANKS_P1(f, a) ALLRANKS_TYPE(f, 0) a
#define ALLRANKS_P2(f, a, b) ALLRANKS_P1(f, a), ALLRANKS_TYPE(f, 1) b
#define ALLRANKS_P3(f, a, b, c) ALLRANKS_P2(f, a, b), ALLRANKS_TYPE(f, 2) c
#define ALLRANKS_P4(f, a, b, c, d) ALLRANKS_P3(f, a, b, c), ALLRANKS_TYPE(f, 3) d
#define ALLRANKS_P5(f, a, b, c, d, e) ALLRANKS_P4(f, a, b, c, d), ALLRANKS_TYPE(f, 4) e
#define ALLRANKS_P6(f, a, b, c, d, e, g) ALLRANKS_P5(f, a, b, c, d, e), ALLRANKS_TYPE(f, 5) g
#define ALLRANKS_P7(f, a, b, c, d, e, g, h) ALLRANKS_P6(f, a, b, c, d, e, g), ALLRANKS_TYPE(f, 6) h
#define ALLRANKS_P8(f, a, b, c, d, e, g, h, i) \
  ALLRANKS_P7(f, a, b, c, d, e, g, h), ALLRANKS_TYPE(f, 7) i
#define ALLRANKS_P9(f, a, b, c, d, e, g, h, i, j) \
  ALLRANKS_P8(f, a, b, c, d, e, g, h, i), ALLRANKS_TYPE(f, 8) j
#define ALLRANKS_P10(f, a, b, c, d, e, g, h, i, j, k) \
  ALLRANKS_P9(f, a, b, c, d, e, g, h, i, j), ALLRANKS_TYPE(f, 9) k
#define ALLRANKS_P11(f, a, b, c, d, e, g, h, i, j, k, l) \
  ALLRANKS_P10(f, a, b, c, d, e, g, h, i, j, k), ALLRANKS_TYPE(f, 10) l
#define ALLRANKS_P12(f, a, b, c, d, e, g, h, i, j, k, l, m) \
  ALLRANKS_P11(f, a, b, c, d, e, g, h, i, j, k, l), ALLRANKS_TYPE(f, 11) m
#define ALLRANKS_COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) ALLRANKS_P##n
#define ALLRANKS_COUNT(unused, ...) \
  ALLRANKS_COUNTED(__VA_ARGS__ __VA_OPT__(, ) 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ALLRANKS_PARAMETERS(f, ...) \
  ALLRANKS_COUNT(f __VA_OPT__(, ) __VA_ARGS__)(f __VA_OPT__(, ) __VA_ARGS__)
