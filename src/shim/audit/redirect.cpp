// liballranks_audit.so: programs and libraries that carry the static CUDA runtime use ours.
//
// The dynamic linker loads this library beside the program (LD_AUDIT, rtld-audit(7)) and tells it
// of every object that it maps, at the start and by dlopen, before any of the object's code runs.
// An object whose symbol table has the static runtime gets a jump at the entry of each of the
// runtime's public functions, to the function of that name in our libcudart.so.13, which `allranks
// exec` preloads. Functions that ours lacks are left alone: they fail when they ask the driver for
// its private tables. A stripped object has no such names and is left alone, too.
//
// Everything changes in the memory of the process only, in private pages.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace {

using Address = std::uintptr_t;

constexpr std::string_view kRuntime = "libcudart.so.13";
// The static runtime's own functions are named so; a wrapper around the shared one has none.
constexpr std::string_view kStaticRuntime = "libcudart_static_";
constexpr std::size_t kJump = 5;          // bytes of jmp rel32
constexpr std::size_t kLongJump = 14;     // bytes of jmp *(rip), and the address
constexpr std::int64_t kReach = 1 << 30;  // how far from an object its long jumps may lie

// A file's sections, mapped to be read. Empty if it is not an object of this machine.
class ElfFile {
 public:
  explicit ElfFile(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat info;
    if (fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(Elf64_Ehdr))) {
      void* mapped =
          mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (mapped != MAP_FAILED)
        bytes_ = {static_cast<const char*>(mapped), static_cast<std::size_t>(info.st_size)};
    }
    close(fd);
  }
  ~ElfFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // Calls use(name, symbol) for each symbol of the table of this kind.
  template <typename Use>
  void ForEachSymbol(std::uint32_t table, Use use) const {
    if (bytes_.size() < sizeof(Elf64_Ehdr)) return;
    const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(bytes_.data());
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
      return;
    const auto sections = Array<Elf64_Shdr>(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
    for (const Elf64_Shdr& section : sections) {
      if (section.sh_type != table || section.sh_link >= sections.size()) continue;
      const Elf64_Shdr& names = sections[section.sh_link];
      const auto text = Array<char>(names.sh_offset, names.sh_size);
      if (text.empty() || text.back() != '\0') continue;
      for (const Elf64_Sym& symbol : Array<Elf64_Sym>(section.sh_offset, section.sh_size))
        if (symbol.st_name < text.size()) use(text.data() + symbol.st_name, symbol);
    }
  }

 private:
  template <typename T>
  std::span<const T> Array(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset || offset % alignof(T) != 0)
      return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), size / sizeof(T)};
  }

  std::span<const char> bytes_;
};

struct Function {
  std::string_view name;  // in memory that stays
  Address address;
};

bool IsFunction(const Elf64_Sym& symbol) {
  return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF;
}

const char* PathOf(const link_map& object) {
  return *object.l_name == '\0' ? "/proc/self/exe" : object.l_name;
}

// The exported functions of our runtime, by name.
class Runtime {
 public:
  void Load(const link_map& object) {
    // Kept, for its names.
    const auto* file = new ElfFile(PathOf(object));
    file->ForEachSymbol(SHT_DYNSYM, [&](const char* name, const Elf64_Sym& symbol) {
      if (IsFunction(symbol)) functions_.push_back({name, object.l_addr + symbol.st_value});
    });
    std::ranges::sort(functions_, {}, &Function::name);
  }

  bool loaded() const { return !functions_.empty(); }

  // 0 if there is none.
  Address Find(std::string_view name) const {
    const auto found = std::ranges::lower_bound(functions_, name, {}, &Function::name);
    return found != functions_.end() && found->name == name ? found->address : 0;
  }

 private:
  std::vector<Function> functions_;
};

struct Patch {
  Address at, to;
};

// What is to be redirected in an object: empty if it has no static runtime.
std::vector<Patch> PatchesOf(const link_map& object, const Runtime& runtime) {
  std::vector<Patch> patches;
  bool has_static_runtime = false;
  const ElfFile file(PathOf(object));
  file.ForEachSymbol(SHT_SYMTAB, [&](const char* name, const Elf64_Sym& symbol) {
    if (!IsFunction(symbol)) return;
    const std::string_view text = name;
    if (text.starts_with(kStaticRuntime)) has_static_runtime = true;
    if (!text.starts_with("cuda") && !text.starts_with("__cuda")) return;
    const Address to = runtime.Find(text);
    if (to != 0 && symbol.st_size >= kJump)
      patches.push_back({object.l_addr + symbol.st_value, to});
  });
  if (!has_static_runtime) patches.clear();
  return patches;
}

