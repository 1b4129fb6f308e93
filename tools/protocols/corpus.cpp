// See corpus.h.
#include "protocols/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "common/run.h"

namespace allranks::protocols {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kGroup = 5;  // files that are compiled together

std::string Trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Protocol Read(const fs::path& path) {
  Protocol protocol;
  protocol.path = path;
  protocol.name = path.stem();
  protocol.folder = path.parent_path().filename();
  protocol.variants.push_back({});
  std::istringstream lines(tools::ReadText(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#include <")) protocol.includes.push_back(line);
    if (!line.starts_with("// ")) continue;
    std::istringstream words(line.substr(3));
    std::string word;
    words >> word;
    if (word == "RANKS") words >> protocol.ranks;
    if (word == "ARGS")
      while (words >> word) protocol.arguments.push_back(word);
    if (word == "MISSED") {
      int number = 0;
      words >> number;
      for (Variant& variant : protocol.variants) variant.missed |= variant.number == number;
    }
    if (word != "EXPECT") continue;
    Variant variant;
    if (!(words >> variant.number >> variant.kinds)) continue;
    if (variant.kinds.ends_with(':')) variant.kinds.pop_back();
    std::getline(words, variant.why);
    variant.why = Trimmed(variant.why);
    if (variant.number == 0) {
      protocol.variants[0] = variant;
    } else {
      protocol.variants.push_back(variant);
    }
  }
  std::sort(protocol.includes.begin(), protocol.includes.end());
  return protocol;
}

// The file's text for a namespace of its own: without includes, lines keep their numbers.
std::string Body(const std::string& text, std::set<std::string>* macros) {
  std::istringstream lines(text);
  std::string body;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#include")) line.clear();
    if (line.starts_with("#define ")) {
      const std::string name = line.substr(8, line.find_first_of(" (", 8) - 8);
      macros->insert(name);
    }
    body += line + "\n";
  }
  return body;
}

}  // namespace

bool Variant::correct() const {
  return kinds == "none" || kinds == "portability" || kinds == "none|portability" ||
         kinds == "portability|none";
}

bool Variant::open() const { return !correct() && kinds.find("portability") != std::string::npos; }

std::vector<Protocol> Find(const std::vector<fs::path>& paths) {
  std::vector<Protocol> all;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      all.push_back(Read(path));
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
      if (entry.path().extension() == ".cu") all.push_back(Read(entry.path()));
  }
  std::sort(all.begin(), all.end(),
            [](const Protocol& a, const Protocol& b) { return a.path < b.path; });
  return all;
}

std::string Joined(const std::vector<const Protocol*>& protocols) {
  std::set<std::string> includes;
  for (const Protocol* protocol : protocols)
    includes.insert(protocol->includes.begin(), protocol->includes.end());
  std::string text = "#include \"common.h\"\n#include <cstring>\n#undef BUG\n";
  for (const std::string& line : includes) text += line + "\n";
  std::string choose;
  for (const Protocol* protocol : protocols) {
    const std::string source = tools::ReadText(protocol->path);
    for (const Variant& variant : protocol->variants) {
      const std::string name =
          fmt::format("{}_{}_{}", protocol->folder, protocol->name, variant.number);
      std::set<std::string> macros;
      const std::string body = Body(source, &macros);
      text += fmt::format("#define BUG {}\nnamespace {} {{\n#line 1 \"{}\"\n{}\n}}\n#undef BUG\n",
                          variant.number, name, protocol->path.string(), body);
      for (const std::string& macro : macros) text += fmt::format("#undef {}\n", macro);
      choose += fmt::format(
          "  if (std::strcmp(argv[1], \"{}/{}:{}\") == 0) return Run({}::main, argc, argv);\n",
          protocol->folder, protocol->name, variant.number, name);
    }
  }
  return text + R"(#line 1 "choose"
static int Run(int (*program)(int, char**), int argc, char** argv) {
  return program(argc - 1, argv + 1);
}
static int Run(int (*program)(), int, char**) { return program(); }
int main(int argc, char** argv) {
  if (argc < 2) return 2;
)" + choose +
         "  return 2;\n}\n";
}

std::vector<std::vector<const Protocol*>> Groups(const std::vector<Protocol>& protocols) {
  std::map<std::vector<std::string>, std::vector<const Protocol*>> alike;
  for (const Protocol& protocol : protocols) alike[protocol.includes].push_back(&protocol);
  std::vector<std::vector<const Protocol*>> groups;
  for (const auto& [includes, members] : alike) {
    for (std::size_t i = 0; i < members.size(); i += kGroup)
      groups.emplace_back(
          members.begin() + static_cast<std::ptrdiff_t>(i),
          members.begin() + static_cast<std::ptrdiff_t>(std::min(members.size(), i + kGroup)));
  }
  return groups;
}

}  // namespace allranks::protocols
