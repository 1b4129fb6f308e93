// Arithmetic, logic, comparison, conversion and data movement: everything that reads registers and
// writes registers and knows neither memory nor time. One table entry per PTX instruction form.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "node/code/op.h"
#include "ptx/module.h"

namespace allranks::node {

// How the decoder has to place an instruction's operands into Op::d, d2 and s[].
struct AluForm {
  AluFn fn = nullptr;
  struct Place {
    enum class Where : std::uint8_t { kD, kD2, kS0, kS1, kS2, kS3 };
    Where where;
    // Index into Instruction::operands, and into its elements (vector, pair); 0xff: itself.
    std::uint8_t operand;
    std::uint8_t element = 0xff;
    bool predicate = false;  // a predicate (number in preds[]) rather than a slot
    std::uint8_t bytes = 4;  // width of the slot: 4 (also 1- and 2-byte types), 8 or 16; what a
                             // literal is converted to
    bool is_float = false;   // how a literal is to be converted: to f32 (bytes 4), f64 (bytes 8)
    std::uint8_t literal_bits = 0;  // 16: f16/bf16/u16 literal kept in the low bits
  };
  std::vector<Place> places;
  std::uint32_t imm = 0;    // goes to Op::imm
  std::uint8_t cycles = 1;  // issue cycles: 1; 64-bit and conversion 2; special functions 8; f64 2
  std::uint8_t flags = 0;
};

// AluForm::flags (and Op::flags) beyond kNegatePredicate (the one predicate source is !p).
// Carry chains: the flag is a predicate that the decoder allocates per function, no operand.
inline constexpr std::uint8_t kReadsCarry = 2;   // Op::s[3] must be the carry's predicate
inline constexpr std::uint8_t kWritesCarry = 4;  // Op::d2 must be the carry's predicate
// mov.b64 {a, b, c, d}, e: Op::s[2] and s[3] are destinations too, the places say which operand.
inline constexpr std::uint8_t kExtraDestinations = 8;
// cvt.rs d, {a, b, e, f}, rbits: a fifth source has no place but Op::d2.
inline constexpr std::uint8_t kSourceInD2 = 16;

// Finds the handler of an instruction form; false if there is none (the decoder then makes a
// kUnsupported op). Operand shapes that PTX allows for the form are handled (vector packs, p|q).
// A destination that is the sink `_` is left at kNoSlot. Destination slots of different widths must
// not overlap source slots: handlers write a lane while later lanes are still to be read.
// Not covered here: anything of the other OpKinds, special registers, and symbols as operands
// (the decoder turns `mov.u64 d, symbol` into a literal first).
//
// `registers` are those of the function. With them, every register's width is checked against the
// place it goes to (the text may be hostile; without, the caller has to), and cvt knows registers
// that are wider than its types.
bool SelectAlu(const ptx::Instruction& instruction, AluForm* form,
               const std::vector<ptx::Register>* registers = nullptr);

// Name of the instruction set the handlers were chosen for at start-up: "x86-64-v2", "-v3", "-v4".
std::string_view AluIsa();

}  // namespace allranks::node
