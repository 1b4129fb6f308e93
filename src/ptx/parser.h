// PTX text in, a checked Module out: the only way into this folder's data structures.
// The text is untrusted (it comes out of a program's fat binary), so every size below is bounded
// and every fault in the text is a value, never a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "ptx/module.h"

namespace allranks::ptx {

// What a module may ask for at most. Memory stays in proportion to the text: nvcc numbers its
// registers by use and writes initialisers out, so nothing it emits comes near these.
inline constexpr std::size_t kMaxTextBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxRegistersPerFunction = std::size_t{1} << 20;
inline constexpr std::size_t kSpareRegisters = std::size_t{1}
                                               << 14;  // of a module, beyond 1 per byte
inline constexpr std::size_t kMaxInstructions = std::size_t{1} << 22;  // of a module
inline constexpr std::size_t kMaxOperands = std::size_t{1} << 24;      // of a module
inline constexpr std::size_t kMaxOperandsPerInstruction = 4096;        // all levels counted
inline constexpr std::size_t kMaxModifiers = 64;
inline constexpr std::uint32_t kMaxFiles = 65535;
inline constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 36;
inline constexpr std::uint64_t kMaxInitialiserBytesPerTextByte = 8;
inline constexpr std::uint64_t kMaxAlign = std::uint64_t{1} << 16;
inline constexpr int kMaxScopeDepth = 64;  // { } in a function's body
inline constexpr int kMaxNesting = 16;     // operands in operands, initialisers, expressions

// Reads a whole module. What the caller may rely on afterwards: every kReg operand and guard is a
// valid index (guards are predicates); every kSymbol names a variable, function, alias, label,
// target list or prototype that exists (function scope first, then module scope); a branch's target
// is in Function::labels and what a .branchtargets names too; SourceLoc::file is -1 or valid, and
// inline sites refer only to earlier ones. Which modifiers and operands an instruction takes is not
// checked: that is the decoder's knowledge.
//
// A name that is declared again in another scope `{ }` of a function gets a name of its own
// ("param0#2", which no text can contain), so names within one Function are unique.
// A .loc of line 0 ("no line") leaves the position before it in force.
//
// Errors read "ptx:LINE: what is wrong near 'token'".
//
// `Bodies::kLater` leaves the bodies of functions for ReadBody (module.h): a library of a hundred
// megabytes is not read for one kernel. What is wrong in a body is then an error of ReadBody.
enum class Bodies : std::uint8_t { kNow, kLater };
Result<Module> Parse(std::string text, Bodies bodies = Bodies::kNow);

}  // namespace allranks::ptx
