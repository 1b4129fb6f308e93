// How text and code look: lines, UTF-8, languages' names, and what tells C++ from prose. Everything
// here takes any bytes, and time in proportion to them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace allranks::problem {

inline constexpr std::string_view kBlank = " \t\r\n\v\f";
std::string_view Trimmed(std::string_view text);
// Takes one line off the front, with its newline.
std::string_view TakeLine(std::string_view* text);
bool IsWord(char c);  // of a C++ name

// Bytes of the UTF-8 character at `at`; 0: there is none.
std::size_t CharacterAt(std::string_view text, std::size_t at);
bool IsUtf8(std::string_view text);

// The language of a fence's info string: "CUDA title=x", "{.cpp}", "cpp:../../x.cu".
std::string LanguageOf(std::string_view info);
bool IsCodeName(std::string_view language);   // C, C++, CUDA by their many names
bool IsOtherName(std::string_view language);  // another language, or none: "text"

// A line that begins a file or a piece of C++, and hardly a sentence; one that ends it.
bool BeginsCode(std::string_view line);
bool EndsCode(std::string_view line);
bool LooksLikeCode(std::string_view code);

// NAME ( anything without brackets ) {
bool Defines(std::string_view code, std::string_view name);

// All brackets are closed, and it ends in neither a comment nor a literal. Unequal branches of the
// preprocessor are not understood.
bool Closed(std::string_view code);

}  // namespace allranks::problem
