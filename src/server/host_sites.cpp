// See host_sites.h.
#include "server/host_sites.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "server/report.h"

namespace allranks::server {
namespace {

constexpr std::size_t kMostFrames = 4;     // of the program, in a site
constexpr std::size_t kMostSites = 65536;  // what is beyond has none; also of what is remembered
constexpr std::uint64_t kPage = 4096;

std::string NameOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool BeginsWithAny(std::string_view text, std::span<const std::string_view> with) {
  for (const std::string_view one : with)
    if (text.starts_with(one)) return true;
  return false;
}

bool OfShim(const std::string& path) {
  static constexpr std::array<std::string_view, 3> kNames = {"libcuda.so", "libcudart.so",
                                                             "liballranks_host.so"};
  return BeginsWithAny(NameOf(path), kNames);
}

bool OfSystem(const std::string& path) {
  static constexpr std::array<std::string_view, 5> kNames = {"libc.so", "libstdc++.so", "libm.so",
                                                             "libpthread.so", "ld-linux"};
  return BeginsWithAny(NameOf(path), kNames);
}

// A shared library of the system's folders, or one that is known by its name wherever it lies
// (wheels and modules of clusters bring theirs). A program and its own libraries are the user's.
bool OfLibrary(const std::string& path) {
  static constexpr std::array<std::string_view, 4> kFolders = {"/usr/lib/", "/usr/lib64/", "/lib/",
                                                               "/lib64/"};
  // Whole names, up to what begins a variant: a user's own library may begin like these.
  static constexpr std::array<std::string_view, 36> kNames = {
      "libnccl.",       "libnccl-",     "libnvshmem.",  "libnvshmem_host.", "libcublas.",
      "libcublasLt.",   "libcudnn.",    "libcudnn_",    "libcufft.",        "libcurand.",
      "libcusolver.",   "libcusparse.", "libcutensor.", "libnvrtc.",        "libnvrtc-",
      "libnvJitLink.",  "libnvidia-",   "libnvjpeg.",   "libcufile.",       "libcupti.",
      "libnvToolsExt.", "libmpi.",      "libmpi_cxx.",  "libucp.",          "libucs.",
      "libuct.",        "libucm.",      "libfabric.",   "libtorch.",        "libtorch_cpu.",
      "libtorch_cuda.", "libc10.",      "libc10_cuda.", "libnppc.",         "libnppi",
      "libnpps."};
  const std::string name = NameOf(path);
  if (name.find(".so") == std::string::npos) return false;
  return BeginsWithAny(path, kFolders) || BeginsWithAny(name, kNames);
}

// Code that nobody wrote at that place: the toolkit's and the C++ library's headers.
bool OfHeaders(const std::string& file) {
  const std::string name = NameOf(file);
  return file.find("/include/c++/") != std::string::npos ||
         file.find("/include/crt/") != std::string::npos || name == "cuda_runtime.h" ||
         name == "cuda_runtime_api.h" || name == "host_runtime.h" || name.ends_with(".stub.c");
}

// "cudaMemcpyAsync" of "cudaMemcpyAsync_ptsz", "cuMemAlloc" of "cuMemAlloc_v2".
std::string CallName(std::string name) {
  for (const char* suffix : {"_ptsz", "_ptds"})
    if (name.ends_with(suffix)) name.erase(name.rfind('_'));
  const std::size_t at = name.rfind("_v");
  if (at != std::string::npos && at + 2 < name.size() &&
      name.find_first_not_of("0123456789", at + 2) == std::string::npos)
    name.erase(at);
  if (name.starts_with("__cuda")) name.erase(0, 2);
  return name;
}

const Dwfl_Callbacks kCallbacks = {
    .find_elf = nullptr,
    // What is not in the file itself is not looked for: that may ask servers.
    .find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*,
                         GElf_Word, char**) { return -1; },
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

}  // namespace

// An ELF file, opened when something of it is to be resolved.
class HostSites::Module {
 public:
  explicit Module(std::string path) : path_(std::move(path)) {}
  ~Module() {
    if (dwfl_ != nullptr) dwfl_end(dwfl_);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }

