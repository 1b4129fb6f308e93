// Reading cubins (cubin.h): ELF with NVIDIA's sections. `.nv.info` and `.nv.info.<kernel>` are
// lists of attributes {u8 format, u8 attribute, u16 size or value, data}; the others count by their
// size. Attribute numbers were checked against what ptxas -v prints.
#include "ptx/cubin.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/bytes.h"

namespace allranks::ptx {
namespace {

struct ElfHeader {
  unsigned char ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, program_headers, section_headers;
  std::uint32_t flags;
  std::uint16_t header_bytes, program_entry_bytes, program_entries;
  std::uint16_t section_entry_bytes, section_entries, names_section;
};
static_assert(sizeof(ElfHeader) == 64);

struct ElfSection {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, size;
  std::uint32_t link, info;
  std::uint64_t align, entry_bytes;
};
static_assert(sizeof(ElfSection) == 64);

struct ElfSymbol {
  std::uint32_t name;
  unsigned char info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};
static_assert(sizeof(ElfSymbol) == 24);

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kSectionSymbols = 2;
constexpr std::uint32_t kSectionNoBits = 8;
constexpr unsigned char kSymbolFunction = 2;
constexpr unsigned char kSymbolIsKernel = 0x10;  // in `other`

constexpr std::uint8_t kFormatByte = 2;   // value in the third byte
constexpr std::uint8_t kFormatHalf = 3;   // value in the third and fourth
constexpr std::uint8_t kFormatSized = 4;  // size there, data after it

enum Attribute : std::uint8_t {
  kMaxThreads = 0x05,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kParamSize = 0x19,
  kMaxRegisters = 0x1b,
  kRegisterCount = 0x2f,
  kBarriers = 0x4c,
};

// Names may overlap in the table, so without these a small file could name a lot.
constexpr std::size_t kMaxNameBytes = 65536;
constexpr std::size_t kMaxKernelNameBytes = std::size_t{64} << 20;  // of all kernels

// From sm_90 on, a kernel's shared section starts with the 1 KiB that the system keeps for itself.
constexpr std::uint32_t kFirstArchWithReservedShared = 90;
constexpr std::uint64_t kReservedSharedBytes = 1024;

class CubinReader {
 public:
  explicit CubinReader(Bytes bytes) : bytes_(bytes) {}

  Result<std::map<std::string, KernelResources>> Read();

 private:
  Bytes Content(const ElfSection& section) const {
    return section.type == kSectionNoBits ? Bytes() : Slice(bytes_, section.offset, section.size);
  }
  static std::string_view StringAt(Bytes table, std::uint32_t offset);
  std::string_view SectionName(const ElfSection& section) const {
    return StringAt(names_, section.name);
  }

  Status ReadSections();
  Status ReadSymbols();
  // Calls use(attribute, format, value, data) for each entry.
  template <class Use>
  Status ForEachAttribute(Bytes info, Use use) const;
  Status ReadModuleInfo(Bytes info);
  Status ReadKernelInfo(Bytes info, KernelResources* kernel) const;
  KernelResources* Find(std::string_view name);