// A page or more that a jump from `near` reaches.
std::uint8_t* MapNear(Address near, std::size_t size) {
  constexpr std::int64_t kStep = 1 << 20;
  for (std::int64_t distance = kStep; distance < kReach; distance += kStep) {
    for (const std::int64_t offset : {distance, -distance}) {
      const Address at = (near + static_cast<Address>(offset)) & ~Address{0xfff};
      void* mapped = mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (mapped == reinterpret_cast<void*>(at)) return static_cast<std::uint8_t*>(mapped);
      if (mapped != MAP_FAILED) munmap(mapped, size);  // an old kernel took it for a hint
    }
  }
  return nullptr;
}

void Say(std::string_view what) {
  constexpr std::string_view kHead = "allranks: the program is not redirected: ";
  for (const std::string_view part : {kHead, what, std::string_view("\n")})
    if (write(STDERR_FILENO, part.data(), part.size()) < 0) return;
}

// Writes the jumps. The object's code has not run yet, so nobody executes what is written to.
void Redirect(const std::vector<Patch>& patches) {
  const auto [low, high] = std::ranges::minmax_element(patches, {}, &Patch::at);
  const Address page = ~Address{0xfff};
  const Address begin = low->at & page, end = (high->at + kJump + 0xfff) & page;
  const std::size_t room = (patches.size() * kLongJump + 0xfff) & page;
  std::uint8_t* far = MapNear(end, room);
  if (far == nullptr) return Say("no memory near its static CUDA runtime");
  void* const text = reinterpret_cast<void*>(begin);
  if (mprotect(text, end - begin, PROT_READ | PROT_WRITE) != 0) {
    mprotect(text, end - begin, PROT_READ | PROT_EXEC);
    munmap(far, room);
    return Say("its static CUDA runtime cannot be written to");
  }
  std::uint8_t* next = far;
  for (const Patch& patch : patches) {
    const std::uint8_t long_jump[] = {0xff, 0x25, 0, 0, 0, 0};
    std::memcpy(next, long_jump, sizeof long_jump);
    std::memcpy(next + sizeof long_jump, &patch.to, sizeof patch.to);
    auto* code = reinterpret_cast<std::uint8_t*>(patch.at);
    const auto distance = static_cast<std::int32_t>(next - (code + kJump));
    code[0] = 0xe9;
    std::memcpy(code + 1, &distance, sizeof distance);
    next += kLongJump;
  }
  if (mprotect(far, room, PROT_READ | PROT_EXEC) != 0 ||
      mprotect(text, end - begin, PROT_READ | PROT_EXEC) != 0) {
    Say("its static CUDA runtime cannot be executed any more: use --no-redirect");
    _exit(126);
  }
}

// Objects that were mapped and not looked at yet. The linker's lock protects all of it.
struct State {
  Runtime runtime;
  std::vector<const link_map*> mapped;
};

State& TheState() {
  static auto* state = new State;
  return *state;
}

void LookAtMapped() {
  State& state = TheState();
  for (const link_map* object : state.mapped)
    if (!state.runtime.loaded() && std::string_view(object->l_name).ends_with(kRuntime))
      state.runtime.Load(*object);
  if (!state.runtime.loaded()) return;
  std::vector<const link_map*> mapped;
  std::swap(mapped, state.mapped);
  for (const link_map* object : mapped) {
    if (std::string_view(object->l_name).ends_with(kRuntime)) continue;
    const std::vector<Patch> patches = PatchesOf(*object, state.runtime);
    if (!patches.empty()) Redirect(patches);
  }
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] unsigned la_version(unsigned version) {
  return std::min<unsigned>(version, LAV_CURRENT);
}

[[gnu::visibility("default")]] unsigned la_objopen(link_map* map, Lmid_t space,
                                                   std::uintptr_t* cookie) {
  *cookie = reinterpret_cast<std::uintptr_t>(map);
  if (space == LM_ID_BASE) TheState().mapped.push_back(map);
  return 0;
}

[[gnu::visibility("default")]] unsigned la_objclose(std::uintptr_t* cookie) {
  std::erase(TheState().mapped, reinterpret_cast<const link_map*>(*cookie));
  return 0;
}

[[gnu::visibility("default")]] void la_activity(std::uintptr_t*, unsigned flag) {
  if (flag == LA_ACT_CONSISTENT) LookAtMapped();
}

}  // extern "C"
