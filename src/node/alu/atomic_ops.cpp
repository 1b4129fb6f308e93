// Atomics and reductions on bytes; see atomic_ops.h. One class per kind of number says what an
// operation makes of two of them, as bits; one loop applies it to lanes, elements and parts.
#include "node/alu/atomic_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "node/code/lanes.h"
#include "node/code/small_floats.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kQuietF64 = 0x0008000000000000;
constexpr std::uint64_t kNanF64 = 0xfff8000000000000;

// PTX ISA, atom: add.f32 on global memory flushes subnormal inputs and results to zero, keeping the
// sign; on shared memory it does not.
float Flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

template <class T>
struct Integer {
  using Bits = std::make_unsigned_t<T>;

  static Bits Apply(AtomicOp op, Bits old, Bits value, bool) {
    const auto a = static_cast<T>(old), b = static_cast<T>(value);
    switch (op) {
      case AtomicOp::kExch:
        return value;
      case AtomicOp::kAdd:
        return static_cast<Bits>(old + value);
      case AtomicOp::kMin:
        return static_cast<Bits>(std::min(a, b));
      case AtomicOp::kMax:
        return static_cast<Bits>(std::max(a, b));
      case AtomicOp::kInc:
        return old >= value ? Bits{0} : static_cast<Bits>(old + 1);
      case AtomicOp::kDec:
        return old == 0 || old > value ? value : static_cast<Bits>(old - 1);
      case AtomicOp::kAnd:
        return old & value;
      case AtomicOp::kOr:
        return old | value;
      case AtomicOp::kXor:
        return old ^ value;
      default:
        return old;
    }
  }
};

// The smaller or larger one; a number wins over NaN, and -0 is less than +0.
float Extreme(AtomicOp op, float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == 0 && b == 0) return std::signbit(a) == (op == AtomicOp::kMin) ? a : b;
  return op == AtomicOp::kMin ? std::min(a, b) : std::max(a, b);
}

struct Float {
  using Bits = std::uint32_t;
  static Bits Apply(AtomicOp op, Bits old, Bits value, bool global) {
    auto a = std::bit_cast<float>(old), b = std::bit_cast<float>(value);
    float result = 0;
    if (op == AtomicOp::kAdd) {
      if (global) {
        a = Flush(a);
        b = Flush(b);
      }
      result = a + b;
      if (global) result = Flush(result);
    } else {
      result = Extreme(op, a, b);
    }
    return std::isnan(result) ? kCanonicalNanF32 : std::bit_cast<Bits>(result);
  }
};

struct Double {
  using Bits = std::uint64_t;
  static Bits Apply(AtomicOp, Bits old, Bits value, bool) {
    const auto a = std::bit_cast<double>(old), b = std::bit_cast<double>(value);
    // As in arithmetic (alu_float.h): the first NaN's payload stays.
    if (std::isnan(a)) return old | kQuietF64;
    if (std::isnan(b)) return value | kQuietF64;
    const double result = a + b;
    return std::isnan(result) ? kNanF64 : std::bit_cast<Bits>(result);
  }
};

// Computed in float: a sum of two such numbers is then rounded twice, which for formats of at most
// 11 bits gives the same as once.
template <class Format, class B>
struct Small {
  using Bits = B;
  using Value = Format;
  static Bits Apply(AtomicOp op, Bits old, Bits value, bool) {
    const float a = Format::Load(old), b = Format::Load(value);
    return static_cast<Bits>(Format::Store(op == AtomicOp::kAdd ? a + b : Extreme(op, a, b)));
  }
};

// Calls f.operator()<N>() with the class of the number. kB128 has none.
template <class F>
auto WithNumber(Number number, F f) {
  switch (number) {
    case Number::kU16:
      return f.template operator()<Integer<std::uint16_t>>();
    case Number::kS32:
      return f.template operator()<Integer<std::int32_t>>();
    case Number::kU64:
      return f.template operator()<Integer<std::uint64_t>>();
    case Number::kS64:
      return f.template operator()<Integer<std::int64_t>>();
    case Number::kF16:
      return f.template operator()<Small<Half, std::uint16_t>>();
    case Number::kBF16:
      return f.template operator()<Small<Bfloat, std::uint16_t>>();
    case Number::kF32:
      return f.template operator()<Float>();
    case Number::kF64:
      return f.template operator()<Double>();
    case Number::kE4M3:
      return f.template operator()<Small<E4M3, std::uint8_t>>();
    case Number::kE5M2:
      return f.template operator()<Small<E5M2, std::uint8_t>>();
    default:
      return f.template operator()<Integer<std::uint32_t>>();
  }
}

template <class N>
bool Lanewise(const MemoryOp& op, std::byte* registers, const std::byte* constants,
              std::uint32_t lanes, std::byte* base, const std::uint64_t* offset, bool global) {
  using Bits = typename N::Bits;
  const std::size_t width = op.register_bytes == 8 ? 8 : 4;
  const std::byte* compare =
      op.compare == kNoSlot ? nullptr : SlotAt(registers, constants, op.compare);
  bool changed = false;
  ForLanes(lanes, [&](int l) {
    const auto lane = static_cast<std::size_t>(l);
    std::byte* to = base + offset[l];
    for (int e = 0; e < op.count; ++e, to += op.bytes) {
      // What the register gets is read before anything of this element is written.
      std::uint64_t before = 0;
      std::memcpy(&before, to, op.bytes);
      const std::byte* from = SlotAt(registers, constants, op.operand[e]) + lane * width;
      for (std::size_t at = 0; at < op.bytes; at += sizeof(Bits)) {
        Bits old{}, value{};
        std::memcpy(&old, to + at, sizeof(Bits));
        std::memcpy(&value, from + at, sizeof(Bits));
        Bits result = old;
        if (op.atomic == AtomicOp::kCas) {
          Bits expected{};
          std::memcpy(&expected, compare + lane * width, sizeof(Bits));
          if (old == expected) result = value;
        } else {
          result = N::Apply(op.atomic, old, value, global);
        }
        changed |= result != old;
        std::memcpy(to + at, &result, sizeof(Bits));
      }
      if (op.data[e] != kNoSlot)
        std::memcpy(registers + op.data[e] * kSlotBytes + lane * width, &before, width);
    }
  });
  return changed;
}

