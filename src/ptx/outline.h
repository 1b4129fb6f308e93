// What a PTX text says outside of the bodies of its functions, and where the bodies are: enough to
// make a module of a large library without keeping its text. A body is read from the text when it
// is needed (ReadBody in module.h), which is then asked for again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"

namespace allranks::ptx {

struct Outline {
  struct Body {
    std::uint64_t begin = 0, end = 0;             // in the text, with its braces
    std::uint32_t first_line = 1, last_line = 1;  // of the text
    bool shared = false;                          // it declares shared memory
    std::vector<std::uint32_t> named;             // those of `shared_names` that it names
  };
  std::string text;  // with "{}" in the place of each body
  std::vector<Body> bodies;
  std::vector<std::string> shared_names;  // the text's variables in shared memory
  std::uint64_t text_bytes = 0;           // of the whole text, without zeros at its end
};

// As Parse reads it, but for the bodies, which are only skipped.
Result<Outline> MakeOutline(std::string text);

// The module of an outline. `whole` returns the text that the outline was made of; it is called
// when the first body is read, so it must stay callable as long as the module exists.
Result<Module> ParseOutline(Outline outline, std::function<Result<std::string>()> whole);

// Whether a body's text has a declaration of shared memory: ".shared" that is no instruction's.
bool DeclaresShared(std::string_view body);

}  // namespace allranks::ptx
