// Runs one PTX instruction on a small register file and compares all of it, lane by lane, with what
// a function of the test says. Every instruction runs with the handlers of each instruction set
// this processor has, with full and with random masks; registers that the instruction does not
// name, inactive lanes and the other instruction sets' results are compared as well.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "node/alu.h"
#include "node/alu_internal.h"
#include "ptx/parser.h"

namespace allranks::node::alu_test {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

template <class To, class From>
To As(From v) {
  static_assert(sizeof(To) == sizeof(From));
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

// One thread's registers: %h0.. (16 bits), %r0.. (32), %rd0.. (64), %p0.., %q0.. (two halves of
// 128).
struct Thread {
  static constexpr int kEach = 6;
  u64 h[kEach] = {}, r[kEach] = {}, rd[kEach] = {}, low[kEach] = {}, high[kEach] = {};
  bool p[kEach] = {};
};

class Machine {
 public:
  // The instruction's text, e.g. "add.s32 %r0, %r1, 7;".
  explicit Machine(const std::string& text) : text_(text) {
    auto parsed = ptx::Parse(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .b16 %h<6>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<6>;\n.reg .pred %p<6>;\n"
        ".reg .b128 %q<6>;\n" +
        text + "\nret;\n}\n");
    if (!parsed) {
      ADD_FAILURE() << text << ": " << parsed.error().message;
      return;
    }
    module_ = std::move(*parsed);
    for (const alu::Isa isa : {alu::Isa::kV2, alu::Isa::kV3, alu::Isa::kV4}) {
      if (!alu::IsaSupported(isa)) continue;
      const alu::ScopedIsa scoped(isa);
      Op op;
      if (!Decode(&op)) {
        selected_ = false;
        return;
      }
      ops_.push_back(op);
    }
    selected_ = true;
  }

  bool selected() const { return selected_; }
  std::size_t isas() const { return ops_.size(); }
  const AluForm& form() const { return form_; }

  // The 32 threads after the instruction.
  void Run(std::size_t isa, const Thread (&in)[kLanes], u32 mask, Thread (&out)[kLanes]) {
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < Thread::kEach; ++i) {
        Word(i)[l] = static_cast<u32>(in[l].h[i]);
        Word(Thread::kEach + i)[l] = static_cast<u32>(in[l].r[i]);
        Long(i)[l] = in[l].rd[i];
        Wide(i)[l] = in[l].low[i];
        Wide(i)[kLanes + l] = in[l].high[i];
        predicates_[i] = (predicates_[i] & ~(1u << l)) | static_cast<u32>(in[l].p[i]) << l;
      }
    }
    const Lanes lanes{reinterpret_cast<std::byte*>(registers_),
                      reinterpret_cast<const std::byte*>(constants_), predicates_};
    ops_[isa].alu(lanes, ops_[isa], mask);
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < Thread::kEach; ++i) {
        out[l].h[i] = Word(i)[l];
        out[l].r[i] = Word(Thread::kEach + i)[l];
        out[l].rd[i] = Long(i)[l];
        out[l].low[i] = Wide(i)[l];
        out[l].high[i] = Wide(i)[kLanes + l];
        out[l].p[i] = ((predicates_[i] >> l) & 1) != 0;
      }
    }
  }

 private:
  static constexpr int kCarry = 5;  // %p5 stands for the carry flag

  u32* Word(int i) { return registers_ + 32 * i; }
  u64* Long(int i) { return reinterpret_cast<u64*>(registers_ + 32 * (12 + 2 * i)); }
  u64* Wide(int i) { return reinterpret_cast<u64*>(registers_ + 32 * (24 + 4 * i)); }

  // Registers are declared in the order h, r, rd, p, q, six each.
  static Slot SlotOf(int reg) {
    const int kind = reg / Thread::kEach, i = reg % Thread::kEach;
    constexpr int kFirst[] = {0, 6, 12, 0, 24}, kStep[] = {1, 1, 2, 1, 4};
    return static_cast<Slot>(kFirst[kind] + kStep[kind] * i);
  }

  bool Decode(Op* op) {
    const ptx::Function& function = module_.functions.at(0);
    const ptx::Instruction& in = function.code.at(0);
    form_ = AluForm{};
    if (!SelectAlu(in, &form_, &function.registers)) return false;
    op->alu = form_.fn;
    op->imm = form_.imm;
    op->flags = form_.flags;
    op->kind = OpKind::kAlu;
    int constant = 0;
    for (const AluForm::Place& place : form_.places) {
      const ptx::Operand* o = &in.operands.at(place.operand);
      if (place.element != 0xff) o = &o->elements.at(place.element);
      Slot slot = kNoSlot;
      if (o->kind == ptx::Operand::Kind::kReg) {
        slot = SlotOf(o->reg);
      } else if (o->kind != ptx::Operand::Kind::kSink) {
        slot = static_cast<Slot>(kConstant | constant);
        for (int l = 0; l < kLanes; ++l) {
          if (place.bytes == 4) {
            const u32 mask = place.literal_bits == 0 ? ~0u : (1u << place.literal_bits) - 1;
            constants_[32 * constant + l] = static_cast<u32>(o->imm) & mask;
          } else {
            std::memcpy(&constants_[32 * constant + 2 * l], &o->imm, 8);
          }
        }
        constant += place.bytes / 4;
      }
      Slot* const where[] = {&op->d, &op->d2, &op->s[0], &op->s[1], &op->s[2], &op->s[3]};
      *where[static_cast<int>(place.where)] = slot;
    }
    if ((form_.flags & kReadsCarry) != 0) op->s[3] = kCarry;
    if ((form_.flags & kWritesCarry) != 0) op->d2 = kCarry;
    return true;
  }

  std::string text_;
  ptx::Module module_;
  AluForm form_;
  std::vector<Op> ops_;
  bool selected_ = false;
  alignas(64) u32 registers_[32 * 48] = {};
  alignas(64) u32 constants_[32 * 16] = {};
  u32 predicates_[Thread::kEach] = {};
};