// exch and cas. A b128 register is two halves of four slots (op.h).
bool Wide(const MemoryOp& op, std::byte* registers, const std::byte* constants, std::uint32_t lanes,
          std::byte* base, const std::uint64_t* offset) {
  const auto read = [&](Slot slot, int l, std::byte* value) {
    const std::byte* from = SlotAt(registers, constants, slot) + l * 8;
    std::memcpy(value, from, 8);
    std::memcpy(value + 8, from + 2 * kSlotBytes, 8);
  };
  bool changed = false;
  ForLanes(lanes, [&](int l) {
    std::byte old[16], value[16], expected[16];
    std::memcpy(old, base + offset[l], 16);
    read(op.operand[0], l, value);
    if (op.compare != kNoSlot) read(op.compare, l, expected);
    if (op.atomic != AtomicOp::kCas || std::memcmp(old, expected, 16) == 0) {
      changed |= std::memcmp(old, value, 16) != 0;
      std::memcpy(base + offset[l], value, 16);
    }
    if (op.data[0] == kNoSlot) return;
    std::byte* d = registers + op.data[0] * kSlotBytes + l * 8;
    std::memcpy(d, old, 8);
    std::memcpy(d + 2 * kSlotBytes, old + 8, 8);
  });
  return changed;
}

}  // namespace

bool AtomicLanes(const MemoryOp& op, std::byte* registers, const std::byte* constants,
                 std::uint32_t lanes, std::byte* base, const std::uint64_t* offset, bool global) {
  if (op.number == Number::kB128) return Wide(op, registers, constants, lanes, base, offset);
  return WithNumber(op.number, [&]<class N>() {
    return Lanewise<N>(op, registers, constants, lanes, base, offset, global);
  });
}

void ReduceBytes(Number number, AtomicOp op, std::byte* to, const std::byte* from,
                 std::size_t bytes, bool global) {
  WithNumber(number, [&]<class N>() {
    using Bits = typename N::Bits;
    for (std::size_t at = 0; at + sizeof(Bits) <= bytes; at += sizeof(Bits)) {
      Bits old{}, value{};
      std::memcpy(&old, to + at, sizeof(Bits));
      std::memcpy(&value, from + at, sizeof(Bits));
      const Bits result = N::Apply(op, old, value, global);
      std::memcpy(to + at, &result, sizeof(Bits));
    }
  });
}

int BytesOf(Number number) {
  if (number == Number::kB128) return 16;
  return WithNumber(number, []<class N>() { return static_cast<int>(sizeof(typename N::Bits)); });
}

void FoldLane(const MemoryOp& op, const std::byte* registers, int lane, bool first,
              std::byte* sum) {
  const std::size_t width = op.register_bytes == 8 ? 8 : 4;
  for (int e = 0; e < op.count; ++e, sum += op.bytes) {
    if (op.data[e] == kNoSlot) continue;
    const std::byte* value =
        registers + op.data[e] * kSlotBytes + static_cast<std::size_t>(lane) * width;
    if (first) {
      std::memcpy(sum, value, op.bytes);
      continue;
    }
    WithNumber(op.number, [&]<class N>() {
      using Bits = typename N::Bits;
      for (std::size_t at = 0; at < op.bytes; at += sizeof(Bits)) {
        Bits left{}, right{};
        std::memcpy(&left, sum + at, sizeof(Bits));
        std::memcpy(&right, value + at, sizeof(Bits));
        const Bits both = N::Apply(op.atomic, left, right, false);
        std::memcpy(sum + at, &both, sizeof(Bits));
      }
    });
  }
}

void FoldWide(const MemoryOp& op, const std::byte* registers, int lane, bool first, float* sum) {
  const std::size_t width = op.register_bytes == 8 ? 8 : 4;
  for (int e = 0; e < op.count; ++e) {
    const std::byte* value =
        registers + op.data[e] * kSlotBytes + static_cast<std::size_t>(lane) * width;
    WithNumber(op.number, [&]<class N>() {
      if constexpr (requires { typename N::Value; }) {
        for (std::size_t at = 0; at < op.bytes; at += sizeof(typename N::Bits), ++sum) {
          typename N::Bits bits{};
          if (op.data[e] != kNoSlot) std::memcpy(&bits, value + at, sizeof bits);
          *sum = first ? N::Value::Load(bits) : *sum + N::Value::Load(bits);
          if (op.accumulate == 16) *sum = Half::Load(Half::Store(*sum));
        }
      }
    });
  }
}

void RoundWide(const MemoryOp& op, const float* sum, std::byte* out) {
  WithNumber(op.number, [&]<class N>() {
    if constexpr (requires { typename N::Value; }) {
      for (int at = 0; at < op.bytes * op.count; at += static_cast<int>(sizeof(typename N::Bits))) {
        const auto bits = static_cast<typename N::Bits>(N::Value::Store(*sum++));
        std::memcpy(out + at, &bits, sizeof bits);
      }
    }
  });
}

}  // namespace allranks::node