  Bytes bytes_;
  std::uint32_t arch_ = 0;
  std::vector<ElfSection> sections_;
  Bytes names_;
  std::unordered_map<std::uint32_t, KernelResources*> by_symbol_;
  std::map<std::string, KernelResources> kernels_;
};

std::string_view CubinReader::StringAt(Bytes table, std::uint32_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = AsText(table.subspan(offset)).substr(0, kMaxNameBytes);
  return rest.substr(0, rest.find('\0'));
}

Status CubinReader::ReadSections() {
  ElfHeader header;
  if (!ReadAt(bytes_, 0, &header)) return Fail("cubin: too short");
  if (std::string_view(reinterpret_cast<const char*>(header.ident), 6) !=
      "\x7f"
      "ELF\x02\x01") {
    return Fail("cubin: not a 64-bit little-endian ELF file");
  }
  if (header.machine != kMachineCuda) return Fail("cubin: not for a GPU");
  // ABI 8 keeps the architecture in the second byte of the flags, earlier ones in the first.
  constexpr unsigned char kAbiWithShiftedArch = 8;
  arch_ = (header.flags >> (header.ident[8] >= kAbiWithShiftedArch ? 8 : 0)) & 0xff;
  if (header.section_entry_bytes != sizeof(ElfSection)) return Fail("cubin: malformed sections");
  for (std::uint64_t i = 0; i < header.section_entries; ++i) {
    ElfSection section;
    // The sum cannot wrap for an offset that is within the file.
    if (header.section_headers > bytes_.size() ||
        !ReadAt(bytes_, header.section_headers + i * sizeof(section), &section)) {
      return Fail("cubin: section headers beyond the end");
    }
    sections_.push_back(section);
  }
  if (header.names_section >= sections_.size()) return Fail("cubin: no section names");
  names_ = Content(sections_[header.names_section]);
  return Ok();
}

Status CubinReader::ReadSymbols() {
  for (const ElfSection& section : sections_) {
    if (section.type != kSectionSymbols) continue;
    const Bytes symbols = Content(section);
    if (section.link >= sections_.size()) return Fail("cubin: symbols without names");
    const Bytes strings = Content(sections_[section.link]);
    const std::uint64_t count = symbols.size() / sizeof(ElfSymbol);
    if (count > kMaxCubinSymbols) return Fail("cubin: too many symbols");
    std::size_t name_bytes = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      ElfSymbol symbol;
      ReadAt(symbols, i * sizeof(symbol), &symbol);
      const bool is_kernel = (symbol.info & 0xf) == kSymbolFunction &&
                             (symbol.other & kSymbolIsKernel) != 0 && symbol.section != 0;
      if (!is_kernel) continue;
      const std::string_view name = StringAt(strings, symbol.name);
      name_bytes += name.size();
      if (name_bytes > kMaxKernelNameBytes) return Fail("cubin: kernel names too long");
      if (name.empty()) continue;
      by_symbol_[static_cast<std::uint32_t>(i)] = &kernels_[std::string(name)];
    }
    return Ok();  // there is one symbol table
  }
  return Ok();
}

template <class Use>
Status CubinReader::ForEachAttribute(Bytes info, Use use) const {
  for (std::uint64_t at = 0; at < info.size();) {
    std::uint8_t format = 0;
    std::uint8_t attribute = 0;
    std::uint16_t value = 0;
    if (!ReadAt(info, at, &format) || !ReadAt(info, at + 1, &attribute) ||
        !ReadAt(info, at + 2, &value)) {
      return Fail("cubin: attributes cut off");
    }
    at += 4;
    Bytes data;
    if (format == kFormatSized) {
      if (!Contains(info, at, value)) return Fail("cubin: attributes cut off");
      data = info.subspan(at, value);
      at += value;
    }
    use(static_cast<Attribute>(attribute), format, value, data);
  }
  return Ok();
}

// Attributes {symbol, value} of all functions.
Status CubinReader::ReadModuleInfo(Bytes info) {
  return ForEachAttribute(info, [&](Attribute attribute, std::uint8_t, std::uint16_t, Bytes data) {
    std::uint32_t symbol = 0;
    std::uint32_t value = 0;
    if (!ReadAt(data, 0, &symbol) || !ReadAt(data, 4, &value)) return;
    const auto found = by_symbol_.find(symbol);
    if (found == by_symbol_.end()) return;
    KernelResources& kernel = *found->second;
    if (attribute == kRegisterCount) kernel.registers = value;
    // The frame is the kernel's own; the minimal stack adds what it calls.
    if (attribute == kFrameSize || attribute == kMinStackSize) {
      kernel.local_bytes = std::max<std::uint64_t>(kernel.local_bytes, value);
    }
  });
}

Status CubinReader::ReadKernelInfo(Bytes info, KernelResources* kernel) const {
  return ForEachAttribute(
      info, [&](Attribute attribute, std::uint8_t format, std::uint16_t value, Bytes data) {
        const auto read_dimensions = [&](std::uint32_t(&out)[3]) {
          for (std::uint64_t i = 0; i < 3; ++i) ReadAt(data, 4 * i, &out[i]);
        };
        if (attribute == kMaxThreads && format == kFormatSized)
          read_dimensions(kernel->max_threads);
        if (attribute == kRequiredThreads && format == kFormatSized) {
          read_dimensions(kernel->required_threads);
        }
        if (attribute == kParamSize && format == kFormatHalf) kernel->param_bytes = value;
        if (attribute == kMaxRegisters && format == kFormatHalf) kernel->max_registers = value;
        if (attribute == kBarriers && format == kFormatByte) kernel->barriers = value & 0xff;
      });
}

KernelResources* CubinReader::Find(std::string_view name) {
  const auto found = kernels_.find(std::string(name));
  return found == kernels_.end() ? nullptr : &found->second;
}

Result<std::map<std::string, KernelResources>> CubinReader::Read() {
  if (const Status status = ReadSections(); !status) return Fail(status.error());
  if (const Status status = ReadSymbols(); !status) return Fail(status.error());
  for (const ElfSection& section : sections_) {
    const std::string_view name = SectionName(section);
    const auto of = [&](std::string_view prefix) {
      return name.starts_with(prefix) ? Find(name.substr(prefix.size())) : nullptr;
    };
    Status status = Ok();
    if (name == ".nv.info") {
      status = ReadModuleInfo(Content(section));
    } else if (KernelResources* kernel = of(".nv.info."); kernel != nullptr) {
      status = ReadKernelInfo(Content(section), kernel);
    } else if (kernel = of(".nv.shared."); kernel != nullptr) {
      const bool reserved = arch_ >= kFirstArchWithReservedShared;
      kernel->shared_bytes =
          section.size - (reserved ? std::min(section.size, kReservedSharedBytes) : 0);
    } else if (kernel = of(".nv.constant0."); kernel != nullptr) {
      kernel->constant_bytes = section.size;
    } else if (kernel = of(".text."); kernel != nullptr && kernel->registers == 0) {
      // Before .nv.info had it (and on sm_75 to sm_89 besides): in the section's header.
      kernel->registers = section.info >> 24;
    }
    if (!status) return Fail(status.error());
  }
  return std::move(kernels_);
}

}  // namespace

Result<std::map<std::string, KernelResources>> ReadCubin(Bytes cubin) {
  return CubinReader(cubin).Read();
}

}  // namespace allranks::ptx
