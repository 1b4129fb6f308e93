// PTX function → executable Code. The one place that knows how each instruction is written; what it
// does is said by alu.h (registers), memory_ops.h (memory) and engine.h (control, time).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "node/code/code.h"
#include "ptx/cubin.h"
#include "ptx/module.h"

namespace allranks::node {

// Decodes the entry `function` of `module`. An instruction without semantics becomes a kUnsupported
// op, which faults only when reached; fails only if the function as a whole cannot be laid out.
// `resources` are those the real compiler found (may be null: registers are then estimated).
Result<std::shared_ptr<const Code>> Decode(const ptx::Module& module, const ptx::Function& function,
                                           const ptx::KernelResources* resources);

// The code of a kernel of a module whose bodies are read when they are needed
// (ptx::Bodies::kLater). What the kernel calls by name is there from the start; what it calls by
// pointer is decoded when it is first called. Nothing of the code moves when it grows, and numbers
// of operations stay.
class GrowingCode {
 public:
  // `module` and `resources` as Decode has them; the module must stay where it is.
  static Result<std::unique_ptr<GrowingCode>> Make(ptx::Module* module, std::string_view kernel,
                                                   const ptx::KernelResources* resources);
  ~GrowingCode();

  const std::shared_ptr<const Code>& code() const { return code_; }
  // Makes Code::function_of of the module's function `number` a valid index.
  Result<void> Grow(std::size_t number);

 private:
  explicit GrowingCode(std::unique_ptr<class Decoding> decoding);

  std::unique_ptr<class Decoding> decoding_;
  std::shared_ptr<const Code> code_;
};

// A function that the node has instead of the program; kNone for any other name.
CallOp::Builtin BuiltinOf(std::string_view name);

// The value that a pointer to this function has on the device; nullopt if there is no such
// function.
std::optional<std::uint64_t> FunctionAddress(const ptx::Module& module, std::string_view name);

// The most threads that a CTA of the entry may have.
std::uint32_t MaxThreads(const ptx::Function& function);

// Byte layout of an entry's parameters, as the driver packs them.
void LayoutParams(const ptx::Function& function, std::vector<std::uint32_t>* offsets,
                  std::vector<std::uint32_t>* sizes, std::uint32_t* bytes);

}  // namespace allranks::node
