#include "node/hardware/profile_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/words.h"

namespace allranks::node {
namespace {

constexpr int kMostExtended = 4;

Result<toml::table> ReadToml(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return Fail("{}: cannot be opened; a profile is a TOML file such as profiles/*.toml", path);
  std::ostringstream text;
  text << in.rdbuf();
  if (in.bad() || text.bad()) return Fail("{}: cannot be read", path);
  return ParseToml(text.str(), path);
}

// Puts what `base` has and `table` has not into `table`, section by section.
void Inherit(toml::table* table, const toml::table& base) {
  for (const auto& [key, node] : base) {
    toml::node* own = table->get(key);
    if (own == nullptr) {
      table->insert(key, node);
    } else if (own->is_table() && node.is_table()) {
      Inherit(own->as_table(), *node.as_table());
    }
  }
}

}  // namespace

Result<toml::table> ParseToml(std::string_view text, const std::string& origin) {
  try {
    return toml::parse(text, origin);
  } catch (const toml::parse_error& error) {
    return Fail("{}:{}: not valid TOML: {}", origin, error.source().begin.line,
                error.description());
  }
}

Result<toml::table> ReadProfileFile(const std::string& path) {
  auto file = ReadToml(path);
  if (!file) return Fail(file.error());
  for (int depth = 0; file->contains("extends"); ++depth) {
    const toml::node* extends = file->get("extends");
    const auto* name = extends->as_string();
    // A name only, not a path: it stands beside this file.
    if (name == nullptr || name->get().empty() || name->get().find('/') != std::string::npos) {
      return Fail("{}:{}: extends is not the name of another profile", path,
                  extends->source().begin.line);
    }
    if (depth == kMostExtended) return Fail("{}: extends {} others or itself", path, depth);
    const std::filesystem::path beside =
        std::filesystem::path(path).parent_path() / (name->get() + ".toml");
    std::error_code error;
    if (!std::filesystem::is_regular_file(beside, error)) {
      std::vector<std::string> known;
      for (const auto& one : std::filesystem::directory_iterator(beside.parent_path(), error))
        if (one.path().extension() == ".toml") known.push_back(one.path().stem().string());
      return Fail("{}:{}: extends \"{}\", but there is no {}.toml in the folder of this profile{}",
                  path, extends->source().begin.line, name->get(), name->get(),
                  DidYouMean(name->get(), known));
    }
    auto base = ReadToml(beside.string());
    if (!base) return Fail("{}: extends: {}", path, base.error().message);
    file->erase("extends");
    Inherit(&*file, *base);
  }
  return file;
}

}  // namespace allranks::node
