// The decoder on stored PTX: everything the slice's programs contain has semantics, registers come
// from the cubin, and a kernel pays only for the shared memory it names.
#include "node/decode/decode.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ptx/parser.h"

namespace allranks::node {
namespace {

ptx::Module ParseFile(const std::string& name) {
  std::ifstream in(std::string(ALLRANKS_SOURCE_DIR "/tests/node/") + name, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  auto module = ptx::Parse(text.str());
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

ptx::Module ParseText(const std::string& body, const std::string& before = "") {
  auto module = ptx::Parse(
      ".version 9.0\n.target sm_90\n.address_size 64\n" + before +
      "\n.visible .entry k(.param .u64 p, .param .u8 q, .param .align 8 .b8 s[24])\n{\n" + body +
      "\n}\n");
  EXPECT_TRUE(module) << module.error().message;
  return std::move(*module);
}

std::shared_ptr<const Code> DecodeText(const std::string& body, const std::string& before = "") {
  const ptx::Module module = ParseText(body, before);
  auto code = Decode(module, *module.FindFunction("k"), nullptr);
  EXPECT_TRUE(code) << code.error().message;
  return *code;
}

TEST(DecodeTest, EveryInstructionOfTheSliceHasSemantics) {
  const ptx::Module module = ParseFile("kernels/basics.ptx");
  int kernels = 0;
  for (const ptx::Function& function : module.functions) {
    if (!function.is_entry) continue;
    auto code = Decode(module, function, nullptr);
    ASSERT_TRUE(code) << code.error().message;
    EXPECT_TRUE((*code)->unsupported.empty())
        << function.name << ": " << (*code)->unsupported.front();
    ++kernels;
  }
  EXPECT_GE(kernels, 15);
}

TEST(DecodeTest, AnUnknownInstructionIsNamedAndDoesNotFailTheKernel) {
  const auto code = DecodeText(".reg .b32 %r<4>;\n mma.sync.unknown.f16 %r1, %r2; ret;");
  ASSERT_EQ(code->unsupported.size(), 1u);
  EXPECT_EQ(code->unsupported[0], "mma.sync.unknown.f16");
  EXPECT_EQ(code->ops[0].kind, OpKind::kUnsupported);
  const auto tensor = DecodeText(
      ".reg .b32 %r<4>;\n tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32; ret;");
  ASSERT_EQ(tensor->unsupported.size(), 1u);
  EXPECT_EQ(tensor->unsupported[0], "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32");
}

// The parser does not know which operands are results; nothing but a register may become one.
TEST(DecodeTest, HostileDestinationsAreRefused) {
  for (const char* hostile :
       {"ld.global.u32 5, [%rd1];", "ld.global.v2.b32 {}, [%rd1];",
        "ld.global.v2.u32 {%r1, %rd1}, [%rd1];", "ld.global.b128 %rd1, [%rd1];",
        "ld.global.u32 %p1, [%rd1];", "atom.global.add.u32 5, [%rd1], %r1;",
        "shfl.sync.idx.b32 5, %r1, %r2, %r3, -1;", "activemask.b32 7;",
        "redux.sync.add.s32 %rd1, %r1, -1;", "mov.u32 %p1, %tid.x;", "ld.global.u32 %r1, [%p1];",
        "mov.b64 %r1, %r2;"}) {
    const auto code = DecodeText(
        std::string(".reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>;\n") + hostile + " ret;");
    ASSERT_EQ(code->unsupported.size(), 1u) << hostile;
  }
  const auto sink = DecodeText("activemask.b32 _; ret;");
  EXPECT_TRUE(sink->unsupported.empty());
}

TEST(DecodeTest, ParametersAreLaidOutAsTheDriverPacksThem) {
  const auto code = DecodeText("ret;");
  EXPECT_EQ(code->param_offsets, (std::vector<std::uint32_t>{0, 8, 16}));
  EXPECT_EQ(code->param_sizes, (std::vector<std::uint32_t>{8, 1, 24}));
  EXPECT_EQ(code->param_bytes, 40u);
}

TEST(DecodeTest, SharedMemoryOfOtherKernelsIsNotCounted) {
  const auto code =
      DecodeText(".reg .b32 %r<4>;\n mov.u32 %r1, mine; st.shared.u32 [%r1], %r1; ret;",
                 ".shared .align 4 .b8 mine[100];\n.shared .align 4 .b8 other[5000];");
  EXPECT_GE(code->static_shared, 100u);
  EXPECT_LT(code->static_shared, 200u);
}

TEST(DecodeTest, ResourcesComeFromTheRealCompiler) {
  const ptx::Module module = ParseText("ret;");
  ptx::KernelResources resources;
  resources.registers = 77;
  resources.shared_bytes = 2048;
  auto code = Decode(module, *module.FindFunction("k"), &resources);
  ASSERT_TRUE(code);
  EXPECT_EQ((*code)->registers, 77u);
  EXPECT_EQ((*code)->static_shared, 2048u);
}

TEST(DecodeTest, AWaitLoopIsMarkedAtItsBackEdge) {
  const auto code = DecodeText(
      ".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
      "ld.param.u64 %rd1, [p];\n"
      "WAIT: ld.acquire.sys.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra WAIT; ret;");
  ASSERT_EQ(code->spins.size(), 1u);
  EXPECT_EQ(code->ops[code->spins[0].branch].kind, OpKind::kBranch);
  EXPECT_EQ(code->forms[code->spins[0].head], "ld.acquire.sys.u32");
}

}  // namespace
}  // namespace allranks::node