// Values worth trying, as bits: integers and floats alike.
inline const std::vector<u64>& Edges(int bytes) {
  static const std::vector<u64> k16 = {
      0,      1,      2,      3,      7,      8,      15,     16,     17,     31,
      32,     0x7f,   0x80,   0xff,   0x100,  0x3ff,  0x400,  0x401,  0x3c00, 0x3c01,
      0x3bff, 0x3800, 0x4000, 0x7bff, 0x7c00, 0x7c01, 0x7e00, 0x7fff, 0x8000, 0x8001,
      0x83ff, 0x8400, 0xbc00, 0xc000, 0xfbff, 0xfc00, 0xfe00, 0xffff, 0x3f80, 0x7f80,
      0x0080, 0x7f7f, 0xff80, 0x7f81, 0x4b00, 0x5bff, 0x0001, 0x3555, 0x6400};
  static const std::vector<u64> k32 = {
      0,          1,          2,          3,          7,          8,          31,
      32,         33,         63,         64,         255,        256,        0x7fff,
      0x8000,     0xffff,     0x10000,    0x12345678, 0x7ffffffe, 0x7fffffff, 0x80000000,
      0x80000001, 0xfffffffe, 0xffffffff, 0x007fffff, 0x00800000, 0x00800001, 0x33800000,
      0x3effffff, 0x3f000000, 0x3f000001, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fc00000,
      0x40000000, 0x40200000, 0x4b000000, 0x4b800000, 0x4b7fffff, 0x4f000000, 0x4effffff,
      0x4f800000, 0x5f000000, 0x5f800000, 0x7f000000, 0x7f7fffff, 0x7f800000, 0x7f800001,
      0x7fc00000, 0x807fffff, 0x80800000, 0xbf000000, 0xbf800000, 0xbfc00000, 0xcf000000,
      0xcf000001, 0xdf000000, 0xff7fffff, 0xff800000, 0xffc00000, 0x477fefff, 0x477ff000,
      0x38800000, 0x387fe000, 0x33000000, 0x33000001, 0x7f7f8000, 0x00400000, 0x7e800000,
      0x7e800001, 0x01000000};
  static const std::vector<u64> k64 = {0,
                                       1,
                                       2,
                                       3,
                                       31,
                                       32,
                                       63,
                                       64,
                                       65,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x100000000,
                                       0x7ffffffffffffffe,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0x8000000000000001,
                                       0xfffffffffffffffe,
                                       0xffffffffffffffff,
                                       0x000fffffffffffff,
                                       0x0010000000000000,
                                       0x0010000000000001,
                                       0x3fe0000000000000,
                                       0x3fdfffffffffffff,
                                       0x3ff0000000000000,
                                       0x3ff0000000000001,
                                       0x3fefffffffffffff,
                                       0x3ff8000000000000,
                                       0x4000000000000000,
                                       0x4004000000000000,
                                       0x41dfffffffc00000,
                                       0x41e0000000000000,
                                       0x41efffffffe00000,
                                       0x41f0000000000000,
                                       0x43e0000000000000,
                                       0x43dfffffffffffff,
                                       0x43f0000000000000,
                                       0x7fe0000000000000,
                                       0x7fefffffffffffff,
                                       0x7ff0000000000000,
                                       0x7ff0000000000001,
                                       0x7ff8000000000000,
                                       0xbff0000000000000,
                                       0xbfe0000000000000,
                                       0xc1e0000000000000,
                                       0xc3e0000000000000,
                                       0xffefffffffffffff,
                                       0xfff0000000000000,
                                       0xfff8000000000000,
                                       0x800fffffffffffff,
                                       0x47efffffe0000000,
                                       0x47efffffefffffff,
                                       0x47effffff0000000,
                                       0x36a0000000000000,
                                       0x3690000000000000,
                                       0x3690000000000001,
                                       0x380fffffe0000000,
                                       0x600000000000,
                                       0x610000000010,
                                       0x620000000020,
                                       0x5fffffffffff,
                                       0x630000000000,
                                       0x3fffffffe0000000,
                                       0x3ff0000010000000,
                                       0x3ff0000030000000,
                                       0x40effc0000000000};
  return bytes == 2 ? k16 : bytes == 4 ? k32 : k64;
}

