// The device linker: several parsed modules → one, as nvlink does for `-rdc=true` and cuLink for
// modules given at run time. Every file of such a program is a PTX text of its own; the decoder
// knows only whole modules.
//
// Names are what links. A definition that is `.visible` is seen by all inputs, one that is `.weak`
// gives way to another, `.common` variables of one name are one variable as large as the largest,
// and what has no linkage belongs to its file: if its name occurs elsewhere too it is renamed
// ("$str#file2", which no text can contain). `.extern` names a definition in any input.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/module.h"

namespace allranks::ptx {

struct LinkInput {
  Module module;
  std::string name;  // for messages: the file it came from
};

inline constexpr std::size_t kMaxLinkInputs = 4096;

// Links the inputs, in their order. Everything Parse promises of a module holds for the result,
// and: a function that is called or whose address is taken has a body or is one that `provided`
// says the system has (vprintf, malloc, ...); a variable that is used is defined, but for `extern
// .shared`.
//
// Errors read like nvlink's, one per line: "Undefined reference to 'f' in 'a.cu'", "Multiple
// definition of 'f' in 'b.cu', first defined in 'a.cu'".
Result<Module> Link(std::vector<LinkInput> inputs,
                    const std::function<bool(std::string_view)>& provided);

}  // namespace allranks::ptx
