// Everything that src/ptx reads and src/node decodes is hostile: PTX text, fat binaries and cubins.
// The first byte of an input picks the reader, so that one corpus serves all three:
//   'F' fat binary (every image is extracted, and read on as what it claims to be), 'C' cubin,
//   'L' PTX texts that are linked, with a zero byte between them, 'S' a link set,
//   anything else: PTX text, from that byte on.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/link_set.h"
#include "node/decode/decode.h"
#include "ptx/cubin.h"
#include "ptx/fatbin.h"
#include "ptx/link.h"
#include "ptx/parser.h"

namespace {

using allranks::ptx::Function;
using allranks::ptx::Operand;

constexpr std::size_t kMaxInput = 65536;
constexpr std::size_t kMaxDecoded = 512;  // instructions
// Far above what the seeds need; real images are bounded by kMaxImageBytes.
constexpr std::uint64_t kMaxExtracted = 65536;

// What parser.h promises about operands.
void CheckOperand(const Function& function, const Operand& operand) {
  if (operand.kind == Operand::Kind::kReg) {
    CHECK(operand.reg >= 0 && static_cast<std::size_t>(operand.reg) < function.registers.size());
  }
  if (operand.kind == Operand::Kind::kSymbol) CHECK(!operand.name.empty());
  for (const Operand& element : operand.elements) CheckOperand(function, element);
}

// What parser.h promises about modules, and that everything decodes, to code or to a clean refusal.
void CheckModule(const allranks::ptx::Module& module) {
  for (const Function& function : module.functions) {
    CHECK(module.FindFunction(function.name) != nullptr);
    for (const auto& [name, at] : function.labels) CHECK(at <= function.code.size());
    for (const auto& instruction : function.code) {
      CHECK(instruction.guard < static_cast<std::int64_t>(function.registers.size()));
      CHECK(instruction.loc.file < static_cast<std::int64_t>(module.files.size()));
      CHECK(instruction.loc.inlined_at < static_cast<std::int64_t>(module.inline_sites.size()));
      for (const Operand& operand : instruction.operands) CheckOperand(function, operand);
      if (instruction.opcode == "bra" && !instruction.operands.empty() &&
          instruction.operands[0].kind == Operand::Kind::kSymbol) {
        CHECK(function.labels.contains(instruction.operands[0].name));
      }
    }
    if (function.is_entry && function.has_body && function.code.size() <= kMaxDecoded) {
      (void)allranks::node::Decode(module, function, nullptr);
    }
  }
}

void ReadPtx(std::string text) {
  const allranks::Result<allranks::ptx::Module> module = allranks::ptx::Parse(std::move(text));
  if (!module) {
    CHECK(module.error().message.starts_with("ptx:"));
    return;
  }
  CheckModule(*module);
}

void LinkTexts(const std::vector<std::string_view>& texts) {
  std::vector<allranks::ptx::LinkInput> inputs;
  for (const std::string_view text : texts) {
    auto module = allranks::ptx::Parse(std::string(text));
    if (module) inputs.push_back({std::move(*module), std::to_string(inputs.size())});
  }
  const auto linked = allranks::ptx::Link(std::move(inputs), [](std::string_view name) {
    return allranks::node::BuiltinOf(name) != allranks::node::CallOp::Builtin::kNone;
  });
  if (linked) {
    CheckModule(*linked);
  } else {
    CHECK(!linked.error().message.empty());
  }
}

void LinkZeroSeparated(std::string_view all) {
  std::vector<std::string_view> texts;
  for (std::size_t at = 0; at <= all.size() && texts.size() < 8;) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    texts.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  LinkTexts(texts);
}

void LinkSet(std::span<const std::byte> bytes) {
  std::vector<allranks::LinkSetImage> images;
  if (!allranks::ReadLinkSet(bytes, &images)) return;
  std::vector<std::string_view> texts;
  for (const allranks::LinkSetImage& image : images) {
    if (texts.size() == 8) break;
    texts.push_back({reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
  }
  LinkTexts(texts);
}

void ReadFatbin(std::span<const std::byte> bytes) {
  const allranks::Result<allranks::ptx::Fatbin> fatbin = allranks::ptx::Fatbin::Open(bytes);
  if (!fatbin) return;
  fatbin->PickPtx(90);
  fatbin->PickCubin(90);
  for (std::size_t i = 0; i < fatbin->images().size(); ++i) {
    const allranks::Result<std::string> image = fatbin->Extract(i, kMaxExtracted);
    if (!image) continue;
    if (fatbin->images()[i].kind == allranks::ptx::ImageKind::kPtx) ReadPtx(*image);
    if (fatbin->images()[i].kind == allranks::ptx::ImageKind::kCubin) {
      (void)allranks::ptx::ReadCubin(std::as_bytes(std::span(*image)));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > kMaxInput) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  if (data[0] == 'F') {
    ReadFatbin(bytes.subspan(1));
  } else if (data[0] == 'C') {
    (void)allranks::ptx::ReadCubin(bytes.subspan(1));
  } else if (data[0] == 'L') {
    LinkZeroSeparated({reinterpret_cast<const char*>(data) + 1, size - 1});
  } else if (data[0] == 'S') {
    LinkSet(bytes.subspan(1));
  } else {
    ReadPtx(std::string(reinterpret_cast<const char*>(data), size));
  }
  return 0;
}
