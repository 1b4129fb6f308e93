// How many bytes the instruction at a faulting pc accesses. Only the forms matter with which
// compiled code reads a flag; for others the caller watches the eight bytes around the address,
// which wakes the thread too often but never too late.
#include "shim/host/pinned.h"

namespace allranks::shim {
namespace {

// SSE and AVX moves, 0F map: bytes by prefix (none, 66, F3, F2). 0: not known.
std::uint32_t VectorMoveSize(std::uint8_t opcode, std::uint8_t prefix, bool wide, bool ymm) {
  switch (opcode) {
    case 0x10:  // movups, movupd, movss, movsd
    case 0x11:
      return prefix == 0xf3 ? 4 : prefix == 0xf2 ? 8 : ymm ? 0 : 16;
    case 0x28:  // movaps, movapd
    case 0x29:
      return ymm ? 0 : 16;
    case 0x6e:  // movd, movq
      return wide ? 8 : 4;
    case 0x6f:  // movdqa, movdqu
    case 0x7f:
      return ymm ? 0 : 16;
    case 0x7e:  // F3: movq xmm, m64
      return prefix == 0xf3 ? 8 : wide ? 8 : 4;
    case 0xd6:
    case 0x12:  // movlps
    case 0x16:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

std::uint32_t MemoryOperandSize(const std::uint8_t* code) {
  bool operand16 = false, wide = false;
  std::uint8_t repeat = 0;
  for (;; ++code) {
    if (*code == 0x66) {
      operand16 = true;
    } else if (*code == 0xf2 || *code == 0xf3) {
      repeat = *code;
    } else if (*code != 0xf0 && *code != 0x67 && *code != 0x64 && *code != 0x65 && *code != 0x2e &&
               *code != 0x3e) {
      break;
    }
  }
  const std::uint8_t vector_prefix = repeat != 0 ? repeat : operand16 ? 0x66 : 0;
  if (*code == 0xc5) {  // two-byte VEX, 0F map
    static constexpr std::uint8_t kPrefix[] = {0, 0x66, 0xf3, 0xf2};
    return VectorMoveSize(code[2], kPrefix[code[1] & 3], false, (code[1] & 4) != 0);
  }
  if ((*code & 0xf0) == 0x40) {
    wide = (*code & 8) != 0;
    ++code;
  }
  const std::uint32_t full = wide ? 8 : operand16 ? 2 : 4;
  const std::uint8_t opcode = *code;
  if (opcode == 0x0f) {
    switch (code[1]) {
      case 0xb6:  // movzx, movsx of a byte; setcc does not read
      case 0xbe:
      case 0xb0:  // cmpxchg
      case 0xc0:  // xadd
        return 1;
      case 0xb7:
      case 0xbf:
        return 2;
      case 0xb1:
      case 0xc1:
      case 0xa3:  // bt
      case 0xba:
      case 0xaf:  // imul
        return full;
      case 0xc7:  // cmpxchg8b, 16b
        return wide ? 16 : 8;
      default:
        return (code[1] & 0xf0) == 0x40 ? full
                                        : VectorMoveSize(code[1], vector_prefix, wide, false);
    }
  }
  if (opcode < 0x40 && (opcode & 7) < 4) return (opcode & 1) == 0 ? 1 : full;  // add ... cmp
  switch (opcode) {
    case 0x63:  // movsxd
      return 4;
    case 0x80:
    case 0x84:  // test
    case 0x86:  // xchg
    case 0x88:  // mov
    case 0x8a:
    case 0xc6:
    case 0xf6:
    case 0xfe:
      return 1;
    case 0x69:
    case 0x6b:
    case 0x81:
    case 0x83:
    case 0x85:
    case 0x87:
    case 0x89:
    case 0x8b:
    case 0xc7:
    case 0xf7:
      return full;
    case 0xff:  // inc, dec; push and call through memory are eight bytes whatever the prefix
      return ((code[1] >> 3) & 7) < 2 ? full : 8;
    default:
      return 0;
  }
}

bool IsRepeatedMove(const std::uint8_t* code) {
  bool repeated = false;
  for (; *code == 0x66 || *code == 0x67 || *code == 0xf2 || *code == 0xf3; ++code)
    repeated = repeated || *code >= 0xf2;
  if ((*code & 0xf0) == 0x40) ++code;
  return repeated && (*code == 0xa4 || *code == 0xa5 || *code == 0xaa || *code == 0xab);
}

}  // namespace allranks::shim