inline std::mt19937_64& Random() {
  static std::mt19937_64 random(20240607);
  return random;
}

// Random bits, small numbers, neighbours of edges, or floats of like size, so that sums cancel.
inline u64 RandomValue(int bytes) {
  const u64 r = Random()();
  const u64 mask = bytes == 8 ? ~u64{0} : (u64{1} << (8 * bytes)) - 1;
  const auto& edges = Edges(bytes);
  switch (r & 7) {
    case 0:
      return edges[(r >> 8) % edges.size()];
    case 1:
      return (edges[(r >> 8) % edges.size()] + ((r >> 40) & 7) - 3) & mask;
    case 2:
      return (r >> 8) & 0xff & mask;
    case 3: {
      const u64 fraction = Random()();
      if (bytes == 8)
        return (r & 0x8000000000000000) | (1020 + ((r >> 8) & 7)) << 52 | fraction >> 12;
      if (bytes == 4) return (r >> 16 & 0x80000000) | (124 + ((r >> 8) & 7)) << 23 | fraction >> 41;
      return (r >> 48 & 0x8000) | (12 + ((r >> 8) & 7)) << 10 | fraction >> 54;
    }
    case 4:  // few bits set
      return (u64{1} << (r >> 8 & 63) | u64{1} << (r >> 16 & 63)) & mask;
    default:
      return Random()() & mask;
  }
}

inline void FillRandom(Thread* t) {
  for (int i = 0; i < Thread::kEach; ++i) {
    t->h[i] = RandomValue(2);
    t->r[i] = RandomValue(4);
    t->rd[i] = RandomValue(8);
    t->low[i] = RandomValue(8);
    t->high[i] = RandomValue(8);
    t->p[i] = (Random()() & 1) != 0;
  }
}

enum class Nans { kExact, kAny };

inline bool SameValue(u64 got, u64 want, int bytes, Nans nans) {
  if (got == want) return true;
  if (nans == Nans::kExact) return false;
  if (bytes == 4)
    return got <= 0xffffffff && (got & 0x7fffffff) > 0x7f800000 && (want & 0x7fffffff) > 0x7f800000;
  return bytes == 8 && As<double>(got) != As<double>(got) && As<double>(want) != As<double>(want);
}

inline bool SameThread(const Thread& got, const Thread& want, Nans nans) {
  for (int i = 0; i < Thread::kEach; ++i) {
    if (got.h[i] != want.h[i] || got.p[i] != want.p[i] || got.low[i] != want.low[i] ||
        got.high[i] != want.high[i] || !SameValue(got.r[i], want.r[i], 4, nans) ||
        !SameValue(got.rd[i], want.rd[i], 8, nans)) {
      return false;
    }
  }
  return true;
}

inline std::string Describe(const Thread& t) {
  std::string s;
  char buffer[160];
  for (int i = 0; i < Thread::kEach; ++i) {
    std::snprintf(
        buffer, sizeof buffer, "\n  [%d] h %04llx r %08llx rd %016llx q %016llx:%016llx p %d", i,
        static_cast<unsigned long long>(t.h[i]), static_cast<unsigned long long>(t.r[i]),
        static_cast<unsigned long long>(t.rd[i]), static_cast<unsigned long long>(t.high[i]),
        static_cast<unsigned long long>(t.low[i]), t.p[i]);
    s += buffer;
  }
  return s;
}