  // The symbol that an instruction belongs to; "": none.
  std::string Symbol(std::uint64_t file_offset) {
    GElf_Off within = 0;
    GElf_Sym symbol;
    Dwarf_Addr at = 0;
    if (!Address(file_offset, &at)) return "";
    const char* name =
        dwfl_module_addrinfo(module_, at, &within, &symbol, nullptr, nullptr, nullptr);
    return name != nullptr ? name : "";
  }

  // The functions that it belongs to by inlining, innermost first.
  std::vector<node::HostFrame> Frames(std::uint64_t file_offset) {
    Dwarf_Addr at = 0;
    if (!Address(file_offset, &at))
      return {{"", 0, fmt::format("{}+{:#x}", NameOf(path_), file_offset)}};
    std::vector<node::HostFrame> frames = Lines(at);
    if (!frames.empty()) return frames;
    GElf_Off within = 0;
    GElf_Sym symbol;
    const char* name =
        dwfl_module_addrinfo(module_, at, &within, &symbol, nullptr, nullptr, nullptr);
    if (name != nullptr) return {{"", 0, fmt::format("{}+{:#x}", Demangle(name), within)}};
    return {{"", 0, fmt::format("{}+{:#x}", NameOf(path_), at - bias_)}};
  }

 private:
  // As libdw counts addresses of the file.
  bool Address(std::uint64_t file_offset, Dwarf_Addr* address) {
    if (!Open()) return false;
    GElf_Addr bias = 0;
    Elf* elf = dwfl_module_getelf(module_, &bias);
    std::size_t count = 0;
    if (elf == nullptr || elf_getphdrnum(elf, &count) != 0) return false;
    bias_ = bias;
    for (std::size_t i = 0; i < count; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr || header.p_type != PT_LOAD)
        continue;
      if (file_offset - header.p_offset >= header.p_filesz) continue;
      *address = file_offset - header.p_offset + header.p_vaddr + bias;
      return true;
    }
    return false;
  }

  bool Open() {
    if (opened_) return module_ != nullptr;
    opened_ = true;
    dwfl_ = dwfl_begin(&kCallbacks);
    if (dwfl_ == nullptr) return false;
    dwfl_report_begin(dwfl_);
    module_ = dwfl_report_offline(dwfl_, path_.c_str(), path_.c_str(), -1);
    dwfl_report_end(dwfl_, nullptr, nullptr);
    return module_ != nullptr;
  }

  static std::string FunctionOf(Dwarf_Die* die) {
    Dwarf_Attribute attribute;
    Dwarf_Attribute* linkage = dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute);
    const char* name = linkage != nullptr ? dwarf_formstring(linkage) : dwarf_diename(die);
    return name != nullptr ? Demangle(name) : "";
  }

  static std::string Absolute(const char* file, Dwarf_Die* unit) {
    std::string path = file != nullptr ? file : "";
    if (path.empty() || path[0] == '/') return path;
    Dwarf_Attribute attribute;
    const char* folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    if (path.starts_with("./")) path.erase(0, 2);
    return folder != nullptr ? std::string(folder) + "/" + path : path;
  }

  std::vector<node::HostFrame> Lines(Dwarf_Addr at) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = dwfl_module_addrdie(module_, at, &bias);
    if (unit == nullptr) {  // a compiler that writes no .debug_aranges
      while ((unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr)
        if (dwarf_haspc(unit, at - bias) == 1) break;
    }
    if (unit == nullptr) return {};
    Dwarf_Line* row = dwarf_getsrc_die(unit, at - bias);
    int line = 0;
    if (row == nullptr || dwarf_lineno(row, &line) != 0 || line == 0) return {};
    std::string file = Absolute(dwarf_linesrc(row, nullptr, nullptr), unit);
    std::vector<node::HostFrame> frames;
    Dwarf_Die* scopes = nullptr;
    const int count = dwarf_getscopes(unit, at - bias, &scopes);
    for (int i = 0; i < count; ++i) {
      const int tag = dwarf_tag(&scopes[i]);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      frames.push_back({file, line, FunctionOf(&scopes[i])});
      if (tag == DW_TAG_subprogram) break;
      // Where it was inlined.
      Dwarf_Attribute attribute;
      Dwarf_Word number = 0, called = 0;
      Dwarf_Files* files = nullptr;
      std::size_t known = 0;
      if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &called) != 0 ||
          dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &number) != 0 ||
          dwarf_getsrcfiles(unit, &files, &known) != 0 || number >= known)
        break;
      file = Absolute(dwarf_filesrc(files, number, nullptr, nullptr), unit);
      line = static_cast<int>(called);
    }
    std::free(scopes);
    if (frames.empty()) frames.push_back({file, line, ""});
    return frames;
  }

  std::string path_;
  bool opened_ = false;
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  Dwarf_Addr bias_ = 0;
};

