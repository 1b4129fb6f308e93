// Faults and sections of a TOML file.
#include "problem/reader.h"

#include <algorithm>
#include <sstream>

namespace allranks::problem {

void Faults::Note(const toml::node* where, const std::string& message) {
  if (!text_.empty()) text_ += '\n';
  text_ += file_;
  if (where != nullptr && where->source().begin.line > 0)
    text_ += fmt::format(":{}", where->source().begin.line);
  text_ += ": " + message;
}

bool IsName(std::string_view text) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  if (text.empty() || text.size() > 64 || !lower(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_'; });
}

std::string Section::Path(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("[{}] {}", name_, key);
}

const toml::node* Section::Find(const char* key, Need need, std::string_view expected) {
  if (table_ == nullptr) return nullptr;
  asked_.insert(key);
  const toml::node* node = table_->get(key);
  if (node == nullptr && need == kRequired)
    faults_->Add(name_.empty() ? nullptr : table_, "{} is missing: expected {}", Path(key),
                 expected);
  return node;
}

void Section::Wrong(const toml::node* node, std::string_view key, std::string_view expected) {
  std::ostringstream value;
  node->visit([&](const auto& concrete) {
    if constexpr (toml::is_table<decltype(concrete)>) {
      value << "a table";
    } else {
      value << concrete;
    }
  });
  faults_->Add(node, "{} is {}: expected {}", Path(key), value.str(), expected);
}

bool Section::Int(const char* key, int* out, std::int64_t low, std::int64_t high, Need need) {
  const std::string expected = fmt::format("an integer from {} to {}", low, high);
  const toml::node* node = Find(key, need, expected);
  if (node == nullptr) return false;
  const auto* value = node->as_integer();
  if (value == nullptr || value->get() < low || value->get() > high) {
    Wrong(node, key, expected);
    return false;
  }
  *out = static_cast<int>(value->get());
  return true;
}

bool Section::Flag(const char* key, bool* out) {
  const toml::node* node = Find(key, kOptional, "");
  if (node == nullptr) return false;
  const auto* value = node->as_boolean();
  if (value == nullptr) {
    Wrong(node, key, "true or false");
    return false;
  }
  *out = value->get();
  return true;
}

bool Section::Text(const char* key, std::string* out, Need need) {
  const char* expected = "a string that is not empty";
  const toml::node* node = Find(key, need, expected);
  if (node == nullptr) return false;
  const auto* value = node->as_string();
  if (value == nullptr || value->get().empty()) {
    Wrong(node, key, expected);
    return false;
  }
  *out = value->get();
  return true;
}

bool Section::OneOf(const char* key, std::string* out, const std::vector<std::string>& known,
                    Need need) {
  const std::string expected = "one of " + Join(known);
  const toml::node* node = Find(key, need, expected);
  if (node == nullptr) return false;
  const auto* value = node->as_string();
  if (value == nullptr || std::find(known.begin(), known.end(), value->get()) == known.end()) {
    Wrong(node, key,
          expected + (value == nullptr ? std::string() : DidYouMean(value->get(), known)));
    return false;
  }
  *out = value->get();
  return true;
}

bool Section::Texts(const char* key, std::vector<std::string>* out, Need need) {
  const char* expected = "a list of strings";
  const toml::node* node = Find(key, need, expected);
  if (node == nullptr) return false;
  std::vector<std::string> texts;
  bool good = node->is_array();
  if (good) {
    for (const toml::node& element : *node->as_array()) {
      good = good && element.is_string();
      if (good) texts.push_back(element.as_string()->get());
    }
  }
  if (!good) {
    Wrong(node, key, expected);
    return false;
  }
  *out = std::move(texts);
  return true;
}

bool Section::SomeOf(const char* key, std::vector<std::string>* out,
                     const std::vector<std::string>& known, Need need) {
  std::vector<std::string> texts;
  if (!Texts(key, &texts, need)) return false;
  for (const std::string& text : texts) {
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      faults_->Add(table_->get(key), "{} has '{}': expected some of {}{}", Path(key), text,
                   Join(known), DidYouMean(text, known));
      return false;
    }
  }
  *out = std::move(texts);
  return true;
}

const toml::table* Section::Table(const char* key, Need need) {
  const toml::node* node = Find(key, need, "a section");
  if (node != nullptr && !node->is_table()) Wrong(node, key, "a section");
  return node == nullptr ? nullptr : node->as_table();
}

std::vector<std::pair<std::string, const toml::node*>> Section::InOrder() {
  // A table of toml++ is sorted by name; only places in the file tell the author's order.
  std::vector<std::pair<std::string, const toml::node*>> all;
  if (table_ == nullptr) return all;
  for (const auto& [key, node] : *table_) {
    asked_.insert(std::string(key.str()));
    all.emplace_back(std::string(key.str()), &node);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto& x = a.second->source().begin;
    const auto& y = b.second->source().begin;
    return std::pair(x.line, x.column) < std::pair(y.line, y.column);
  });
  return all;
}

void Section::RejectOthers() {
  if (table_ == nullptr) return;
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const auto& [key, node] : *table_) {
    if (asked_.contains(std::string(key.str()))) continue;
    const std::string hint = DidYouMean(key.str(), known);
    faults_->Add(&node, "{} is not a key of this section{}", Path(key.str()),
                 hint.empty() ? "; it has " + Join(known) : hint);
  }
}

}  // namespace allranks::problem
