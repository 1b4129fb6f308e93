// `allranks api`. What it says cannot be untrue: it reads the very libraries that programs are
// given. Each has a table of all its functions with the error that a stub of that name returns, and
// a stub is a weak symbol which an implementation replaces by an ordinary one.
#include "cli/api.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "base/result.h"
#include "base/words.h"
#include "cli/exec.h"
#include "cli/places.h"

namespace allranks::cli {
namespace {

struct Function {
  std::string name;
  bool works = false;
  int error = 0;
};

struct Symbol {
  bool weak = false;
  std::string_view bytes;  // of data
};

// The dynamic symbols of a shared object, each with its bytes in the file.
Result<std::map<std::string, Symbol>> Symbols(const std::string& path, const std::string& file) {
  const auto broken = [&] { return Fail("{} is not a shared object", path); };
  Elf64_Ehdr header;
  if (file.size() < sizeof header) return broken();
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return broken();
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  const std::size_t table = sections.size() * sizeof(Elf64_Shdr);
  if (header.e_shoff > file.size() || table > file.size() - header.e_shoff) return broken();
  std::memcpy(sections.data(), file.data() + header.e_shoff, table);
  const auto bytes = [&](std::uint64_t offset, std::uint64_t size) {
    const bool inside = offset <= file.size() && size <= file.size() - offset;
    return inside ? std::string_view(file).substr(offset, size) : std::string_view();
  };
  std::map<std::string, Symbol> symbols;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const std::string_view entries = bytes(section.sh_offset, section.sh_size);
    const Elf64_Shdr& strings = sections[section.sh_link];
    const std::string_view names = bytes(strings.sh_offset, strings.sh_size);
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= entries.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym entry;
      std::memcpy(&entry, entries.data() + at, sizeof entry);
      if (entry.st_shndx == SHN_UNDEF || entry.st_shndx >= sections.size() ||
          entry.st_name >= names.size()) {
        continue;
      }
      Symbol symbol;
      symbol.weak = ELF64_ST_BIND(entry.st_info) == STB_WEAK;
      const Elf64_Shdr& home = sections[entry.st_shndx];
      if (home.sh_type != SHT_NOBITS && entry.st_value >= home.sh_addr)
        symbol.bytes = bytes(home.sh_offset + (entry.st_value - home.sh_addr), entry.st_size);
      const std::string_view name = names.substr(entry.st_name);
      symbols[std::string(name.substr(0, name.find('\0')))] = symbol;
    }
  }
  return symbols;
}

// `table`: the symbol whose text has a line "name error" for each function.
Result<std::vector<Function>> Functions(const std::string& path, const std::string& table) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return Fail("cannot read {}", path);
  const std::string file((std::istreambuf_iterator<char>(stream)), {});
  const auto symbols = Symbols(path, file);
  if (!symbols) return Fail("{}", symbols.error().message);
  const auto found = symbols->find(table);
  if (found == symbols->end()) return Fail("{} has no function table", path);
  std::istringstream rows{std::string(found->second.bytes)};
  std::vector<Function> functions;
  Function function;
  while (rows >> function.name >> function.error) {
    const auto symbol = symbols->find(function.name);
    function.works = symbol != symbols->end() && !symbol->second.weak;
    functions.push_back(function);
  }
  return functions;
}

struct Library {
  const char* api;
  const char* file;
  const char* table;
  std::vector<Function> functions;
};

struct ErrorNames {
  int number;
  const char* driver;
  const char* runtime;
};
constexpr ErrorNames kErrors[] = {
#define ALLRANKS_ERROR(number, driver, runtime, text) {number, driver, runtime},
#include "shim/errors.inc"
#undef ALLRANKS_ERROR
};

std::string ErrorName(const Library& library, int error) {
  for (const ErrorNames& names : kErrors) {
    if (names.number != error) continue;
    const char* name = std::strcmp(library.api, "driver") == 0 ? names.driver : names.runtime;
    if (name != nullptr) return name;
  }
  return std::to_string(error);
}

std::size_t Working(const Library& library) {
  std::size_t count = 0;
  for (const Function& function : library.functions) count += function.works;
  return count;
}

void PrintJson(const std::vector<Library>& libraries, const ApiOptions& options) {
  nlohmann::json all = {{"version", 1}};
  nlohmann::json functions = nlohmann::json::array();
  for (const Library& library : libraries) {
    all[library.api] = {{"library", library.file},
                        {"functions", library.functions.size()},
                        {"work", Working(library)}};
    for (const Function& function : library.functions) {
      if (options.missing && function.works) continue;
      if (function.name.find(options.filter) == std::string::npos) continue;
      nlohmann::json entry = {
          {"api", library.api}, {"name", function.name}, {"works", function.works}};
      if (!function.works) entry["error"] = ErrorName(library, function.error);
      functions.push_back(std::move(entry));
    }
  }
  all["functions"] = std::move(functions);
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

int Api(const ApiOptions& options) {
  const auto folder = FindShim();
  if (!folder) {
    fmt::print(stderr, "allranks: {}\n", folder.error().message);
    return kExitInternal;
  }
  std::vector<Library> libraries = {{"runtime", "libcudart.so.13", "cudaArStubErrors", {}},
                                    {"driver", "libcuda.so.1", "ar_stub_errors", {}}};
  for (Library& library : libraries) {
    auto functions = Functions(*folder + "/" + library.file, library.table);
    if (!functions) {
      fmt::print(stderr, "allranks: {}\n", functions.error().message);
      return kExitInternal;
    }
    library.functions = std::move(*functions);
  }
  std::vector<std::string> names;
  bool any = options.filter.empty();
  for (const Library& library : libraries) {
    for (const Function& function : library.functions) {
      names.push_back(function.name);
      any = any || function.name.find(options.filter) != std::string::npos;
    }
  }
  if (!any)
    fmt::print(stderr, "allranks: no function has '{}' in its name{}\n", options.filter,
               DidYouMean(options.filter, names));
  if (options.json) {
    PrintJson(libraries, options);
    return any ? 0 : 1;
  }
  for (const Library& library : libraries) {
    for (const Function& function : library.functions) {
      if (options.missing && function.works) continue;
      if (function.name.find(options.filter) == std::string::npos) continue;
      fmt::print("{:<56} {}\n", function.name,
                 function.works ? "works" : ErrorName(library, function.error));
    }
  }
  for (const Library& library : libraries) {
    fmt::print("{} API ({}): {} of {} functions work\n", library.api, library.file,
               Working(library), library.functions.size());
  }
  return any ? 0 : 1;
}

}  // namespace allranks::cli
