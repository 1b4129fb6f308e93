// Functions made by hand for tests of the flow analysis, as the parser would have left them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/module.h"

namespace allranks::node {

class FlowBuilder {
 public:
  explicit FlowBuilder(std::size_t registers) {
    for (std::size_t i = 0; i < registers; ++i) {
      function_.registers.push_back({"%x", static_cast<std::int32_t>(i), ptx::Type::kB32});
    }
  }
  ptx::Function& function() { return function_; }
  std::string_view Text(std::string text) { return texts_.emplace_back(std::move(text)); }
  static ptx::Operand Reg(std::int32_t reg) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::kReg;
    operand.reg = reg;
    return operand;
  }
  static ptx::Operand Symbol(std::string_view name) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::kSymbol;
    operand.name = name;
    return operand;
  }
  ptx::Instruction& Add(std::string_view opcode, std::vector<ptx::Operand> operands = {}) {
    ptx::Instruction& instruction = function_.code.emplace_back();
    instruction.opcode = opcode;
    instruction.operands = std::move(operands);
    return instruction;
  }
  std::string_view Label(std::uint32_t index) {
    const std::string_view name = Text(fmt::format("L{}", index));
    function_.labels[name] = index;
    return name;
  }

 private:
  ptx::Function function_;
  std::deque<std::string> texts_;
};

}  // namespace allranks::node