HostSites::HostSites() : raw_(1, nullptr) {}
HostSites::~HostSites() = default;

std::uint32_t HostSites::ModuleOf(const std::string& path) {
  const auto [known, made] =
      module_ids_.try_emplace(path, static_cast<std::uint32_t>(modules_.size()));
  if (made) modules_.push_back(std::make_unique<Module>(path));
  return known->second;
}

std::optional<HostSites::Mapping> HostSites::KnownCode(const Process& process,
                                                       std::uint64_t address) {
  for (const Mapping& mapping : process.code)
    if (address - mapping.begin < mapping.end - mapping.begin) return mapping;
  return std::nullopt;
}

std::optional<HostSites::Mapping> HostSites::Find(pid_t pid, Process& process,
                                                  std::uint64_t address) {
  if (const std::optional<Mapping> known = KnownCode(process, address)) return known;
  // Perhaps a library that came later.
  if (process.misses.size() >= kMostSites || process.misses.contains(address / kPage))
    return std::nullopt;
  process.code.clear();
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    Mapping mapping;
    char access[5] = {};
    int at = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n",
                    &mapping.begin, &mapping.end, access, &mapping.offset, &at) < 4 ||
        at == 0 || line[static_cast<std::size_t>(at)] != '/' || access[2] != 'x')
      continue;
    mapping.module = ModuleOf(line.substr(static_cast<std::size_t>(at)));
    process.code.push_back(mapping);
  }
  const std::optional<Mapping> found = KnownCode(process, address);
  if (!found) process.misses.insert(address / kPage);
  return found;
}

node::SiteId HostSites::Intern(Raw raw) {
  if (raw.frames.empty()) return 0;
  if (const auto known = ids_.find(raw); known != ids_.end()) return known->second;
  if (raw_.size() >= kMostSites) return 0;
  const auto made = ids_.emplace(std::move(raw), static_cast<node::SiteId>(raw_.size())).first;
  raw_.push_back(&made->first);
  return made->second;
}

node::SiteId HostSites::OfCall(pid_t pid, std::span<const std::uint64_t> stack) {
  Process& process = processes_[pid];
  std::vector<std::uint64_t> key(stack.begin(), stack.end());
  if (const auto known = process.calls.find(key); known != process.calls.end())
    return known->second;
  Raw raw;
  for (const std::uint64_t address : stack) {
    // The call stands before the address that it returns to.
    const std::optional<Mapping> mapping = Find(pid, process, address - 1);
    if (!mapping) break;
    raw.frames.emplace_back(mapping->module, address - 1 - mapping->begin + mapping->offset);
  }
  const node::SiteId site = Intern(std::move(raw));
  if (process.calls.size() < kMostSites) process.calls.emplace(std::move(key), site);
  return site;
}

