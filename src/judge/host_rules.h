// What host code of a `host` window may be made of. Its time is charged and its accesses are seen
// through calls that the compiler plants into it (shim/driver/instrumented.cpp), so code without
// them would run for nothing. Here it is refused: assembly, attributes that keep the calls out,
// functions of libraries, which have none.
//
// Two texts are looked at, both made by the compiler from the candidate: the host's half of the
// source after the preprocessor, so that no macro can hide a word, and the symbols of its object
// file, so that no function is called that is not on the list.
#pragma once

#include <string>
#include <string_view>

namespace allranks::judge {

// Why a source cannot be looked at: it names other files for its lines (#line), by which its own
// text is told from headers. Empty: it can.
std::string RefusedSource(std::string_view source);

// Why this text is refused; empty: it is not. `preprocessed` is what cudafe++ hands to the host's
// compiler; lines of `file` in it are the candidate's.
std::string RefusedHostText(std::string_view preprocessed, std::string_view file);

// The same of an object's symbols, as `nm --format=posix` prints them.
std::string RefusedSymbols(std::string_view symbols);

}  // namespace allranks::judge
