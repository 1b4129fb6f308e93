// Sizes of memory operands, on instructions as an assembler writes them.
#include <gtest/gtest.h>

#include <vector>

#include "shim/host/pinned.h"

namespace allranks::shim {
namespace {

std::uint32_t Size(std::vector<std::uint8_t> code) {
  code.resize(16);
  return MemoryOperandSize(code.data());
}

TEST(MemoryOperand, Moves) {
  EXPECT_EQ(Size({0x8b, 0x07}), 4u);        // mov eax, [rdi]
  EXPECT_EQ(Size({0x48, 0x8b, 0x07}), 8u);  // mov rax, [rdi]
  EXPECT_EQ(Size({0x66, 0x8b, 0x07}), 2u);  // mov ax, [rdi]
  EXPECT_EQ(Size({0x8a, 0x07}), 1u);        // mov al, [rdi]
  EXPECT_EQ(Size({0x41, 0x8b, 0x00}), 4u);  // mov eax, [r8]
  EXPECT_EQ(Size({0x0f, 0xb6, 0x07}), 1u);  // movzx eax, byte [rdi]
  EXPECT_EQ(Size({0x0f, 0xb7, 0x07}), 2u);  // movzx eax, word [rdi]
  EXPECT_EQ(Size({0x48, 0x63, 0x07}), 4u);  // movsxd rax, dword [rdi]
}

TEST(MemoryOperand, ComparesAndTests) {
  EXPECT_EQ(Size({0x83, 0x3f, 0x00}), 4u);        // cmp dword [rdi], 0
  EXPECT_EQ(Size({0x48, 0x83, 0x3f, 0x00}), 8u);  // cmp qword [rdi], 0
  EXPECT_EQ(Size({0x80, 0x3f, 0x00}), 1u);        // cmp byte [rdi], 0
  EXPECT_EQ(Size({0x39, 0x37}), 4u);              // cmp [rdi], esi
  EXPECT_EQ(Size({0x48, 0x3b, 0x37}), 8u);        // cmp rsi, [rdi]
  EXPECT_EQ(Size({0xf6, 0x07, 0x01}), 1u);        // test byte [rdi], 1
}

TEST(MemoryOperand, Atomics) {
  EXPECT_EQ(Size({0xf0, 0x0f, 0xb1, 0x0f}), 4u);         // lock cmpxchg [rdi], ecx
  EXPECT_EQ(Size({0xf0, 0x48, 0x0f, 0xb1, 0x0f}), 8u);   // lock cmpxchg [rdi], rcx
  EXPECT_EQ(Size({0xf0, 0x48, 0x0f, 0xc7, 0x0f}), 16u);  // lock cmpxchg16b [rdi]
  EXPECT_EQ(Size({0x87, 0x07}), 4u);                     // xchg [rdi], eax
}

TEST(MemoryOperand, Vectors) {
  EXPECT_EQ(Size({0xf3, 0x0f, 0x10, 0x07}), 4u);   // movss xmm0, [rdi]
  EXPECT_EQ(Size({0xf2, 0x0f, 0x10, 0x07}), 8u);   // movsd
  EXPECT_EQ(Size({0x0f, 0x10, 0x07}), 16u);        // movups
  EXPECT_EQ(Size({0xf3, 0x0f, 0x6f, 0x07}), 16u);  // movdqu
  EXPECT_EQ(Size({0xf3, 0x0f, 0x7e, 0x07}), 8u);   // movq xmm0, [rdi]
  EXPECT_EQ(Size({0xc5, 0xfa, 0x6f, 0x07}), 16u);  // vmovdqu xmm0, [rdi]
  EXPECT_EQ(Size({0xc5, 0xfe, 0x6f, 0x07}), 0u);   // vmovdqu ymm0, [rdi]: too wide to watch
}

TEST(MemoryOperand, Unknown) { EXPECT_EQ(Size({0xc4, 0xe2, 0x79, 0x18, 0x07}), 0u); }

TEST(OperandTest, RepeatedMoves) {
  const auto is = [](std::vector<std::uint8_t> code) {
    code.resize(16);
    return IsRepeatedMove(code.data());
  };
  EXPECT_TRUE(is({0xf3, 0xaa})) << "rep stosb";
  EXPECT_TRUE(is({0xf3, 0x48, 0xab})) << "rep stosq";
  EXPECT_TRUE(is({0xf3, 0xa4})) << "rep movsb";
  EXPECT_TRUE(is({0x66, 0xf3, 0xa5})) << "rep movsw";
  EXPECT_FALSE(is({0xaa})) << "stosb";
  EXPECT_FALSE(is({0xf3, 0xa6})) << "repe cmpsb";
  EXPECT_FALSE(is({0xf3, 0x0f, 0x6f, 0x00})) << "movdqu";
}

}  // namespace
}  // namespace allranks::shim
