// Loads and stores: every width, vector, space, order and hint moves the bytes it should, and
// hostile operands are refused. Forms are data; the expectation is the bytes themselves.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "kernel_runner.h"
#include "node/decode/decode.h"
#include "ptx/parser.h"

namespace allranks::node {
namespace {

std::vector<std::byte> Pattern(std::size_t size, unsigned seed = 1) {
  std::vector<std::byte> bytes(size);
  std::uint32_t x = seed * 2654435761u + 12345;
  for (std::byte& b : bytes) {
    x = x * 1664525 + 1013904223;
    b = static_cast<std::byte>(x >> 24);
  }
  return bytes;
}

std::vector<std::string> Unsupported(const std::string& body, const std::string& before = "") {
  auto module = ptx::Parse(KernelRunner::Text(body, before));
  EXPECT_TRUE(module) << module.error().message << "\n" << body;
  if (!module) return {"parse"};
  auto code = Decode(*module, *module->FindFunction("k"), nullptr);
  EXPECT_TRUE(code) << code.error().message;
  return code ? (*code)->unsupported : std::vector<std::string>{"decode"};
}

// Registers for `count` elements of `bytes` each, as an operand.
std::string Registers(int bytes, int count) {
  const char* name = bytes <= 2 ? "%h" : bytes == 4 ? "%r" : bytes == 8 ? "%rd" : "%q";
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}{}{}", i == 0 ? "" : ", ", name, 20 + i);
  return count == 1 ? list : "{" + list + "}";
}

struct Copy {
  const char* load;   // between "ld" and the vector
  const char* store;  // between "st" and the vector
  const char* type;
  int bytes;
  int count;
};

// Each thread moves its element from the first half of the buffer to the second.
void ExpectCopies(KernelRunner& runner, const Copy& copy) {
  const int size = copy.bytes * copy.count;
  const std::string vector = copy.count == 1 ? "" : fmt::format(".v{}", copy.count);
  const std::string registers = Registers(copy.bytes, copy.count);
  const std::string body = fmt::format(
      "mul.wide.u32 %rd1, %r0, {}; add.s64 %rd1, %rd0, %rd1;\n"
      "ld{}{}.{} {}, [%rd1];\n st{}{}.{} [%rd1+2048], {};",
      size, copy.load, vector, copy.type, registers, copy.store, vector, copy.type, registers);
  SCOPED_TRACE(body);
  ASSERT_TRUE(Unsupported(body).empty());
  auto buffer = Pattern(4096);
  auto expected = buffer;
  std::memcpy(expected.data() + 2048, expected.data(), static_cast<std::size_t>(size) * 40);
  EXPECT_EQ(runner.Run(KernelRunner::Text(body), buffer, 40), expected);
  EXPECT_EQ(runner.status, Status::kSuccess) << runner.message;
}

TEST(MemoryTest, EveryWidthAndVector) {
  KernelRunner runner;
  for (const char* space : {"", ".global"}) {
    for (const auto& [type, bytes] : std::vector<std::pair<const char*, int>>{{"b8", 1},
                                                                              {"u8", 1},
                                                                              {"s8", 1},
                                                                              {"b16", 2},
                                                                              {"u16", 2},
                                                                              {"s16", 2},
                                                                              {"b32", 4},
                                                                              {"u32", 4},
                                                                              {"s32", 4},
                                                                              {"f32", 4},
                                                                              {"b64", 8},
                                                                              {"u64", 8},
                                                                              {"s64", 8},
                                                                              {"f64", 8},
                                                                              {"b128", 16}}) {
      for (const int count : {1, 2, 4, 8}) {
        if (bytes * count > 32 || (bytes == 16 && count > 1) || (bytes < 4 && count == 8)) continue;
        ExpectCopies(runner, {space, space, type, bytes, count});
      }
    }
  }
}

TEST(MemoryTest, EveryOrderScopeAndHint) {
  KernelRunner runner;
  std::vector<std::pair<std::string, std::string>> forms = {
      {".weak", ".weak"},
      {".volatile", ".volatile"},
      {".volatile.global", ".volatile.global"},
      {".mmio.relaxed.sys.global", ".mmio.relaxed.sys.global"},
      {".mmio.relaxed.sys", ".mmio.relaxed.sys"},
      {".global.ca", ".global.wb"},
      {".global.cg", ".global.cg"},
      {".global.cs", ".global.cs"},
      {".weak.global.lu", ".weak.global.wt"},
      {".cv", ".wt"},
      {".global.nc", ".global"},
      {".global.ca.nc", ".global"},
      {".global.nc.L1::no_allocate.L2::256B", ".global.L1::no_allocate"},
      {".global.L1::evict_first", ".global.L1::evict_last"},
      {".weak.global.L1::evict_unchanged.L2::128B", ".global.L2::evict_first"},
      {".global.L2::64B", ".global"}};
  for (const std::string scope : {"cta", "cluster", "gpu", "sys"}) {
    for (const std::string space : {"", ".global"}) {
      forms.push_back({".relaxed." + scope + space, ".relaxed." + scope + space});
      forms.push_back({".acquire." + scope + space, ".release." + scope + space});
      forms.push_back({".relaxed." + scope + space + ".L1::no_allocate",
                       ".relaxed." + scope + space + ".L1::no_allocate"});
    }
  }
  for (const auto& [load, store] : forms) {
    ExpectCopies(runner, {load.c_str(), store.c_str(), "b32", 4, 1});
    if (load.find("mmio") == std::string::npos)
      ExpectCopies(runner, {load.c_str(), store.c_str(), "b32", 4, 4});
    ExpectCopies(runner, {load.c_str(), store.c_str(), "b64", 8, 1});
  }
}

TEST(MemoryTest, PoliciesAndOtherHintsChangeNothing) {
  KernelRunner runner;
  const std::string body =
      "createpolicy.fractional.L2::evict_last.b64 %rd5, 0.5;\n"
      "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %rd6;\n"
      "createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %rd6, [%rd0], 64, 128;\n"
      "createpolicy.cvt.L2.b64 %rd7, 0x10F0000000000000;\n"
      "prefetch.global.L1 [%rd0]; prefetch.local.L2 [%rd0]; prefetchu.L1 [%rd0];\n"
      "prefetch.global.L2::evict_last [%rd0]; prefetch.L2 [%rd0+128];\n"
      "applypriority.global.L2::evict_normal [%rd0], 128; discard.global.L2 [%rd0+256], 128;\n"
      "ld.global.L2::cache_hint.b32 %r2, [%rd0], %rd5;\n"
      "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32 {%r4, %r5, %r6, %r7}, [%rd0], %rd7;\n"
      "ldu.global.u32 %r3, [%rd0]; ldu.global.v4.u32 {%r8, _, %r10, %r11}, [%rd0];\n"
      "ld.global.b32 %r12, [%rd0].unified;\n"
      "st.global.L2::cache_hint.b32 [%rd0+4], %r2, %rd5; st.global.b32 [%rd0+8], %r3;\n"
      "st.global.b32 [%rd0+12], %r4; st.global.b32 [%rd0+16], %r8;\n"
      "st.global.b32 [%rd0+20], %r12;";
  ASSERT_TRUE(Unsupported(body).empty()) << Unsupported(body)[0];
  std::vector<std::uint32_t> buffer(128);
  buffer[0] = 77;
  const auto out = runner.RunOn(KernelRunner::Text(body), buffer, 1);
  for (int i = 1; i < 6; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], 77u) << i;
}

