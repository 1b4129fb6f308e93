// atom, red and multimem of every operation and type against host arithmetic, on edge values and
// random ones (atomic_model.h); small floating-point formats against the compiler's own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "atomic_model.h"
#include "kernel_runner.h"
#include "node/alu/atomic_ops.h"
#include "node/code/small_floats.h"
#include "node/decode/decode.h"
#include "ptx/parser.h"

namespace allranks::node {
namespace {

using namespace atomic_model;

constexpr std::size_t kValues = 512;  // one per thread

std::vector<std::string> Unsupported(const std::string& body) {
  auto module = ptx::Parse(KernelRunner::Text(body));
  EXPECT_TRUE(module) << module.error().message << "\n" << body;
  if (!module) return {"parse"};
  auto code = Decode(*module, *module->FindFunction("k"), nullptr);
  EXPECT_TRUE(code) << code.error().message;
  return code ? (*code)->unsupported : std::vector<std::string>{"decode"};
}

// Half of the values are edges, the others any bits.
std::vector<u64> Values(unsigned seed, int bits) {
  std::mt19937_64 random(seed);
  const u64 edges[] = {0,
                       1,
                       2,
                       0x7f,
                       0x80,
                       0xff,
                       0x7c00,
                       0x7bff,
                       0xfc00,
                       0x8000,
                       0x7fff,
                       0x3ff,
                       0x400,
                       0x8001,
                       0x7f80,
                       0xff80,
                       0xffff,
                       0x3c00,
                       0x80000000,
                       0x7fffffff,
                       0x7f800000,
                       1u << 23,
                       0x7fffff,
                       0xff800000,
                       0xffffffff,
                       0x3f800000,
                       0x8000000000000000,
                       0x7fffffffffffffff,
                       0x7ff0000000000000,
                       ~u64{0},
                       0x3ff0000000000000,
                       0xfff0000000000000};
  std::vector<u64> values(kValues);
  for (std::size_t i = 0; i < kValues; ++i) {
    u64 value = random();
    if (i % 2 == 0) value = edges[random() % std::size(edges)];
    if (bits == 32 && i % 4 == 2) {  // pairs of edges of 16 bits
      value = edges[random() % 18] | edges[random() % 18] << 16;
    }
    values[i] = bits == 64 ? value : value & ((u64{1} << bits) - 1);
  }
  return values;
}

struct Form {
  std::string op, type;
  int vector = 1;
  std::string words = "";  // order, scope
  bool shared = false;
  bool reduce = false;
  bool generic = false;
  std::string prefix = "";  // before the operation, for multimem
};

// Each thread applies the operation to `vector` elements of its own: old values, operands,
// comparands and results are four arrays in the buffer.
void Check(KernelRunner& runner, const Form& form, unsigned seed) {
  const int bits = BitsOf(form.type), bytes = bits / 8, size = bytes * form.vector;
  const char* name = bits == 16 ? "%h" : bits == 32 ? "%r" : "%rd";
  const auto registers = [&](int first) {
    std::string list;
    for (int i = 0; i < form.vector; ++i)
      list += fmt::format("{}{}{}", i == 0 ? "" : ", ", name, first + i);
    return form.vector == 1 ? list : "{" + list + "}";
  };
  const std::string vector = form.vector == 1 ? "" : fmt::format(".v{}", form.vector);
  const bool half = form.type.find("16") != std::string::npos && form.type != "b16";
  const std::string noftz = half && form.prefix.empty() ? ".noftz" : "";
  const std::size_t array = kValues * 16;  // bytes
  const auto move = [&](const char* what, int first, std::size_t at, bool load) {
    std::string text;
    for (int i = 0; i < form.vector; ++i) {
      const std::string address =
          fmt::format("[%rd1+{}]", at + static_cast<std::size_t>(i * bytes));
      const std::string reg = fmt::format("{}{}", name, first + i);
      text += load ? fmt::format("{}.b{} {}, {};\n", what, bits, reg, address)
                   : fmt::format("{}.b{} {}, {};\n", what, bits, address, reg);
    }
    return text;
  };
  std::string body = fmt::format(
      "mul.wide.u32 %rd1, %r0, {0}; cvt.u32.u64 %r2, %rd1; add.s64 %rd1, %rd1, %rd0;\n", size);
  body += move("ld.global", 10, array, true) + move("ld.global", 20, 2 * array, true);
  std::string target = "[%rd1]", space = form.generic ? "" : ".global";
  if (form.shared) {
    space = ".shared";
    target = "[%r2]";
    body = ".shared .align 16 .b8 tile[8192];\n" + body +
           fmt::format(
               "mov.b32 %r3, tile; add.s32 %r2, %r2, %r3;\n"
               "ld.global.b{0} {1}40, [%rd1]; st.shared.b{0} [%r2], {1}40;\n",
               bits, name);
  }
  const std::string opcode = !form.prefix.empty() ? form.prefix : form.reduce ? "red" : "atom";
  body += fmt::format("{}{}{}.{}{}{}.{} ", opcode, form.words, space, form.op, noftz, vector,
                      form.type);
  const std::string operands =
      registers(10) + (form.op == "cas" ? fmt::format(", {}", registers(20)) : "");
  body += form.reduce ? fmt::format("{}, {};\n", target, operands)
                      : fmt::format("{}, {}, {};\n", registers(30), target, operands);
  if (!form.reduce) body += move("st.global", 30, 3 * array, false);
  if (form.shared)
    body += fmt::format("ld.shared.b{0} {1}40, [%r2]; st.global.b{0} [%rd1], {1}40;\n", bits, name);
  SCOPED_TRACE(body);
  ASSERT_TRUE(Unsupported(body).empty());

  const std::size_t elements = kValues / static_cast<std::size_t>(form.vector);
  const auto a = Values(seed, bits), b = Values(seed + 1, bits), c = Values(seed + 2, bits);
  std::vector<std::byte> buffer(4 * array);
  const auto bytes_of = static_cast<std::size_t>(bytes);
  for (std::size_t i = 0; i < kValues; ++i) {
    u64 operand = b[i];
    if (form.op == "cas" && i % 3 == 0) operand = a[i];
    std::memcpy(buffer.data() + i * bytes_of, &a[i], bytes_of);
    std::memcpy(buffer.data() + array + i * bytes_of, &operand, bytes_of);
    std::memcpy(buffer.data() + 2 * array + i * bytes_of, &c[i], bytes_of);
  }
  const auto out = runner.Run(KernelRunner::Text(body), buffer, static_cast<u32>(elements));
  ASSERT_EQ(runner.status, Status::kSuccess) << runner.message;
  for (std::size_t i = 0; i < kValues; ++i) {
    u64 result = 0, old = 0, operand = 0;
    std::memcpy(&result, out.data() + i * bytes_of, bytes_of);
    std::memcpy(&old, out.data() + 3 * array + i * bytes_of, bytes_of);
    std::memcpy(&operand, buffer.data() + array + i * bytes_of, bytes_of);
    ASSERT_EQ(result, Expected(form.op, form.type, a[i], operand, c[i], !form.shared))
        << fmt::format("{} {:#x} {:#x} {:#x}", i, a[i], operand, c[i]);
    if (!form.reduce) {
      ASSERT_EQ(old, a[i]) << i;
    }
  }
}

const std::vector<std::pair<const char*, std::vector<const char*>>> kScalars = {
    {"add", {"u32", "s32", "u64", "f32", "f64", "f16", "f16x2", "bf16", "bf16x2"}},
    {"min", {"u32", "s32", "u64", "s64"}},
    {"max", {"u32", "s32", "u64", "s64"}},
    {"inc", {"u32"}},
    {"dec", {"u32"}},
    {"and", {"b32", "b64"}},
    {"or", {"b32", "b64"}},
    {"xor", {"b32", "b64"}},
    {"exch", {"b32", "b64"}},
    {"cas", {"b16", "b32", "b64"}}};

TEST(AtomicTest, ScalarsAgreeWithTheHost) {
  KernelRunner runner;
  unsigned seed = 1;
  for (const auto& [op, types] : kScalars) {
    for (const char* type : types) {
      for (const bool shared : {false, true}) {
        Check(runner, {.op = op, .type = type, .shared = shared}, seed += 3);
        if (std::string(op) == "exch" || std::string(op) == "cas") continue;
        Check(runner, {.op = op, .type = type, .shared = shared, .reduce = true}, seed += 3);
      }
      Check(runner, {.op = op, .type = type, .generic = true}, seed += 3);
    }
  }
}

TEST(AtomicTest, VectorsAgreeWithTheHost) {
  KernelRunner runner;
  unsigned seed = 1000;
  const auto both = [&](const char* op, const char* type, int vector) {
    Check(runner, {.op = op, .type = type, .vector = vector}, seed += 3);
    Check(runner, {.op = op, .type = type, .vector = vector, .reduce = true}, seed += 3);
  };
  for (const int vector : {2, 4}) both("add", "f32", vector);
  for (const char* op : {"add", "min", "max"}) {
    for (const int vector : {2, 4, 8}) {
      both(op, "f16", vector);
      both(op, "bf16", vector);
      if (vector == 8) continue;
      both(op, "f16x2", vector);
      both(op, "bf16x2", vector);
    }
  }
}

TEST(AtomicTest, EveryOrderAndScope) {
  KernelRunner runner;
  unsigned seed = 2000;
  for (const char* order : {".relaxed", ".acquire", ".release", ".acq_rel"}) {
    for (const char* scope : {"", ".cta", ".cluster", ".gpu", ".sys"}) {
      const std::string words = std::string(order) + scope;
      Check(runner, {.op = "add", .type = "u32", .words = words}, seed += 3);
      Check(runner, {.op = "max", .type = "s64", .words = words, .shared = true}, seed += 3);
      if (words.find("acq") == std::string::npos)
        Check(runner, {.op = "or", .type = "b32", .words = words, .reduce = true}, seed += 3);
    }
  }
}

TEST(AtomicTest, MultimemOnOneReplicaActsOnIt) {
  KernelRunner runner;
  unsigned seed = 3000;
  for (const auto& [op, types] : kScalars) {
    if (std::string(op).size() == 4 || std::string(op) == "cas" || std::string(op) == "inc" ||
        std::string(op) == "dec") {
      continue;
    }
    for (const char* type : types) {
      for (const char* words : {"", ".relaxed.gpu", ".release.sys", ".relaxed.cta"}) {
        Check(runner,
              {.op = op, .type = type, .words = words, .reduce = true, .prefix = "multimem.red"},
              seed += 3);
      }
    }
  }
  const std::string body =
      "multimem.ld_reduce.acquire.sys.global.add.u32 %r2, [%rd0];\n"
      "multimem.ld_reduce.weak.global.add.v4.f32 {%r4, %r5, %r6, %r7}, [%rd0];\n"
      "multimem.ld_reduce.relaxed.gpu.global.max.acc::f32.v4.f16x2 {%r8, %r9, %r10, %r11}, "
      "[%rd0];\n"
      "multimem.ld_reduce.global.add.acc::f16.v4.e4m3x4 {%r12, %r13, %r14, %r15}, [%rd0];\n"
      "multimem.ld_reduce.global.add.v8.e5m2 {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [%rd0];\n"
      "multimem.ld_reduce.global.min.s64 %rd2, [%rd0]; multimem.ld_reduce.add.f64 %rd3, [%rd0];\n"
      "multimem.st.release.sys.global.u32 [%rd0+16], %r2;\n"
      "multimem.st.global.v4.f32 [%rd0+32], {%r4, %r5, %r6, %r7};\n"
      "multimem.st.relaxed.cta.global.v4.f16x2 [%rd0+48], {%r8, %r9, %r10, %r11};\n"
      "multimem.st.weak.global.v4.e4m3x4 [%rd0+64], {%r12, %r13, %r14, %r15};\n"
      "multimem.st.global.v8.e5m2 [%rd0+80], {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8};\n"
      "multimem.st.global.b64 [%rd0+88], %rd2; multimem.st.f64 [%rd0+96], %rd3;";
  ASSERT_TRUE(Unsupported(body).empty()) << Unsupported(body)[0];
  std::vector<u32> buffer(64);
  for (u32 i = 0; i < 4; ++i) buffer[i] = 0x3c003800 + i;
  const auto out = runner.RunOn(KernelRunner::Text(body), buffer, 1);
  ASSERT_EQ(runner.status, Status::kSuccess) << runner.message;
  EXPECT_EQ(out[4], buffer[0]);
  for (u32 i = 0; i < 4; ++i) {
    EXPECT_EQ(out[8 + i], buffer[i]);
    EXPECT_EQ(out[12 + i], buffer[i]);
    EXPECT_EQ(out[16 + i], buffer[i]);
    if (i < 2) {
      EXPECT_EQ(out[20 + i], buffer[i]);
    }
    if (i < 2) {
      EXPECT_EQ(out[22 + i], buffer[i]);
    }
    if (i < 2) {
      EXPECT_EQ(out[24 + i], buffer[i]);
    }
  }
}

TEST(AtomicTest, ReplicasAreFoldedByTheirTypes) {
  alignas(64) std::byte registers[4 * kSlotBytes] = {};
  MemoryOp op;
  op.multimem = true;
  op.atomic = AtomicOp::kAdd;
  op.number = Number::kF16;
  op.bytes = 4;
  op.count = 2;
  op.data[0] = 0;
  op.data[1] = 2;
  std::byte sum[32];
  const u32 replicas[3][2] = {{0x3c004000, 0x7bff0001}, {0x3c004000, 0x7bff0001}, {0xbc000000, 1}};
  for (int r = 0; r < 3; ++r) {
    for (int e = 0; e < 2; ++e) {
      std::memcpy(registers + e * 2 * static_cast<int>(kSlotBytes) + 5 * 4, &replicas[r][e], 4);
    }
    FoldLane(op, registers, 5, r == 0, sum);
  }
  u32 result[2];
  std::memcpy(result, sum, 8);
  EXPECT_EQ(result[0], 0x3c004400u);  // 1+1-1 and 2+2+0
  EXPECT_EQ(result[1], 0x7c000003u);  // 65504+65504 is infinity
}

TEST(AtomicTest, WideExchangeAndCompare) {
  KernelRunner runner;
  const std::string body =
      "mul.wide.u32 %rd1, %r0, 16; add.s64 %rd1, %rd1, %rd0; cvt.u64.u32 %rd2, %r0;\n"
      "mov.b64 %rd3, 100; mov.b128 %q1, {%rd2, %rd3}; mov.b64 %rd4, 0;\n"
      "atom.global.exch.b128 %q2, [%rd1], %q1; st.global.b128 [%rd1+1024], %q2;\n"
      "mov.b64 %rd5, 7; mov.b128 %q3, {%rd5, %rd3}; mov.b128 %q4, {%rd3, %rd2};\n"
      "atom.acq_rel.sys.cas.b128 %q5, [%rd1], %q3, %q4; st.global.b128 [%rd1+2048], %q5;";
  if (!Unsupported(body).empty()) {
    ASSERT_TRUE(Unsupported(body)[0].starts_with("mov")) << Unsupported(body)[0];
    GTEST_SKIP() << Unsupported(body)[0];
  }
  std::vector<u64> buffer(512);
  for (u64 i = 0; i < 80; ++i) buffer[i] = 1000 + i;
  const auto out = runner.RunOn(KernelRunner::Text(body), buffer, 40);
  ASSERT_EQ(runner.status, Status::kSuccess) << runner.message;
  for (u64 t = 0; t < 40; ++t) {
    EXPECT_EQ(out[128 + 2 * t], 1000 + 2 * t);
    EXPECT_EQ(out[128 + 2 * t + 1], 1001 + 2 * t);
    EXPECT_EQ(out[256 + 2 * t], t);
    EXPECT_EQ(out[256 + 2 * t + 1], 100u);
    EXPECT_EQ(out[2 * t], t == 7 ? 100u : t);
    EXPECT_EQ(out[2 * t + 1], t == 7 ? 7u : 100u);
  }
}

// All threads on one address: each sees a value of its own, and nothing is lost.
TEST(AtomicTest, OneAddressForAll) {
  KernelRunner runner;
  const std::string body =
      "atom.global.add.u32 %r2, [%rd0], 1; mul.wide.u32 %rd1, %r2, 4; add.s64 %rd1, %rd1, %rd0;\n"
      "red.global.add.u32 [%rd1+64], 1; red.global.max.u64 [%rd0+8], %rd0;\n"
      "mov.b16 %h1, 0x3c00; red.global.add.noftz.f16 [%rd0+16], %h1;\n"
      "atom.global.inc.u32 %r3, [%rd0+20], 6;";
  std::vector<u32> buffer(16 + 1024);
  const auto out = runner.RunOn(KernelRunner::Text(body), buffer, 256, 4);
  EXPECT_EQ(out[0], 1024u);
  for (std::size_t i = 0; i < 1024; ++i) EXPECT_EQ(out[16 + i], 1u);
  EXPECT_EQ(out[4], 0x6400u);  // 1024 in f16
  EXPECT_EQ(out[5], 1024u % 7);
}

TEST(AtomicTest, FormsThatDoNotExistAreRefused) {
  for (const char* hostile :
       {"atom.global.add.b32 %r2, [%rd0], %r3;",
        "atom.global.add.s64 %rd1, [%rd0], %rd2;",
        "atom.global.max.f32 %r2, [%rd0], %r3;",
        "atom.global.min.noftz.f16 %h1, [%rd0], %h2;",
        "atom.global.add.f16 %h1, [%rd0], %h2;",
        "atom.global.inc.s32 %r2, [%rd0], %r3;",
        "atom.global.exch.f32 %r2, [%rd0], %r3;",
        "atom.global.exch.b16 %h1, [%rd0], %h2;",
        "red.global.exch.b32 [%rd0], %r2;",
        "red.global.cas.b32 [%rd0], %r2, %r3;",
        "atom.local.add.u32 %r2, [%rd0], %r3;",
        "atom.sc.gpu.global.add.u32 %r2, [%rd0], %r3;",
        "atom.global.add.u32 %r2, [%rd0];",
        "atom.global.cas.b32 %r2, [%rd0], %r3;",
        "atom.global.add.u32 %r2, [%rd0], %rd1;",
        "atom.global.add.u32 %rd2, [%rd0], %r1;",
        "atom.global.add.v2.u32 {%r2, %r3}, [%rd0], {%r4, %r5};",
        "atom.global.add.v2.f32 {%r2, %r3}, [%rd0], {%r4, %r5, %r6};",
        "atom.global.add.v2.f32 {%r2}, [%rd0], {%r4, %r5};",
        "atom.global.add.v8.f32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%rd0], "
        "{%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9};",
        "atom.global.add.v2.f32 %r2, [%rd0], %r3;",
        "atom.global.exch.b128 %q1, [%rd0], 5;",
        "atom.global.exch.b128 %rd1, [%rd0], %q1;",
        "atom.global.add.u32 %p1, [%rd0], %r1;",
        "atom.add %r1, [%rd0], %r2;",
        "atom.weak.global.add.u32 %r1, [%rd0], %r2;",
        "atom.global.add.u32 %r1, [%rd0], %r2, %rd3;",
        "red.async.add.u32 [%rd0], %r1, [%r2];",
        "multimem.red.add.s16 [%rd0], %r1;",
        "multimem.red.max.f16x2 [%rd0], %r1;",
        "multimem.ld_reduce.add.u32 [%rd0], %r1;",
        "multimem.st.add.u32 [%rd0], %r1;",
        "multimem.red.acquire.sys.add.u32 [%rd0], %r1;",
        "multimem.red.cas.b32 [%rd0], %r1;",
        "multimem.ld_reduce.exch.b32 %r1, [%rd0];",
        "multimem.st.shared.u32 [%rd0], %r1;",
        "multimem.st.v2.u32 [%rd0], {%r1, %r2};",
        "multimem.red.add.v4.f64 [%rd0], "
        "{%rd1, %rd2, %rd3, %rd4};",
        "multimem.cp.u32 [%rd0], %r1;"}) {
    EXPECT_EQ(Unsupported(hostile).size(), 1u) << hostile;
  }
}

TEST(SmallFloatsTest, RoundingAgreesWithTheCompiler) {
  std::mt19937 random(5);
  for (u32 i = 0; i < 0x10000; ++i) {
    const float value = FromHalf(static_cast<u16>(i));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Half::Load(i)));
      EXPECT_TRUE(std::isnan(Bfloat::Load(0x7f81)));
      continue;
    }
    ASSERT_EQ(std::bit_cast<u32>(Half::Load(i)), std::bit_cast<u32>(value));
    ASSERT_EQ(Half::Store(value), i);
  }
  for (int i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<u32>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(Half::Store(value), std::bit_cast<u16>(static_cast<_Float16>(value))) << value;
    ASSERT_EQ(Bfloat::Store(value), ToBf16(value)) << value;
  }
  // OCP 8-bit formats: largest, smallest, ties to even.
  EXPECT_EQ(E4M3::Load(0x7e), 448.0f);
  EXPECT_EQ(E4M3::Load(0x01), 0x1p-9f);
  EXPECT_EQ(E4M3::Store(1e9f), 0x7eu);
  EXPECT_EQ(E4M3::Store(17.0f), E4M3::Store(16.0f));
  EXPECT_EQ(E4M3::Store(19.0f), E4M3::Store(20.0f));
  EXPECT_TRUE(std::isnan(E4M3::Load(0xff)));
  EXPECT_EQ(E5M2::Load(0x7b), 57344.0f);
  EXPECT_EQ(E5M2::Load(0x7c), INFINITY);
  EXPECT_EQ(E5M2::Store(-0x1p-16f), 0x81u);
  for (u32 i = 0; i < 256; ++i) {
    if (!std::isnan(E4M3::Load(i))) {
      EXPECT_EQ(E4M3::Store(E4M3::Load(i)), i);
    }
    if (!std::isnan(E5M2::Load(i))) {
      EXPECT_EQ(E5M2::Store(E5M2::Load(i)), i);
    }
  }
}

}  // namespace
}  // namespace allranks::node
