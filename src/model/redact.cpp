#include "model/redact.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace allranks::model {
namespace {

constexpr std::size_t kShortestSecret = 12;

}  // namespace

Redactor::Redactor(const std::vector<std::string>& secrets) {
  for (const std::string& secret : secrets) {
    if (secret.size() < kShortestSecret) continue;
    words_.push_back(secret);
    std::string escaped;
    for (const char c : secret) escaped += c == '/' ? std::string("\\/") : std::string(1, c);
    if (escaped != secret) words_.push_back(escaped);
  }
  // One may hold another: the longer first.
  std::sort(words_.begin(), words_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string Redactor::operator()(std::string text) const {
  for (const std::string& word : words_)
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;)
      text.replace(at, word.size(), "[key]");
  return text;
}

std::vector<std::string> SecretsOfEnvironment(const std::string& also) {
  std::vector<std::string> secrets;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (name == also || name.ends_with("_KEY") || name.ends_with("_TOKEN") ||
        name.find("SECRET") != std::string_view::npos ||
        name.find("PASSWORD") != std::string_view::npos)
      secrets.emplace_back(text.substr(equals + 1));
  }
  return secrets;
}

}  // namespace allranks::model