TEST(MemoryTest, NarrowLoadsAreExtendedAsTheirTypeSays) {
  KernelRunner runner;
  const std::string body =
      "ld.global.s8 %r2, [%rd0]; ld.global.u8 %r3, [%rd0]; ld.global.b8 %r4, [%rd0];\n"
      "ld.global.s16 %r5, [%rd0]; ld.global.u16 %r6, [%rd0];\n"
      "ld.global.s8 %rd2, [%rd0]; ld.global.s32 %rd3, [%rd0]; ld.global.u32 %rd4, [%rd0];\n"
      "ld.global.s8 %h2, [%rd0]; cvt.u32.u16 %r7, %h2;\n"
      "st.global.v4.b32 [%rd0+16], {%r2, %r3, %r4, %r5}; st.global.v2.b32 [%rd0+32], {%r6, %r7};\n"
      "st.global.b64 [%rd0+40], %rd2; st.global.v2.b64 [%rd0+48], {%rd3, %rd4};\n"
      "st.global.b8 [%rd0+64], %rd3; st.global.b16 [%rd0+66], %r2;";
  ASSERT_TRUE(Unsupported(body).empty());
  std::vector<std::uint32_t> buffer(32);
  buffer[0] = 0x8899aabb;
  const auto out = runner.RunOn(KernelRunner::Text(body), buffer, 1);
  EXPECT_EQ(out[4], 0xffffffbbu);
  EXPECT_EQ(out[5], 0xbbu);
  EXPECT_EQ(out[6], 0xbbu);
  EXPECT_EQ(out[7], 0xffffaabbu);
  EXPECT_EQ(out[8], 0xaabbu);
  EXPECT_EQ(out[9], 0xffbbu);
  EXPECT_EQ(out[10], 0xffffffbbu);
  EXPECT_EQ(out[11], 0xffffffffu);
  EXPECT_EQ(out[12], 0x8899aabbu);
  EXPECT_EQ(out[13], 0xffffffffu);
  EXPECT_EQ(out[14], 0x8899aabbu);
  EXPECT_EQ(out[15], 0u);
  EXPECT_EQ(out[16], 0xffbb00bbu);
}

