// Counts instruction forms and asks the decoder about each; see ptx_report.h.
#include "cli/ptx_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "node/decode/decode.h"
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

// What is known of a function after its own decoding or that of a kernel that calls it.
struct Decoded {
  bool done = false;
  std::string error;
  std::vector<bool> unsupported;  // by instruction
};

// A function that is decoded by itself stands where an entry would, and an entry cannot be called.
bool CallsItself(const ptx::Function& function, const ptx::Instruction& in) {
  return in.opcode == "call" &&
         std::any_of(in.operands.begin(), in.operands.end(), [&](const ptx::Operand& operand) {
           return operand.kind == ptx::Operand::Kind::kSymbol && operand.name == function.name;
         });
}

class ImageReport {
 public:
  ImageReport(const PtxImage& image, const ptx::Module& module, PtxReport* report)
      : image_(image), module_(module), report_(report), decoded_(module.functions.size()) {}

  void Run() {
    std::vector<PtxKernel> kernels(module_.functions.size());
    for (const bool entries : {true, false}) {  // what no entry calls is decoded by itself
      for (std::size_t i = 0; i < module_.functions.size(); ++i) {
        if (module_.functions[i].has_body && module_.functions[i].is_entry == entries) {
          kernels[i] = Decode(i);
        }
      }
    }
    for (std::size_t i = 0; i < module_.functions.size(); ++i) {
      if (!module_.functions[i].has_body) continue;
      Count(i, &kernels[i]);
      report_->kernels.push_back(std::move(kernels[i]));
    }
  }

 private:
  PtxKernel Decode(std::size_t number) {
    const ptx::Function& function = module_.functions[number];
    PtxKernel kernel;
    kernel.image = image_.name;
    kernel.name = std::string(function.name);
    kernel.is_entry = function.is_entry;
    kernel.instructions = function.code.size();
    const auto known = image_.resources.find(kernel.name);
    const ptx::KernelResources* resources =
        known == image_.resources.end() ? nullptr : &known->second;
    const auto code = node::Decode(module_, function, resources);
    if (!code) {
      kernel.error = code.error().message;
      if (!decoded_[number].done) {
        decoded_[number] = {true, kernel.error, std::vector<bool>(function.code.size(), true)};
      }
      return kernel;
    }
    kernel.registers = (*code)->registers;
    kernel.registers_known = resources != nullptr;
    kernel.shared = (*code)->static_shared;
    kernel.local = (*code)->local_bytes;
    for (const node::FunctionCode& part : (*code)->functions) {
      const ptx::Function* of = module_.FindFunction(part.name);
      if (of == nullptr) continue;
      Decoded& decoded = decoded_[static_cast<std::size_t>(of - module_.functions.data())];
      if (decoded.done && decoded.error.empty()) continue;
      decoded = {true, "", std::vector<bool>(of->code.size(), false)};
      for (std::uint32_t i = part.begin; i < part.end; ++i) {
        const node::Op& op = (*code)->ops[i];
        if (op.kind == node::OpKind::kUnsupported && op.source < of->code.size() &&
            !(!function.is_entry && CallsItself(*of, of->code[op.source]))) {
          decoded.unsupported[op.source] = true;
        }
      }
    }
    return kernel;
  }

  void Count(std::size_t number, PtxKernel* kernel) {
    const ptx::Function& function = module_.functions[number];
    const Decoded& decoded = decoded_[number];
    for (std::size_t i = 0; i < function.code.size(); ++i) {
      const ptx::Instruction& in = function.code[i];
      const std::string name = FormOf(in);
      PtxForm& form = report_->forms[name];
      ++form.count;
      form.parsed = true;
      if (!decoded.unsupported[i]) continue;
      const std::string at = Place(image_, module_, in);
      if (form.unsupported++ == 0) {
        form.first = at;
        form.why = decoded.error;
      }
      if (!decoded.error.empty()) continue;
      const auto missing =
          std::find_if(kernel->missing.begin(), kernel->missing.end(),
                       [&](const PtxKernel::Missing& other) { return other.form == name; });
      if (missing == kernel->missing.end()) {
        kernel->missing.push_back({name, at, 1});
      } else {
        ++missing->count;
      }
    }
  }

  const PtxImage& image_;
  const ptx::Module& module_;
  PtxReport* report_;
  std::vector<Decoded> decoded_;
};

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
  ImageReport(image, *module, report).Run();
}

}  // namespace allranks::cli
