// Counts instruction forms and asks the decoder about each; see ptx_report.h.
#include "cli/ptx_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "node/decode.h"
#include "ptx/parser.h"

namespace allranks::cli {
namespace {

std::string FormOf(const ptx::Instruction& in) {
  std::string form = in.Form();
  for (const ptx::Operand& operand : in.operands) {
    if (operand.kind == ptx::Operand::Kind::kSpecial) form += fmt::format(" {}", operand.name);
  }
  return form;
}

std::string Place(const PtxImage& image, const ptx::Module& module, const ptx::Instruction& in) {
  if (in.loc.file >= 0 && in.loc.line > 0) {
    return fmt::format("{}:{} (PTX line {})", module.files[static_cast<std::size_t>(in.loc.file)],
                       in.loc.line, in.text_line);
  }
  return fmt::format("{}:{}", image.name, in.text_line);
}

// The words at which statements begin, of a text that the parser refuses: good enough to count.
void CountUnparsed(std::string_view text, PtxReport* report) {
  bool start = true;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
    } else if (c == ';' || c == '{' || c == '}' || c == ':') {
      start = true;
      ++at;
    } else if (start && c == '@') {
      while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) == 0) ++at;
    } else {
      std::size_t end = at;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '.' ||
              text[end] == '_' || (text[end] == ':' && text.substr(end, 2) == "::"))) {
        end += text[end] == ':' ? 2 : 1;
      }
      if (start && std::islower(static_cast<unsigned char>(c)) != 0 && end > at) {
        ++report->forms[std::string(text.substr(at, end - at))].count;
      }
      start = false;
      at = std::max(end, at + 1);
    }
  }
}

void AddFunction(const PtxImage& image, const ptx::Module& module, const ptx::Function& function,
                 PtxReport* report) {
  PtxKernel kernel;
  kernel.image = image.name;
  kernel.name = std::string(function.name);
  kernel.is_entry = function.is_entry;
  kernel.instructions = function.code.size();
  const auto known = image.resources.find(kernel.name);
  const ptx::KernelResources* resources = known == image.resources.end() ? nullptr : &known->second;
  std::vector<bool> unsupported(function.code.size(), false);
  const auto code = node::Decode(module, function, resources);
  if (code) {
    kernel.registers = (*code)->registers;
    kernel.registers_known = resources != nullptr;
    kernel.shared = (*code)->static_shared;
    kernel.local = (*code)->local_bytes;
    for (const node::Op& op : (*code)->ops) {
      if (op.kind == node::OpKind::kUnsupported && op.source < unsupported.size()) {
        unsupported[op.source] = true;
      }
    }
  } else {
    kernel.error = code.error().message;
    unsupported.assign(unsupported.size(), true);
  }
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const ptx::Instruction& in = function.code[i];
    const std::string name = FormOf(in);
    PtxForm& form = report->forms[name];
    ++form.count;
    form.parsed = true;
    if (!unsupported[i]) continue;
    const std::string at = Place(image, module, in);
    if (form.unsupported++ == 0) {
      form.first = at;
      form.why = kernel.error;
    }
    if (!kernel.error.empty()) continue;
    const auto missing =
        std::find_if(kernel.missing.begin(), kernel.missing.end(),
                     [&](const PtxKernel::Missing& other) { return other.form == name; });
    if (missing == kernel.missing.end()) {
      kernel.missing.push_back({name, at, 1});
    } else {
      ++missing->count;
    }
  }
  report->kernels.push_back(std::move(kernel));
}

}  // namespace

std::uint64_t PtxReport::Parsed() const {
  return static_cast<std::uint64_t>(std::count_if(
      forms.begin(), forms.end(), [](const auto& form) { return form.second.parsed; }));
}

std::uint64_t PtxReport::Executable() const {
  return static_cast<std::uint64_t>(std::count_if(forms.begin(), forms.end(), [](const auto& form) {
    return form.second.parsed && form.second.unsupported == 0;
  }));
}

void AddToReport(PtxImage image, PtxReport* report) {
  const Result<ptx::Module> module = ptx::Parse(image.text);
  if (!module) {
    report->errors.push_back(fmt::format("{}: {}", image.name, module.error().message));
    CountUnparsed(image.text, report);
    return;
  }
  for (const ptx::Function& function : module->functions) {
    if (function.has_body) AddFunction(image, *module, function, report);
  }
}

}  // namespace allranks::cli
