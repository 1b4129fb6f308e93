// Loops over the lanes of a warp: what turns a function of values into an arithmetic handler.
// Included only by alu_kernels_*.cpp, which are compiled once per instruction set: everything here
// has internal linkage, and nothing of the standard library is instantiated, so that no code made
// for a newer processor can be merged into the rest of the program.
//
// The loops run over all 32 lanes and the compiler vectorises them. With a partial mask a handler
// runs over all lanes as well and the elements of inactive lanes are put back: handlers never trap,
// so computing with whatever lies there is harmless. Sources and destination may be the same slots;
// `ivdep` says that lanes do not depend on one another, which is all the vectoriser needs.
#pragma once

#include <cstdint>

#include "node/alu/alu_table.h"

#ifndef ALLRANKS_ISA
#error "compile this only in alu_kernels_*.cpp, see CMakeLists.txt"
#endif

#ifdef __clang__
#define ALLRANKS_EACH(i, count) \
  _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < (count); ++i)
#else
#define ALLRANKS_EACH(i, count) _Pragma("GCC ivdep") for (int i = 0; i < (count); ++i)
#endif
#define ALLRANKS_LANES ALLRANKS_EACH(l, kLanes)

namespace allranks::node::alu::ALLRANKS_ISA {
namespace {

using ptx::Type;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

// How a value lies in a slot's element.
template <class V, class E>
struct Plain {
  using Value = V;
  using Element = E;
  static Value Load(Element e) { return static_cast<Value>(e); }
  // Narrow values are stored with zeros above.
  static Element Store(Value v) {
    if constexpr (sizeof(Value) == 2) return static_cast<u16>(v);
    if constexpr (sizeof(Value) == 1) return static_cast<u8>(v);
    return static_cast<Element>(v);
  }
};
using U16 = Plain<u16, u32>;
using S16 = Plain<s16, u32>;
using U32 = Plain<u32, u32>;
using S32 = Plain<s32, u32>;
using U64 = Plain<u64, u64>;
using S64 = Plain<s64, u64>;

struct F32 {
  using Value = float;
  using Element = u32;
  static Value Load(Element e) { return __builtin_bit_cast(float, e); }
  static Element Store(Value v) { return __builtin_bit_cast(u32, v); }
};
struct F64 {
  using Value = double;
  using Element = u64;
  static Value Load(Element e) { return __builtin_bit_cast(double, e); }
  static Element Store(Value v) { return __builtin_bit_cast(u64, v); }
};

// Bit l of a lane mask, as a table: vectorises on every instruction set, a variable shift does not.
alignas(64) constexpr u32 kBit[kLanes] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

template <class E>
inline const E* Source(const Lanes& lanes, Slot slot) {
  const std::byte* base = (slot & kConstant) != 0 ? lanes.constants : lanes.registers;
  base += static_cast<std::size_t>(slot & (kConstant - 1)) * kSlotBytes;
  return static_cast<const E*>(__builtin_assume_aligned(base, 64));
}

template <class E>
inline E* Target(const Lanes& lanes, Slot slot) {
  return static_cast<E*>(
      __builtin_assume_aligned(lanes.registers + static_cast<std::size_t>(slot) * kSlotBytes, 64));
}

// Both values are given, i.e. loaded: a conditional load would keep the loop from vectorising.
template <class E>
inline E Choose(u32 mask, int lane, E yes, E no) {
  return (mask & kBit[lane]) != 0 ? yes : no;
}

// Runs `fn` over all lanes and puts the inactive lanes' elements of d back.
template <class E>
[[gnu::noinline]] void Partial(AluFn fn, const Lanes& lanes, const Op& op, u32 mask) {
  alignas(64) E saved[kLanes];
  E* d = Target<E>(lanes, op.d);
  ALLRANKS_LANES saved[l] = d[l];
  fn(lanes, op, kAllLanes);
  ALLRANKS_LANES d[l] = Choose(mask, l, d[l], saved[l]);
}

// The loop of a handler with sources of types A, B, C, ...: F::Do(values...), or
// F::Do(imm, values...) where F wants Op::imm.
template <class F, class D, class A>
void Map1(const Lanes& lanes, const Op& op, u32 mask) {
  using E = typename D::Element;
  if (mask != kAllLanes) return Partial<E>(&Map1<F, D, A>, lanes, op, mask);
  const auto* a = Source<typename A::Element>(lanes, op.s[0]);
  E* d = Target<E>(lanes, op.d);
  [[maybe_unused]] const u32 imm = op.imm;
  if constexpr (requires(typename A::Value v) { F::Do(v); }) {
    ALLRANKS_LANES d[l] = D::Store(F::Do(A::Load(a[l])));
  } else {
    ALLRANKS_LANES d[l] = D::Store(F::DoImm(imm, A::Load(a[l])));
  }
}

template <class F, class D, class A, class B>
void Map2(const Lanes& lanes, const Op& op, u32 mask) {
  using E = typename D::Element;
  if (mask != kAllLanes) return Partial<E>(&Map2<F, D, A, B>, lanes, op, mask);
  const auto* a = Source<typename A::Element>(lanes, op.s[0]);
  const auto* b = Source<typename B::Element>(lanes, op.s[1]);
  E* d = Target<E>(lanes, op.d);
  [[maybe_unused]] const u32 imm = op.imm;
  if constexpr (requires(typename A::Value v, typename B::Value w) { F::Do(v, w); }) {
    ALLRANKS_LANES d[l] = D::Store(F::Do(A::Load(a[l]), B::Load(b[l])));
  } else {
    ALLRANKS_LANES d[l] = D::Store(F::DoImm(imm, A::Load(a[l]), B::Load(b[l])));
  }
}

template <class F, class D, class A, class B, class C>
void Map3(const Lanes& lanes, const Op& op, u32 mask) {
  using E = typename D::Element;
  if (mask != kAllLanes) return Partial<E>(&Map3<F, D, A, B, C>, lanes, op, mask);
  const auto* a = Source<typename A::Element>(lanes, op.s[0]);
  const auto* b = Source<typename B::Element>(lanes, op.s[1]);
  const auto* c = Source<typename C::Element>(lanes, op.s[2]);
  E* d = Target<E>(lanes, op.d);
  [[maybe_unused]] const u32 imm = op.imm;
  if constexpr (requires(typename A::Value v, typename B::Value w, typename C::Value x) {
                  F::Do(v, w, x);
                }) {
    ALLRANKS_LANES d[l] = D::Store(F::Do(A::Load(a[l]), B::Load(b[l]), C::Load(c[l])));
  } else {
    ALLRANKS_LANES d[l] = D::Store(F::DoImm(imm, A::Load(a[l]), B::Load(b[l]), C::Load(c[l])));
  }
}

template <class F, class D, class A, class B, class C, class G>
void Map4(const Lanes& lanes, const Op& op, u32 mask) {
  using E = typename D::Element;
  if (mask != kAllLanes) return Partial<E>(&Map4<F, D, A, B, C, G>, lanes, op, mask);
  const auto* a = Source<typename A::Element>(lanes, op.s[0]);
  const auto* b = Source<typename B::Element>(lanes, op.s[1]);
  const auto* c = Source<typename C::Element>(lanes, op.s[2]);
  const auto* g = Source<typename G::Element>(lanes, op.s[3]);
  E* d = Target<E>(lanes, op.d);
  ALLRANKS_LANES d[l] = D::Store(F::Do(A::Load(a[l]), B::Load(b[l]), C::Load(c[l]), G::Load(g[l])));
}

// Short forms for the usual case of one type.
template <class F, class T>
constexpr AluFn kUnary = &Map1<F, T, T>;
template <class F, class T>
constexpr AluFn kBinary = &Map2<F, T, T, T>;
template <class F, class T>
constexpr AluFn kTernary = &Map3<F, T, T, T, T>;

// Predicate sources and destinations.
inline u32 LoadPredicate(const Lanes& lanes, const Op& op, Slot slot) {
  const u32 p = lanes.predicates[slot];
  return (op.flags & kNegatePredicate) != 0 ? ~p : p;
}

inline void StorePredicate(const Lanes& lanes, Slot slot, u32 bits, u32 mask) {
  if (slot == kNoSlot) return;
  u32& p = lanes.predicates[slot];
  p = (p & ~mask) | (bits & mask);
}

template <std::size_t kSize>
constexpr Entries MakeEntries(const Entry (&entries)[kSize]) {
  return {entries, kSize};
}

}  // namespace
}  // namespace allranks::node::alu::ALLRANKS_ISA
