// Runs one matrix instruction on the machine: every lane loads its registers, executes it, and
// stores its results. Shared by the matrix tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "node/machine.h"
#include "test_machine.h"

namespace allranks::node {

using Words = std::vector<std::uint32_t>;

// Elements of a lane, one after the other from the low end of its first register. The test says
// where each lane's i-th element stands in the matrix, as the figures of the PTX ISA do.
inline Words Pack(const std::vector<std::vector<std::uint64_t>>& lanes, int bits) {
  const std::size_t words = lanes[0].size() * static_cast<std::size_t>(bits) / 32;
  Words out(words * 32);  // [register][lane]
  for (std::size_t l = 0; l < 32; ++l) {
    for (std::size_t i = 0; i < lanes[l].size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(bits);
      if (bits == 64) {
        out[i * 64 + l] = static_cast<std::uint32_t>(lanes[l][i]);
        out[i * 64 + 32 + l] = static_cast<std::uint32_t>(lanes[l][i] >> 32);
        continue;
      }
      const std::uint64_t masked = lanes[l][i] & ((std::uint64_t{1} << bits) - 1);
      out[at / 32 * 32 + l] |= static_cast<std::uint32_t>(masked << at % 32);
    }
  }
  return out;
}

class MatrixFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_ = MakeTestMachine();
    ASSERT_NE(machine_, nullptr);
    process_ = machine_->AddProcess(0, 0);
  }

  // A kernel of `threads` threads with pointers to `in` and `out` (%rd1, %rd2), the lane (%lane)
  // and shared memory `tile`. Returns what `out` holds then, or nothing after a fault.
  Words Run(const std::string& body, const Words& in, std::size_t out_words, unsigned threads = 32,
            std::uint32_t shared_bytes = 16384) {
    const std::string text = fmt::format(R"(.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p_in, .param .u64 p_out)
{{
  .reg .b32 %lane, %thread, %s<16>;
  .reg .b64 %rd<16>;
  .reg .pred %p<8>;
  .shared .align 1024 .b8 tile[{}];
  ld.param.u64 %rd1, [p_in];
  ld.param.u64 %rd2, [p_out];
  mov.u32 %lane, %laneid;
  mov.u32 %thread, %tid.x;
{}
  ret;
}}
)",
                                         shared_bytes, body);
    Status status = Status::kSuccess;
    auto module = machine_->LoadModule(process_, 0, std::as_bytes(std::span(text)), &status);
    EXPECT_TRUE(module) << module.error().message << "\n" << text;
    if (!module) return {};
    KernelInfo info;
    EXPECT_EQ(machine_->GetKernel(*module, "k", &info), Status::kSuccess);
    Address from = 0, to = 0;
    EXPECT_EQ(machine_->Allocate(process_, 0, in.size() * 4 + 256, &from), Status::kSuccess);
    EXPECT_EQ(machine_->Allocate(process_, 0, out_words * 4 + 256, &to), Status::kSuccess);
    const StreamId stream = machine_->DefaultStream(process_, 0);
    auto write = std::make_shared<CopyRequest>();
    write->dst = from;
    write->size = in.size() * 4;
    write->bytes.resize(in.size() * 4);
    std::memcpy(write->bytes.data(), in.data(), in.size() * 4);
    OpId op = 0;
    EXPECT_EQ(machine_->Copy(process_, stream, write, machine_->now(), &op), Status::kSuccess);
    Wait(op);
    LaunchRequest request;
    request.kernel = info.id;
    request.grid = {1};
    request.block = {threads};
    request.params.resize(16);
    std::memcpy(request.params.data(), &from, 8);
    std::memcpy(request.params.data() + 8, &to, 8);
    EXPECT_EQ(machine_->Launch(process_, stream, request, machine_->now(), &op), Status::kSuccess);
    if (!Wait(op)) return {};
    auto read = std::make_shared<CopyRequest>();
    read->src = to;
    read->size = out_words * 4;
    if (machine_->Copy(process_, stream, read, machine_->now(), &op) != Status::kSuccess) return {};
    Wait(op);
    Words out(out_words);
    if (read->bytes.size() >= out_words * 4) {
      std::memcpy(out.data(), read->bytes.data(), out_words * 4);
    }
    return out;
  }

  bool Wait(OpId op) { return WaitFor(*machine_, op); }

  // Text that loads registers %<name>0 ... from `in`, 32 words each, starting at word `at`; `wide`:
  // 64-bit registers of two groups of 32 words.
  static std::string Load(const std::string& name, int count, int at, bool wide = false) {
    std::string text = fmt::format("  .reg .b{} %{}<{}>;\n", wide ? 64 : 32, name, count + 1);
    text += "  mul.wide.u32 %rd3, %lane, 4;\n  add.s64 %rd3, %rd1, %rd3;\n";
    for (int i = 0; i < count; ++i) {
      if (!wide) {
        text += fmt::format("  ld.global.b32 %{}{}, [%rd3+{}];\n", name, i, (at + i * 32) * 4);
        continue;
      }
      text += fmt::format("  ld.global.b32 %s0, [%rd3+{}];\n", (at + i * 64) * 4);
      text += fmt::format("  ld.global.b32 %s1, [%rd3+{}];\n", (at + i * 64 + 32) * 4);
      text += fmt::format("  mov.b64 %{}{}, {{%s0, %s1}};\n", name, i);
    }
    return text;
  }
  static std::string Store(const std::string& name, int count, bool wide = false) {
    std::string text = "  mul.wide.u32 %rd3, %lane, 4;\n  add.s64 %rd3, %rd2, %rd3;\n";
    for (int i = 0; i < count; ++i) {
      if (!wide) {
        text += fmt::format("  st.global.b32 [%rd3+{}], %{}{};\n", i * 128, name, i);
        continue;
      }
      text += fmt::format("  mov.b64 {{%s0, %s1}}, %{}{};\n", name, i);
      text += fmt::format("  st.global.b32 [%rd3+{}], %s0;\n", i * 256);
      text += fmt::format("  st.global.b32 [%rd3+{}], %s1;\n", i * 256 + 128);
    }
    return text;
  }
  static std::string Vector(const std::string& name, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, i);
    return text + "}";
  }

  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  std::mt19937 random_{20240607};
  int Number(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }
};

