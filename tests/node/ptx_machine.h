// A machine that runs PTX text: the fixture of tests that are about single instructions. A kernel
// is given as the body between the braces; it has plenty of registers, the address of its output
// in %out and that of its input in %in.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "node/machine.h"
#include "test_machine.h"

namespace allranks::node {

class PtxMachineTest : public ::testing::Test {
 protected:
  void Start(const MachineOptions& options, const std::string& profile = "h100x8") {
    machine_ = MakeTestMachine(options, profile);
    ASSERT_NE(machine_, nullptr);
    process_ = machine_->AddProcess(0, 0);
  }
  void SetUp() override { Start({}); }

  // `before`: directives between the parameters and the body (.reqnctapercluster ...).
  std::string Kernel(const std::string& body, const std::string& before = "") {
    return ".version 9.0\n.target sm_90a\n.address_size 64\n"
           ".extern .shared .align 1024 .b8 dynamic[];\n"
           ".visible .entry k(.param .u64 p_out, .param .u64 p_in, .param .align 64 .b8 "
           "map[128])\n" +
           before +
           "{\n.reg .pred %p<16>;\n.reg .b16 %h<16>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n"
           ".reg .f32 %f<32>;\n.reg .b64 %out, %in;\n.reg .b32 %t, %rank;\n"
           "ld.param.u64 %out, [p_out];\nld.param.u64 %in, [p_in];\n"
           "mov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\n" +
           body + "\nret;\n}\n";
  }

  struct Options {
    Dim3 grid{1, 1, 1}, block{32, 1, 1}, cluster{1, 1, 1};
    std::uint32_t dynamic_shared = 0;
    std::string before;
    std::vector<std::byte> map;
  };

  // Runs the kernel on `in`; the output has `count` elements. status_ and fault_ say what went
  // wrong; finished_ is false if it waits for ever.
  template <class T, class In = std::uint32_t>
  std::vector<T> Run(const std::string& body, std::size_t count, const std::vector<In>& in,
                     const Options& options) {
    Address out = 0;
    EXPECT_EQ(machine_->Allocate(process_, 0, count * sizeof(T), &out), Status::kSuccess);
    input_ = 0;
    EXPECT_EQ(
        machine_->Allocate(process_, 0, std::max<std::size_t>(16, in.size() * sizeof(In)), &input_),
        Status::kSuccess);
    std::vector<T> zero(count);
    Write(out, zero.data(), count * sizeof(T));
    if (!in.empty()) Write(input_, in.data(), in.size() * sizeof(In));
    return RunAt<T>(body, out, count, options);
  }
  template <class T>
  std::vector<T> Run(const std::string& body, std::size_t count) {
    return Run<T>(body, count, std::vector<std::uint32_t>{}, Options{});
  }

  template <class T>
  std::vector<T> RunAt(const std::string& body, Address out, std::size_t count,
                       const Options& options) {
    text_ = Kernel(body, options.before);
    finished_ = false;
    fault_.clear();
    Status status;
    auto module = machine_->LoadModule(process_, 0, std::as_bytes(std::span(text_)), &status);
    EXPECT_TRUE(module) << module.error().message;
    if (!module) return {};
    KernelInfo info;
    status_ = machine_->GetKernel(*module, "k", &info);
    if (status_ != Status::kSuccess) return {};
    if (options.dynamic_shared > 48 * 1024)
      machine_->SetMaxDynamicShared(info.id, options.dynamic_shared);
    LaunchRequest request;
    request.kernel = info.id;
    request.grid = options.grid;
    request.block = options.block;
    request.cluster = options.cluster;
    request.dynamic_shared = options.dynamic_shared;
    request.params.resize(info.param_bytes);
    std::memcpy(request.params.data() + info.param_offsets[0], &out, 8);
    std::memcpy(request.params.data() + info.param_offsets[1], &input_, 8);
    if (!options.map.empty())
      std::memcpy(request.params.data() + info.param_offsets[2], options.map.data(), 128);
    OpId op = 0;
    const StreamId stream = machine_->DefaultStream(process_, 0);
    status_ = machine_->Launch(process_, stream, request, machine_->now(), &op);
    if (status_ != Status::kSuccess) return {};
    finished_ = Wait(op);
    for (const Fault& fault : machine_->TakeFaults()) fault_ += fault.message;
    if (!finished_ || !fault_.empty()) return {};
    return Read<T>(out, count);
  }

  void Write(Address to, const void* from, std::uint64_t bytes) {
    auto copy = std::make_shared<CopyRequest>();
    copy->dst = to;
    copy->size = bytes;
    copy->bytes.resize(bytes);
    std::memcpy(copy->bytes.data(), from, bytes);
    OpId op = 0;
    ASSERT_EQ(
        machine_->Copy(process_, machine_->DefaultStream(process_, 0), copy, machine_->now(), &op),
        Status::kSuccess);
    ASSERT_TRUE(Wait(op));
  }

  template <class T>
  std::vector<T> Read(Address from, std::size_t count) {
    auto copy = std::make_shared<CopyRequest>();
    copy->src = from;
    copy->size = count * sizeof(T);
    OpId op = 0;
    EXPECT_EQ(
        machine_->Copy(process_, machine_->DefaultStream(process_, 0), copy, machine_->now(), &op),
        Status::kSuccess);
    EXPECT_TRUE(Wait(op));
    std::vector<T> out(count);
    if (copy->bytes.size() == count * sizeof(T))
      std::memcpy(out.data(), copy->bytes.data(), count * sizeof(T));
    return out;
  }

  bool Wait(OpId op) { return WaitFor(*machine_, op); }

  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  Address input_ = 0;
  Status status_ = Status::kSuccess;
  std::string text_, fault_;
  bool finished_ = false;
};

}  // namespace allranks::node
