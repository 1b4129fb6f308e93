// Modules of much PTX: functions are read and decoded when they are called, with the same outcome
// as in a small module.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel_runner.h"

namespace allranks::node {
namespace {

// Two functions that only a table names, one that only another function names, and a variable of
// shared memory and one of global memory that only functions name.
constexpr const char* kFunctions = R"(
.global .u32 addend = 100;
.shared .u32 room[32];
.func (.param .b32 out) twice(.param .b32 in) {
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [in]; shl.b32 %r2, %r1, 1; st.param.b32 [out], %r2; ret;
}
.func (.param .b32 out) plus(.param .b32 in) {
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  mov.u32 %r6, %ntid.x;
  ld.param.u32 %r1, [in]; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2;
  mov.u32 %r4, room; add.u32 %r4, %r4, %r3; st.shared.u32 [%r4], %r1; ld.shared.u32 %r5, [%r4];
  mov.u64 %rd1, addend; ld.global.u32 %r3, [%rd1]; add.u32 %r5, %r5, %r3; add.u32 %r5, %r5, %r6;
  st.param.b32 [out], %r5; ret;
}
.func (.param .b32 out) both(.param .b32 in) {
  .reg .b32 %r<8>;
  ld.param.u32 %r1, [in];
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), plus, (a); ld.param.b32 %r2, [b]; }
  { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call.uni (b), twice, (a); ld.param.b32 %r3, [b]; }
  st.param.b32 [out], %r3; ret;
}
.global .u64 table[3] = {twice, plus, both};
)";

// Thread t of `buffer` calls entry t % 3 of the table, then entry (t + 1) % 3, with its number.
constexpr const char* kBody = R"(
rem.u32 %r2, %r0, 3; mov.u32 %r9, %r0; mov.u32 %r20, 0;
again:
mul.wide.u32 %rd1, %r2, 8; mov.u64 %rd2, table; add.u64 %rd2, %rd2, %rd1; ld.global.u64 %rd3, [%rd2];
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r9;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (b), %rd3, (a), proto; ld.param.b32 %r9, [b]; }
add.u32 %r2, %r2, 1; rem.u32 %r2, %r2, 3; add.u32 %r20, %r20, 1;
setp.lt.u32 %p1, %r20, 2; @%p1 bra again;
mul.wide.u32 %rd4, %r0, 4; add.u64 %rd4, %rd4, %rd0; st.global.u32 [%rd4], %r9;
)";

std::string Large(const std::string& text) {
  return text + std::string(std::size_t{9} << 20, '\n');
}

TEST(GrowingTest, CallsByPointerAreTheSame) {
  const std::string text = KernelRunner::Text(kBody, kFunctions);
  const std::vector<std::uint32_t> buffer(32, 0);
  KernelRunner small, large;
  const auto expected = small.RunOn(text, buffer, 32, 1);
  ASSERT_EQ(small.status, Status::kSuccess) << small.message;
  EXPECT_EQ(expected[0], (0 * 2) + 100 + 32u);
  EXPECT_EQ(expected[1], (1 + 100 + 32 + 100 + 32) * 2u);
  EXPECT_EQ(expected[2], (2 + 100 + 32) * 2 * 2u);
  EXPECT_EQ(large.RunOn(Large(text), buffer, 32, 1), expected);
  EXPECT_EQ(large.status, Status::kSuccess) << large.message;
  EXPECT_EQ(large.took, small.took) << "when a function is decoded is no matter of time";
  // The code has grown already, and constants of the new launch are complete from the start.
  EXPECT_EQ(large.RunOn(Large(text), buffer, 32, 4), expected);
}

TEST(GrowingTest, AWrongBodyFaultsWhenItIsCalled) {
  std::string functions = kFunctions;
  functions.replace(functions.find("shl.b32 %r2, %r1, 1"), 19, "bra nowhere_at_all ");
  KernelRunner runner;
  runner.RunOn(Large(KernelRunner::Text(kBody, functions)), std::vector<std::uint32_t>(32, 0), 32);
  EXPECT_EQ(runner.status, Status::kIllegalInstruction);
  EXPECT_NE(runner.message.find("branch to an unknown label"), std::string::npos) << runner.message;
}

TEST(GrowingTest, APointerToNothingFaults) {
  const std::string body = "mov.u64 %rd3, 64; proto: .callprototype _ (); call %rd3, (), proto;";
  KernelRunner runner;
  runner.RunOn(Large(KernelRunner::Text(body, kFunctions)), std::vector<std::uint32_t>(32, 0), 32);
  EXPECT_EQ(runner.status, Status::kIllegalInstruction);
  EXPECT_NE(runner.message.find("not a function of this module"), std::string::npos);
}

}  // namespace
}  // namespace allranks::node
