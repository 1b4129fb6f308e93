// The text form of modules in tests (describe.h): one line per file, variable, function and
// instruction. What has its default value is left out.
#include "ptx/describe.h"

#include <fmt/format.h>

#include <map>

namespace allranks::ptx {
namespace {

std::string_view SpaceName(Space space) {
  switch (space) {
    case Space::kNone:
      return "none";
    case Space::kReg:
      return "reg";
    case Space::kGlobal:
      return "global";
    case Space::kConst:
      return "const";
    case Space::kShared:
      return "shared";
    case Space::kLocal:
      return "local";
    case Space::kParam:
      return "param";
  }
  return "?";
}

std::string DescribeVariable(const Variable& variable) {
  std::string line = fmt::format("{} {} size={} element={}", SpaceName(variable.space),
                                 variable.name, variable.size, SizeOf(variable.type));
  if (variable.vector != 1) line += fmt::format(" vector={}", variable.vector);
  if (variable.align != 0) line += fmt::format(" align={}", variable.align);
  if (variable.unsized) line += " unsized";
  if (variable.is_extern) line += " extern";
  if (variable.is_visible) line += " visible";
  if (variable.is_weak) line += " weak";
  if (variable.is_common) line += " common";
  if (variable.managed) line += " managed";
  if (!variable.init.empty()) {
    line += " init=";
    for (const std::uint8_t byte : variable.init) line += fmt::format("{:02x}", byte);
  }
  for (const SymbolRef& ref : variable.refs) {
    line += fmt::format(" at{}:{}{}{:+}", ref.at, ref.generic ? "generic:" : "", ref.symbol,
                        ref.addend);
    if (ref.size != 8 || ref.shift != 0) line += fmt::format(">>{}:{}", ref.shift, ref.size);
  }
  return line;
}

// Registers of inner scopes have the names of outer ones: the second one called %r1 is %r1~2.
std::string RegisterName(const Function& function, std::int32_t reg) {
  const auto index = static_cast<std::size_t>(reg);
  const std::string name = function.registers[index].Name();
  int repetition = 1;
  for (std::size_t i = 0; i < index; ++i) repetition += function.registers[i].Name() == name;
  return repetition == 1 ? name : fmt::format("{}~{}", name, repetition);
}

std::string DescribeOperand(const Function& function, const Operand& operand);

std::string Join(const Function& function, const std::vector<Operand>& operands,
                 std::size_t first = 0) {
  std::string text;
  for (std::size_t i = first; i < operands.size(); ++i) {
    if (i > first) text += ", ";
    text += DescribeOperand(function, operands[i]);
  }
  return text;
}

std::string Offset(std::uint64_t offset) {
  return offset == 0 ? "" : fmt::format("{:+}", static_cast<std::int64_t>(offset));
}

std::string DescribeOperand(const Function& function, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kReg:
      return fmt::format("{}{}{}{}", operand.negated ? "neg " : "",
                         RegisterName(function, operand.reg), operand.name.empty() ? "" : ".",
                         operand.name);
    case Operand::Kind::kInt:
      return fmt::format("{}", static_cast<std::int64_t>(operand.imm));
    case Operand::Kind::kF32:
      return fmt::format("0f{:08x}", operand.imm);
    case Operand::Kind::kF64:
      return fmt::format("0d{:016x}", operand.imm);
    case Operand::Kind::kSpecial:
      return fmt::format("special {}", operand.name);
    case Operand::Kind::kSymbol:
      return fmt::format("&{}{}", operand.name, Offset(operand.imm));
    case Operand::Kind::kAddress: {
      std::string text = "[" + DescribeOperand(function, operand.elements[0]) + Offset(operand.imm);
      if (operand.elements.size() > 1) text += ", " + Join(function, operand.elements, 1);
      return text + "]";
    }
    case Operand::Kind::kVector:
      return "{" + Join(function, operand.elements) + "}";
    case Operand::Kind::kList:
      return "(" + Join(function, operand.elements) + ")";
    case Operand::Kind::kPair:
      return DescribeOperand(function, operand.elements[0]) + " | " +
             DescribeOperand(function, operand.elements[1]);
    case Operand::Kind::kSink:
      return "_";
  }
  return "?";
}

std::string DescribeLoc(const Module& module, const SourceLoc& loc) {
  const std::string file = loc.file < 0 ? "?" : module.files[static_cast<std::size_t>(loc.file)];
  std::string text = fmt::format("{}:{}:{}", file, loc.line, loc.column);
  if (loc.inlined_at >= 0) {
    const InlineSite& site = module.inline_sites[static_cast<std::size_t>(loc.inlined_at)];
    text += fmt::format(" in {} at {}", site.function, DescribeLoc(module, site.call));
  }
  return text;
}

std::string Dimensions(const std::uint32_t (&d)[3]) {
  return fmt::format("{},{},{}", d[0], d[1], d[2]);
}

std::string DescribeHeader(const Function& function) {
  std::string line = fmt::format("{} {}", function.is_entry ? "entry" : "func", function.name);
  if (function.is_extern) line += " extern";
  if (function.is_visible) line += " visible";
  if (function.is_weak) line += " weak";
  if (!function.has_body) line += " declared";
  if (function.noreturn) line += " noreturn";
  const EntryLimits& limits = function.limits;
  if (limits.max_threads[0] != 0) line += " maxntid=" + Dimensions(limits.max_threads);
  if (limits.required_threads[0] != 0) line += " reqntid=" + Dimensions(limits.required_threads);
  if (limits.cluster[0] != 0) line += " cluster=" + Dimensions(limits.cluster);
  if (limits.explicit_cluster) line += " explicitcluster";
  if (limits.blocks_are_clusters) line += " blocksareclusters";
  if (limits.max_cluster_rank != 0)
    line += fmt::format(" maxclusterrank={}", limits.max_cluster_rank);
  if (limits.min_ctas_per_sm != 0) line += fmt::format(" minctas={}", limits.min_ctas_per_sm);
  if (limits.max_registers != 0) line += fmt::format(" maxnreg={}", limits.max_registers);
  return line;
}

void DescribeFunction(const Module& module, const Function& function,
                      std::vector<std::string>* lines) {
  lines->push_back(DescribeHeader(function));
  for (const Variable& result : function.results) {
    lines->push_back("result " + DescribeVariable(result));
  }
  for (const Variable& param : function.params) {
    lines->push_back("parameter " + DescribeVariable(param));
  }
  for (const Variable& variable : function.variables) {
    lines->push_back("local " + DescribeVariable(variable));
  }
  std::multimap<std::uint32_t, std::string> labels;
  for (const auto& [name, at] : function.labels) labels.emplace(at, name);
  for (const auto& [label, list] : function.target_lists) {
    std::string line = fmt::format("list {}:", label);
    for (const std::string_view name : list) line += fmt::format(" {}", name);
    lines->push_back(line);
  }
  for (const auto& [label, prototype] : function.prototypes) {
    std::string line = fmt::format("prototype {}:", label);
    for (const Variable& result : prototype.results) line += fmt::format(" ->{}", result.size);
    for (const Variable& param : prototype.params) line += fmt::format(" {}", param.size);
    if (prototype.noreturn) line += " noreturn";
    lines->push_back(line);
  }
  for (std::uint32_t i = 0; i <= function.code.size(); ++i) {
    const auto [first, last] = labels.equal_range(i);
    for (auto label = first; label != last; ++label) lines->push_back(label->second + ":");
    if (i == function.code.size()) break;
    const Instruction& instruction = function.code[i];
    std::string line;
    if (instruction.guard >= 0) {
      line = fmt::format("@{}{} ", instruction.guard_negated ? "!" : "",
                         RegisterName(function, instruction.guard));
    }
    line += instruction.Form();
    if (!instruction.operands.empty()) line += " " + Join(function, instruction.operands);
    if (instruction.loc.line != 0) line += "  // " + DescribeLoc(module, instruction.loc);
    lines->push_back(line);
  }
}

}  // namespace

std::vector<std::string> Describe(const Module& module) {
  std::vector<std::string> lines;
  std::string target =
      fmt::format("version {}.{} {}", module.version_major, module.version_minor, module.target);
  for (const std::string_view option : module.target_options) target += fmt::format(" {}", option);
  lines.push_back(target);
  for (const Variable& variable : module.variables) lines.push_back(DescribeVariable(variable));
  for (const Alias& alias : module.aliases) {
    lines.push_back(fmt::format("alias {} {}", alias.name, alias.target));
  }
  for (const Function& function : module.functions) DescribeFunction(module, function, &lines);
  return lines;
}

}  // namespace allranks::ptx