TEST(MemoryTest, OtherSpacesHoldWhatWasStored) {
  KernelRunner runner;
  const std::string before =
      ".const .align 16 .b32 table[4] = {11, 22, 33, 44};\n"
      ".shared .align 16 .b8 tile[1024];\n";
  const std::string body =
      ".local .align 16 .b8 mine[64];\n"
      "mov.b32 %r2, tile; shl.b32 %r3, %r0, 4; add.s32 %r2, %r2, %r3;\n"
      "ld.const.v4.b32 {%r4, %r5, %r6, %r7}, [table]; add.s32 %r4, %r4, %r0;\n"
      "st.shared::cta.v4.b32 [%r2], {%r4, %r5, %r6, %r7};\n"
      "ld.shared::cluster.v2.b64 {%rd2, %rd3}, [%r2];\n"
      "st.local.v2.b64 [mine], {%rd2, %rd3}; mov.b32 %r8, mine;\n"
      "ld.volatile.local.b128 %q1, [%r8]; st.volatile.shared.b128 [%r2], %q1;\n"
      "ld.relaxed.cluster.shared::cta.b64 %rd4, [%r2+8]; ld.acquire.cta.shared.b64 %rd5, [%r2];\n"
      "mul.wide.u32 %rd6, %r0, 16; add.s64 %rd6, %rd6, %rd0;\n"
      "st.global.v2.b64 [%rd6], {%rd5, %rd4};";
  ASSERT_TRUE(Unsupported(body, before).empty()) << Unsupported(body, before)[0];
  const auto out =
      runner.RunOn(KernelRunner::Text(body, before), std::vector<std::uint32_t>(160), 40);
  ASSERT_EQ(runner.status, Status::kSuccess) << runner.message;
  for (std::uint32_t t = 0; t < 40; ++t) {
    EXPECT_EQ(out[t * 4], 11 + t);
    EXPECT_EQ(out[t * 4 + 1], 22u);
    EXPECT_EQ(out[t * 4 + 3], 44u);
  }
}

// Only the widest vectors may leave elements out (ptxas).
TEST(MemoryTest, SinksOfAStoreLeaveMemoryAlone) {
  KernelRunner runner;
  const std::string body =
      "mov.b32 %r20, 1; mov.b32 %r21, 2;\n"
      "st.global.v8.b32 [%rd0], {%r20, _, %r21, _, _, _, _, %r21};";
  std::vector<std::uint32_t> buffer(8, 9);
  EXPECT_EQ(runner.RunOn(KernelRunner::Text(body), buffer, 1),
            (std::vector<std::uint32_t>{1, 9, 2, 9, 9, 9, 9, 2}));
}