// --- encodings of small integers, by the definition of each format ---

// Sign, exponent and mantissa of an integer that the format represents exactly.
inline std::uint64_t EncodeFloat(int value, int exponent_bits, int mantissa_bits) {
  if (value == 0) return 0;
  const int magnitude = value < 0 ? -value : value;
  int exponent = 0;
  while (magnitude >> (exponent + 1) != 0) ++exponent;
  const std::uint64_t bias = (std::uint64_t{1} << (exponent_bits - 1)) - 1;
  const std::uint64_t fraction =
      (static_cast<std::uint64_t>(magnitude) << mantissa_bits >> exponent) &
      ((std::uint64_t{1} << mantissa_bits) - 1);
  const std::uint64_t sign = value < 0 ? 1 : 0;
  return sign << (exponent_bits + mantissa_bits) |
         (bias + static_cast<std::uint64_t>(exponent)) << mantissa_bits | fraction;
}

struct Format {
  std::string name;
  int bits;
  int low, high;  // integers that fit
};

inline std::uint64_t Encode(const std::string& type, int value) {
  if (type == "f16") return EncodeFloat(value, 5, 10);
  if (type == "bf16") return EncodeFloat(value, 8, 7);
  if (type == "tf32" || type == "f32") return EncodeFloat(value, 8, 23);
  if (type == "f64") return EncodeFloat(value, 11, 52);
  if (type == "e4m3") return EncodeFloat(value, 4, 3);
  if (type == "e5m2") return EncodeFloat(value, 5, 2);
  if (type == "e3m2") return EncodeFloat(value, 3, 2);
  if (type == "e2m3") return EncodeFloat(value, 2, 3);
  if (type == "e2m1") return EncodeFloat(value, 2, 1) << 2;             // in the middle of its byte
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));  // integers
}

inline Format FormatOf(const std::string& type) {
  if (type == "f16" || type == "bf16") return {type, 16, -8, 8};
  if (type == "tf32" || type == "f32") return {type, 32, -8, 8};
  if (type == "f64") return {type, 64, -8, 8};
  if (type == "e4m3") return {type, 8, -8, 8};
  if (type == "e5m2") return {type, 8, -4, 4};
  if (type == "e3m2") return {type, 8, -4, 4};
  if (type == "e2m3") return {type, 8, -7, 7};
  if (type == "e2m1") return {type, 8, -4, 4};
  if (type == "s8") return {type, 8, -128, 127};
  if (type == "u8") return {type, 8, 0, 255};
  if (type == "s4") return {type, 4, -8, 7};
  if (type == "u4") return {type, 4, 0, 15};
  if (type == "b1") return {type, 1, 0, 1};
  return {type, 32, -1000, 1000};  // s32
}

}  // namespace allranks::node