node::SiteId HostSites::OfAccess(pid_t pid, std::uint64_t pc, std::uint64_t caller,
                                 std::span<const std::uint64_t> above) {
  Process& process = processes_[pid];
  std::vector<std::uint64_t> key = {pc, 0};
  // In code without frame pointers these may be any words.
  for (const std::uint64_t address : above) {
    if (address == 0 || !KnownCode(process, address - 1)) break;
    key.push_back(address);
  }
  const std::vector<std::uint64_t> callers(key.begin() + 2, key.end());
  for (const std::uint64_t top : {std::uint64_t{0}, caller}) {
    key[1] = top;
    if (const auto known = process.accesses.find(key); known != process.accesses.end())
      return known->second;
  }
  Raw raw;
  raw.access = true;
  std::optional<Mapping> mapping = Find(pid, process, pc);
  const bool library = !mapping || OfSystem(modules_[mapping->module]->path());
  key[1] = library ? caller : 0;
  if (library) {
    if (const std::optional<Mapping> over = Find(pid, process, caller - 1)) {
      mapping = over;
      pc = caller - 1;
    }
  }
  const auto add = [&](const Mapping& of, std::uint64_t address) {
    raw.frames.emplace_back(of.module, address - of.begin + of.offset);
  };
  if (mapping) add(*mapping, pc);
  for (const std::uint64_t address : callers)
    if (const std::optional<Mapping> over = KnownCode(process, address - 1); over && mapping)
      add(*over, address - 1);
  const node::SiteId site = Intern(std::move(raw));
  if (process.accesses.size() < kMostSites) process.accesses.emplace(std::move(key), site);
  return site;
}

HostSites::Caller HostSites::CallerOf(node::SiteId id) const {
  Caller caller;
  if (id == 0 || id >= raw_.size()) return caller;
  caller.known = true;
  const std::vector<Frame>& frames = raw_[id]->frames;
  const auto path = [&](std::size_t i) { return modules_[frames[i].first]->path(); };
  std::size_t i = 0;
  while (i < frames.size() && OfShim(path(i))) ++i;
  caller.runtime = i > 0 && NameOf(path(i - 1)).starts_with("libcudart.so");
  while (i < frames.size() && OfSystem(path(i))) ++i;
  caller.library = i < frames.size() && OfLibrary(path(i));
  return caller;
}

void HostSites::Forget(pid_t pid) { processes_.erase(pid); }

const node::HostSite& HostSites::Of(node::SiteId id) {
  const auto [known, made] = resolved_.try_emplace(id);
  if (made && id != 0 && id < raw_.size()) known->second = Resolve(*raw_[id]);
  return known->second;
}

node::HostSite HostSites::Resolve(const Raw& raw) {
  node::HostSite site;
  std::size_t i = 0;
  // The shim's outermost frame is the function that the program has called.
  if (!raw.access) {
    while (i < raw.frames.size() && OfShim(modules_[raw.frames[i].first]->path())) ++i;
    if (i > 0)
      site.call = CallName(modules_[raw.frames[i - 1].first]->Symbol(raw.frames[i - 1].second));
  }
  bool stub = false;  // the last was nvcc's stub of a kernel: its wrapper is next
  for (; i < raw.frames.size() && site.frames.size() < kMostFrames; ++i) {
    Module& module = *modules_[raw.frames[i].first];
    if (OfSystem(module.path()) || OfShim(module.path())) continue;
    const std::string symbol = module.Symbol(raw.frames[i].second);
    if (symbol == "_start") break;
    const bool wrapper = stub;
    stub = symbol.find("__device_stub__") != std::string::npos;
    if (stub || wrapper) continue;
    for (node::HostFrame& frame : module.Frames(raw.frames[i].second)) {
      if (site.frames.size() == kMostFrames) continue;
      if (OfHeaders(frame.file)) {
        // The program calls a function of the headers, which calls another: cudaMallocHost.
        const std::string called = frame.function.substr(0, frame.function.find_first_of("<("));
        const std::size_t name = called.rfind(' ') + 1;  // behind a template's result
        if (site.frames.empty() && called.compare(name, 4, "cuda") == 0)
          site.call = called.substr(name);
        continue;
      }
      if (frame.function.find("__device_stub__") != std::string::npos) {
        stub = true;
        continue;
      }
      site.frames.push_back(std::move(frame));
    }
    if (symbol == "main") break;
  }
  return site;
}

}  // namespace allranks::server