TEST(MemoryTest, FaultsAreNamed) {
  for (const auto& [body, status] : std::vector<std::pair<const char*, Status>>{
           {"ld.global.b64 %rd2, [%rd0+4];", Status::kMisalignedAddress},
           {"ld.global.v8.b32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%rd0+16];",
            Status::kMisalignedAddress},
           {"st.global.b128 [%rd0+8], %q1;", Status::kMisalignedAddress},
           {"ld.global.b32 %r2, [0];", Status::kIllegalAddress},
           {"mov.b64 %rd2, 0x7fffffffffffff00; st.b32 [%rd2], %r0;", Status::kIllegalAddress},
           {"ld.shared.b32 %r2, [0xffffffe0];", Status::kIllegalAddress},
           {"atom.shared.add.u32 %r2, [0x100000], %r0;", Status::kIllegalAddress},
           {"atom.global.cas.b128 %q1, [%rd0+8], %q2, %q3;", Status::kMisalignedAddress}}) {
    KernelRunner runner;
    SCOPED_TRACE(body);
    ASSERT_TRUE(Unsupported(body).empty());
    runner.Run(KernelRunner::Text(body), std::vector<std::byte>(64), 32);
    EXPECT_EQ(runner.status, status) << runner.message;
  }
}

TEST(MemoryTest, HostileOperandsAreRefused) {
  for (const char* hostile : {"ld.global.v4.b32 {%r2, %r3}, [%rd0];",
                              "ld.global.v2.b32 %r2, [%rd0];",
                              "ld.global.b32 {%r2, %r3}, [%rd0];",
                              "ld.global.v8.b64 {%rd1, %rd2, %rd3, %rd4, %rd5, "
                              "%rd6, %rd7, %rd8}, [%rd0];",
                              "ld.global.b128 %rd2, [%rd0];",
                              "st.global.b128 [%rd0], 5;",
                              "st.const.b32 [%rd0], %r1;",
                              "ld.release.gpu.b32 %r2, [%rd0];",
                              "st.acquire.gpu.b32 [%rd0], %r2;",
                              "ld.weak.relaxed.gpu.b32 %r2, [%rd0];",
                              "ld.mmio.acquire.sys.b32 %r2, [%rd0];",
                              "ld.global.b32 %r2, [%rd0], %rd1;",
                              "ld.global.L2::cache_hint.b32 %r2, [%rd0], %r1;",
                              "ld.global.pred %p1, [%rd0];",
                              "ld.global %r2, [%rd0];",
                              "st.async.b32 [%rd0], %r2;",
                              "st.bulk.weak.shared::cta [%r2], %rd1, 1;",
                              "st.bulk.weak.shared::cta [%r2], %rd1, %r3;",
                              "st.bulk.weak.shared::cta [%r2], %rd1;",
                              "st.bulk.weak.shared::cta [%r2], %rd1, 0, 0;",
                              "st.bulk.weak.shared::cta [%r2], %h1, 0;",
                              "st.bulk.weak.shared::cta [%r2], %p1, 0;",
                              "st.bulk.weak.shared::cta [%r2], 8.0, 0;",
                              "st.bulk.weak.shared::cta [%r2], 12, 0;",
                              "st.bulk.weak.shared::cta [%r2], 16777224, 0;",
                              "st.bulk.weak.shared::cta [%r2], -8, 0;",
                              "st.bulk.weak.shared::cta %r2, 8, 0;",
                              "st.bulk.weak.weak.shared::cta [%r2], 8, 0;",
                              "st.bulk.relaxed.shared::cta [%r2], 8, 0;",
                              "st.bulk.shared::cluster [%r2], 8, 0;",
                              "st.bulk.shared [%r2], 8, 0;",
                              "st.bulk.global [%rd0], 8, 0;",
                              "st.bulk.shared::cta.b8 [%r2], 8, 0;",
                              "st.weak.bulk.shared::cta [%r2], 8, 0;",
                              "red.bulk.shared::cta [%r2], 8, 0;",
                              "ld.global.noftz.b32 %r2, [%rd0];",
                              "ld.global.b32 %r2, %rd0;",
                              "st.global.b32 [%rd0];",
                              "st.global.b32 [%rd0], _;",
                              "prefetch.global.L1 %rd0;",
                              "discard.global.L2 [%rd0];",
                              "prefetch.somewhere.L1 [%rd0];",
                              "createpolicy.fractional.L2::evict_last.b64 %r2, 1.0;",
                              "createpolicy.cvt.L2.b64 %rd2, %r2;",
                              "createpolicy.b64 %rd2, %rd3;"}) {
    EXPECT_EQ(Unsupported(hostile).size(), 1u) << hostile;
  }
}

}  // namespace
}  // namespace allranks::node
