// Runs one kernel written as PTX text on a machine of its own and gives back what it left in
// memory: for tests of single instructions.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node/machine.h"
#include "test_machine.h"

namespace allranks::node {

// The kernel has the parameter `p`, a buffer, and starts with %rd0 = p, %r0 = the thread's number
// in its block, %r1 = the block's number. Its registers are %h (16 bits), %r, %f (32), %rd, %fd
// (64), %q (128) and %p (predicates), 64 of each.
class KernelRunner {
 public:
  explicit KernelRunner(MachineOptions options = {}) {
    machine_ = MakeTestMachine(options);
    process_ = machine_->AddProcess(0, 0);
  }

  static std::string Text(const std::string& body, const std::string& before = "") {
    return ".version 9.0\n.target sm_100a\n.address_size 64\n" + before +
           "\n.visible .entry k(.param .u64 p)\n{\n"
           ".reg .pred %p<64>; .reg .b16 %h<64>; .reg .b32 %r<64>; .reg .f32 %f<64>;\n"
           ".reg .b64 %rd<64>; .reg .f64 %fd<64>; .reg .b128 %q<64>;\n"
           "ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;\n" +
           body + "\nret;\n}\n";
  }

  // The buffer's bytes afterwards; `status` is how the launch ended.
  std::vector<std::byte> Run(const std::string& text, const std::vector<std::byte>& buffer,
                             std::uint32_t threads, std::uint32_t blocks = 1) {
    status = Status::kSuccess;
    Status loading = Status::kSuccess;
    ModuleImage image(std::as_bytes(std::span(text)));
    if (stays) image.Stay();
    auto module = machine_->LoadModule(process_, 0, image, &loading);
    EXPECT_TRUE(module) << module.error().message << "\n" << text;
    if (!module) return buffer;
    KernelInfo info;
    EXPECT_EQ(machine_->GetKernel(*module, "k", &info), Status::kSuccess);
    if (address_ == 0 || size_ < buffer.size()) {
      size_ = std::max<std::uint64_t>(buffer.size(), 1 << 16);
      EXPECT_EQ(machine_->Allocate(process_, 0, size_, &address_), Status::kSuccess);
    }
    const StreamId stream = machine_->DefaultStream(process_, 0);
    auto in = std::make_shared<CopyRequest>();
    in->dst = address_;
    in->bytes = buffer;
    in->size = buffer.size();
    OpId op = 0;
    EXPECT_EQ(machine_->Copy(process_, stream, in, machine_->now(), &op), Status::kSuccess);
    Wait(op);
    LaunchRequest request;
    request.kernel = info.id;
    request.grid.x = blocks;
    request.block.x = threads;
    request.params.resize(info.param_bytes);
    std::memcpy(request.params.data(), &address_, 8);
    EXPECT_EQ(machine_->Launch(process_, stream, request, machine_->now(), &op), Status::kSuccess);
    const Time begin = machine_->now();
    finished = Wait(op);
    took = machine_->now() - begin;
    for (const Fault& fault : machine_->TakeFaults()) {
      status = fault.status;
      message = fault.message;
    }
    if (status != Status::kSuccess || !finished) return buffer;
    auto out = std::make_shared<CopyRequest>();
    out->src = address_;
    out->size = buffer.size();
    EXPECT_EQ(machine_->Copy(process_, stream, out, machine_->now(), &op), Status::kSuccess);
    Wait(op);
    return out->bytes;
  }

  template <class T>
  std::vector<T> RunOn(const std::string& text, const std::vector<T>& buffer, std::uint32_t threads,
                       std::uint32_t blocks = 1) {
    std::vector<std::byte> bytes(buffer.size() * sizeof(T));
    std::memcpy(bytes.data(), buffer.data(), bytes.size());
    bytes = Run(text, bytes, threads, blocks);
    std::vector<T> out(buffer.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  Machine& machine() { return *machine_; }
  ProcessId process() const { return process_; }

  bool stays = false;  // the caller keeps the text
  Status status = Status::kSuccess;
  std::string message;
  bool finished = false;  // false: nothing was left to happen
  Time took = 0;

 private:
  bool Wait(OpId op) { return WaitFor(*machine_, op); }

  std::unique_ptr<Machine> machine_;
  ProcessId process_ = 0;
  Address address_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace allranks::node