// Checks `text` against `model`, which changes a thread as the instruction should. Registers number
// one and two run through all pairs of edges; the rest, and `random` further threads, are random.
inline void Check(const std::string& text, const std::function<void(Thread*)>& model,
                  int random = 20000, Nans nans = Nans::kExact) {
  Machine machine(text);
  ASSERT_TRUE(machine.selected()) << text;
  std::vector<Thread> threads;
  for (std::size_t i = 0; i < 72; ++i) {
    for (std::size_t j = 0; j < 72; ++j) {
      Thread t;
      FillRandom(&t);
      const auto edge = [](int bytes, std::size_t at) {
        return Edges(bytes)[at % Edges(bytes).size()];
      };
      t.h[1] = edge(2, i);
      t.h[2] = edge(2, j);
      t.r[1] = edge(4, i);
      t.r[2] = edge(4, j);
      t.rd[1] = edge(8, i);
      t.rd[2] = edge(8, j);
      threads.push_back(t);
    }
  }
  const std::size_t edges = threads.size();
  threads.resize((edges + static_cast<std::size_t>(random) + 31) / 32 * 32);
  for (std::size_t i = edges; i < threads.size(); ++i) FillRandom(&threads[i]);
  for (std::size_t first = 0; first < threads.size(); first += kLanes) {
    Thread in[kLanes], out[kLanes], want[kLanes], reference[kLanes];
    std::copy_n(threads.begin() + static_cast<std::ptrdiff_t>(first), kLanes, in);
    const u32 partial = static_cast<u32>(Random()()) | 1;
    const u32 mask = (first / kLanes) % 3 == 0 ? partial : kAllLanes;
    for (int l = 0; l < kLanes; ++l) {
      want[l] = in[l];
      if (((mask >> l) & 1) != 0) model(&want[l]);
    }
    for (std::size_t isa = 0; isa < machine.isas(); ++isa) {
      machine.Run(isa, in, mask, out);
      for (int l = 0; l < kLanes; ++l) {
        ASSERT_TRUE(SameThread(out[l], want[l], nans))
            << text << " isa " << isa << " lane " << l << " mask " << std::hex << mask << "\nin"
            << Describe(in[l]) << "\ngot" << Describe(out[l]) << "\nwant" << Describe(want[l]);
        if (isa == 0) {
          reference[l] = out[l];
        } else {
          ASSERT_TRUE(SameThread(out[l], reference[l], Nans::kExact))
              << text << ": instruction sets differ, lane " << l << "\nin" << Describe(in[l])
              << "\ngot" << Describe(out[l]) << "\nfirst" << Describe(reference[l]);
        }
      }
    }
  }
}

// --- typed short forms: destination is register 0 of its class, sources are 1, 2, 3, ...
// ------------
template <class T>
std::string RegisterName(int i) {
  if constexpr (std::is_same_v<T, bool>) return "%p" + std::to_string(i);
  if constexpr (sizeof(T) == 2) return "%h" + std::to_string(i);
  if constexpr (sizeof(T) == 4) return "%r" + std::to_string(i);
  return "%rd" + std::to_string(i);
}
template <class T>
T Get(const Thread& t, int i) {
  if constexpr (std::is_same_v<T, bool>) {
    return t.p[i];
  } else if constexpr (sizeof(T) == 2) {
    return As<T>(static_cast<u16>(t.h[i]));
  } else if constexpr (sizeof(T) == 4) {
    return As<T>(static_cast<u32>(t.r[i]));
  } else {
    return As<T>(t.rd[i]);
  }
}
// A float result that is NaN is the canonical one.
template <class T>
void Put(Thread* t, T v) {
  if constexpr (std::is_same_v<T, bool>) {
    t->p[0] = v;
  } else if constexpr (sizeof(T) == 2) {
    t->h[0] = As<u16>(v);
  } else if constexpr (sizeof(T) == 4) {
    t->r[0] = As<u32>(v);
    if constexpr (std::is_same_v<T, float>) {
      if (v != v) t->r[0] = 0x7fffffff;
    }
  } else {
    t->rd[0] = As<u64>(v);
  }
}

template <class D, class A, class F>
void Check1(const std::string& form, F f, int random = 20000, Nans nans = Nans::kExact) {
  Check(
      form + " " + RegisterName<D>(0) + ", " + RegisterName<A>(1) + ";",
      [f](Thread* t) { Put<D>(t, f(Get<A>(*t, 1))); }, random, nans);
}
template <class D, class A, class B, class F>
void Check2(const std::string& form, F f, int random = 20000, Nans nans = Nans::kExact) {
  Check(
      form + " " + RegisterName<D>(0) + ", " + RegisterName<A>(1) + ", " + RegisterName<B>(2) + ";",
      [f](Thread* t) { Put<D>(t, f(Get<A>(*t, 1), Get<B>(*t, 2))); }, random, nans);
}
template <class D, class A, class B, class C, class F>
void Check3(const std::string& form, F f, int random = 20000, Nans nans = Nans::kExact) {
  Check(
      form + " " + RegisterName<D>(0) + ", " + RegisterName<A>(1) + ", " + RegisterName<B>(2) +
          ", " + RegisterName<C>(3) + ";",
      [f](Thread* t) { Put<D>(t, f(Get<A>(*t, 1), Get<B>(*t, 2), Get<C>(*t, 3))); }, random, nans);
}

}  // namespace allranks::node::alu_test
