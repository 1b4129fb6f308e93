// Control and data flow of one PTX function: basic blocks, reconvergence points, liveness, register
// allocation and the loops that might be waits. Pure analysis; decode.h uses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/code/code.h"
#include "ptx/module.h"

namespace allranks::node {

inline constexpr std::uint32_t kNoPc = 0xffffffffu;

// A loop that could be a wait: `branch` jumps back to `head` (instruction indices), and no
// iteration reduces, meets a barrier or calls (those change state). It has at least one load,
// atomic, try_wait, sleep or clock read, or carries no register at all (then it can never end, e.g.
// a lone `bra` to itself). Loops that load from or store to another address in every iteration
// compute and are left out; so are very large ones. Whether an atomic or a store changes memory,
// and whether a vote or shuffle has all its lanes on one path, is for run time.
//
// For use at run time: two arrivals at `head` over spin branches with this head may be compared
// only if no backward branch outside the loop (one that is no spin loop, or a spin loop that is
// neither this, nor of the same head, nor inside it by `outer`) was taken in between.
struct SpinLoop {
  std::uint32_t branch = 0, head = 0;
  // Index into Flow::spin_loops of the smallest spin loop of another head around this one, or -1.
  std::int32_t outer = -1;
  // Registers live on entry to `head` that are also defined in the body (others cannot change):
  // ptx register indices, ascending, predicates included. Loops with the same head and `seldom`
  // have the same ones.
  std::vector<std::int32_t> carried;
  // Integer setp of the body with an operand that moves with time or count, both operands being
  // made, within the loop, only by mov, cvta, add, sub, neg, not, mul.lo/mad.lo/shl with a
  // invariant factor, selp under a invariant predicate, integer cvt and low masks (see `wraps`)
  // from clock reads, carried registers, invariant and loaded values: they move linearly modulo
  // 2^width. A setp that is not listed here nor below has invariant operands. Inside an inner loop
  // one may be executed several times an iteration.
  std::vector<std::uint32_t> linear_compares;
  // Instructions that use a value which depends on time or on a carried register in a way that
  // cannot be extrapolated: compares of non-linear values; predicates, addresses, sleep lengths,
  // atomic operands and branch indices that move at all; non-linear definitions of carried
  // registers. An iteration that executes one whose sources differ from the iteration before must
  // not be skipped.
  std::vector<std::uint32_t> nonlinear_uses;
  // Those of nonlinear_uses that are linear as long as the low `bits` of their first source do not
  // wrap around: widening conversions (a 32-bit clock wraps within seconds) and masks like `&
  // 1023`. What is made of their results counts as linear. A skip that ends before the wrap may
  // ignore them as nonlinear uses.
  struct Wrap {
    std::uint32_t instruction = 0;
    std::uint8_t bits = 0;
    bool is_signed = false;
  };
  std::vector<Wrap> wraps;
  // It stores or exchanges data between lanes. Most such loops compute: they are watched only now
  // and then (Simulator::WatchesNow).
  bool seldom = false;
};

struct Flow {
  // For each guarded bra and each brx.idx: where its ways meet again (the first instruction of the
  // immediate post-dominator), or kNoPc if only at exit; kNoPc for all other instructions. Lanes
  // that end are waited for nowhere: guarded ret and exit, and ways that can only trap, do not
  // count. Endless loops count as ways to the exit. Size = code.size().
  std::vector<std::uint32_t> reconverge;
  // Place of each ptx register: first slot, or predicate number for kPred registers. kNoSlot: never
  // used. b32 and b64/b128 never share a slot, since their lanes overlap (flow_registers.cpp).
  // A destination may share its place with a source that dies in the same instruction, but not in
  // instructions with several destinations, with b128 or with exchange between lanes.
  std::vector<Slot> place;
  int slots = 0, predicates = 0;
  int wide_slots = 0;                // of `slots`: the first ones, for b64 and b128
  bool reads_unset = false;          // some register is live on entry
  std::vector<SpinLoop> spin_loops;  // by ascending branch
  bool ok = true;
  std::string error;  // when !ok: too many live registers, ...
};

// Which operands an instruction writes: destination operand indices are the leading ones. Exposed
// for the decoder and tests. Stores, reductions, fences, branches etc. have none.
int DestinationCount(const ptx::Instruction& instruction);

// Linear in code size (up to log factors); handles hostile functions of 10^6 instructions.
// `constant` (by ptx register, may be empty): registers that the decoder has replaced by constants;
// they get no place.
Flow Analyse(const ptx::Function& function, const std::vector<bool>& constant = {});

}  // namespace allranks::node
