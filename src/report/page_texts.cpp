#include "report/page_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/files.h"
#include "problem/prompt.h"

namespace allranks::report {
namespace {

constexpr std::size_t kLargestFile = 16u << 20;
constexpr int kMostMisses = 200;  // that do not fit: then no more is read of a big run's files

// Bytes that a text takes in the page, nearly: newlines, quotes, tabs and < are escaped.
std::size_t Cost(const std::string& text) {
  std::size_t cost = text.size() + 4;
  for (const char c : text) cost += c == '<' || c == '>' || c == '&' ? 5 : c < 0x20 || c == '"';
  return cost;
}

}  // namespace

PageTexts::PageTexts(std::size_t budget, const std::vector<std::filesystem::path>& roots)
    : budget_(budget) {
  std::error_code error;
  for (const std::filesystem::path& root : roots) {
    std::filesystem::path real = std::filesystem::canonical(root, error);
    if (!error) roots_.push_back(std::move(real));
  }
}

bool PageTexts::Inside(const std::filesystem::path& path) const {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return !error && std::any_of(roots_.begin(), roots_.end(), [&](const auto& root) {
    return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
  });
}

int PageTexts::WantFile(Weight weight, std::filesystem::path path, std::size_t limit) {
  wanted_.push_back({weight, std::move(path), "", limit});
  return static_cast<int>(wanted_.size()) - 1;
}

int PageTexts::WantText(Weight weight, std::string text, std::size_t limit) {
  wanted_.push_back({weight, "", std::move(text), limit});
  return static_cast<int>(wanted_.size()) - 1;
}

std::vector<PageTexts::Text> PageTexts::Take() const {
  std::vector<std::pair<Weight, int>> order;
  for (std::size_t i = 0; i < wanted_.size(); ++i)
    order.emplace_back(wanted_[i].weight, static_cast<int>(i));
  std::sort(order.begin(), order.end());

  std::vector<Text> texts(wanted_.size());
  std::unordered_map<std::string, int> known;
  std::size_t left = budget_;
  int misses = 0;
  for (const auto& [weight, number] : order) {
    const Wanted& wanted = wanted_[static_cast<std::size_t>(number)];
    Text& text = texts[static_cast<std::size_t>(number)];
    if (misses == kMostMisses) {
      text.kind = Text::Kind::kLeftOut;
      continue;
    }
    std::string whole = wanted.text;
    if (!wanted.path.empty() && Inside(wanted.path))
      whole = ReadWhole(wanted.path, kLargestFile).value_or("");
    if (wanted.path.filename() == "prompt.json") whole = ReadableMessages(whole);
    if (const std::filesystem::path source = wanted.path.parent_path() / "source.cu";
        wanted.path.filename() == "reply.txt" && Inside(source))
      whole = WithoutSource(std::move(whole), ReadWhole(source, kLargestFile).value_or(""));
    text.text = problem::Shortened(whole, wanted.limit);
    if (text.text.empty()) continue;
    const auto [same, fresh] = known.emplace(text.text, number);
    if (!fresh) {
      text = {Text::Kind::kSame, "", same->second};
      continue;
    }
    const std::size_t cost = Cost(text.text);
    if (cost > left) {
      known.erase(same);
      text = {Text::Kind::kLeftOut, "", 0};
      ++misses;
      continue;
    }
    left -= cost;
  }
  return texts;
}

std::string WithoutSource(std::string reply, std::string_view source) {
  while (!source.empty() && (source.back() == '\n' || source.back() == ' '))
    source.remove_suffix(1);
  if (const std::size_t at = reply.find(source); !source.empty() && at != std::string::npos)
    reply.erase(at, source.size());
  return reply;
}

std::string ReadableMessages(const std::string& json) {
  const nlohmann::json messages = nlohmann::json::parse(json, nullptr, false);
  if (!messages.is_array()) return json;
  std::string text;
  for (const nlohmann::json& message : messages) {
    if (!message.is_object()) continue;
    const auto role = message.find("role"), words = message.find("text");
    if (role == message.end() || words == message.end() || !role->is_string() ||
        !words->is_string())
      continue;
    if (!text.empty()) text += "\n\n";
    text += fmt::format("[{}]\n{}", role->get<std::string>(), words->get<std::string>());
  }
  return text;
}

}  // namespace allranks::report
