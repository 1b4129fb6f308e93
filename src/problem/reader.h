// Reading TOML so that its author is helped: every fault of a file is gathered, with line, key and
// what was expected; a key that nobody asked for is refused, with the nearest one that exists.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"

namespace allranks::problem {

class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}

  template <class... Args>
  void Add(const toml::node* where, fmt::format_string<Args...> format, Args&&... args) {
    Note(where, fmt::format(format, std::forward<Args>(args)...));
  }
  bool Any() const { return !text_.empty(); }
  const std::string& Text() const { return text_; }

 private:
  void Note(const toml::node* where, const std::string& message);

  std::string file_;
  std::string text_;
};

using allranks::DidYouMean;
using allranks::Join;
using allranks::Nearest;
// A name that C++ and shells take as it is: [a-z][a-z0-9_]*.
bool IsName(std::string_view text);

class Section {
 public:
  enum Need { kRequired, kOptional };

  // Without a table nothing is read: that it is missing has been noted.
  Section(const toml::table* table, std::string name, Faults* faults)
      : table_(table), name_(std::move(name)), faults_(faults) {}

  // Each leaves *out as it is if the key is absent or wrong; whether it was read is returned.
  bool Int(const char* key, int* out, std::int64_t low, std::int64_t high, Need need = kOptional);
  bool Flag(const char* key, bool* out);
  bool Text(const char* key, std::string* out, Need need = kRequired);
  bool OneOf(const char* key, std::string* out, const std::vector<std::string>& known,
             Need need = kRequired);
  bool Texts(const char* key, std::vector<std::string>* out, Need need = kOptional);
  bool SomeOf(const char* key, std::vector<std::string>* out, const std::vector<std::string>& known,
              Need need = kOptional);
  const toml::table* Table(const char* key, Need need);
  const toml::node* Find(const char* key, Need need, std::string_view expected);

  // All keys as they stand in the file; they count as asked for.
  std::vector<std::pair<std::string, const toml::node*>> InOrder();
  // Call after every key has been asked for.
  void RejectOthers();
  void Wrong(const toml::node* node, std::string_view key, std::string_view expected);
  std::string Path(std::string_view key) const;
  const toml::node* node() const { return table_; }
  Faults& faults() { return *faults_; }

 private:
  const toml::table* table_;
  std::string name_;
  Faults* faults_;
  std::set<std::string> asked_;
};

}  // namespace allranks::problem
