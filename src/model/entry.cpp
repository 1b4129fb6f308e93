// Names, identities and prices of models, and from a word of --models to an entry.
// entry_reader.cpp reads models.toml; make_model.cpp makes what can be asked.
#include "model/entry.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/words.h"
#include "problem/reader.h"

namespace allranks::model {
namespace {

constexpr std::size_t kLongestName = 80;  // escaped thrice as long: still a folder's name

Result<Entry> FromWord(const std::string& word) {
  Entry entry;
  entry.name = word;
  const auto take = [&](std::string_view prefix, Protocol protocol) {
    if (!word.starts_with(prefix)) return false;
    entry.protocol = protocol;
    entry.source = word.substr(prefix.size());
    return true;
  };
  if (word == "oracle" || word == "nop") {
    entry.protocol = Protocol::kMaterial;
    entry.source = word;
  } else if (!take("material:", Protocol::kMaterial) && !take("replay:", Protocol::kReplay) &&
             !take("command:", Protocol::kCommand)) {
    return Fail("no such word");
  }
  if (entry.protocol == Protocol::kMaterial &&
      std::find(MaterialKinds().begin(), MaterialKinds().end(), entry.source) ==
          MaterialKinds().end()) {
    return Fail("'{}': unknown material; the kinds are {}{}", word, problem::Join(MaterialKinds()),
                problem::DidYouMean(entry.source, MaterialKinds()));
  }
  if (entry.source.empty())
    return Fail("'{}': {} is missing after the colon", word,
                entry.protocol == Protocol::kReplay ? "a folder" : "a shell line");
  if (entry.protocol == Protocol::kReplay) {
    std::error_code error;
    if (!std::filesystem::is_directory(entry.source, error))
      return Fail("'{}': no such folder: {}", word, entry.source);
    // The same folder from wherever the run goes on.
    entry.source = std::filesystem::absolute(entry.source).lexically_normal().string();
  }
  if (entry.protocol == Protocol::kCommand) {
    entry.check_tool = true;
    entry.concurrency = kCommandConcurrency;
  }
  return entry;
}

bool IsWord(const std::string& word) {
  return word == "oracle" || word == "nop" || word.starts_with("material:") ||
         word.starts_with("replay:") || word.starts_with("command:");
}

}  // namespace

const char* NameOf(Protocol protocol) {
  switch (protocol) {
    case Protocol::kOpenAiResponses:
      return "openai-responses";
    case Protocol::kOpenAiChat:
      return "openai-chat";
    case Protocol::kAnthropic:
      return "anthropic";
    case Protocol::kGemini:
      return "gemini";
    case Protocol::kCommand:
      return "command";
    case Protocol::kReplay:
      return "replay";
    case Protocol::kMaterial:
      return "material";
  }
  return "?";
}

const std::vector<std::string>& MaterialKinds() {
  static const std::vector<std::string> kKinds = {"references", "mixture", "baselines", "oracle",
                                                  "nop"};
  return kKinds;
}

bool IsModelName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("._-:/@+").find(c) != std::string_view::npos;
         });
}

bool IsHttp(Protocol protocol) {
  return protocol != Protocol::kCommand && protocol != Protocol::kReplay &&
         protocol != Protocol::kMaterial;
}

std::string TemperatureFault(const Entry& entry) {
  constexpr double kMostOfAnthropic = 1;
  const Parameters& parameters = entry.parameters;
  if (!parameters.temperature) return "";
  if (!entry.accepts_temperature)
    return "its provider accepts no temperature for it (accepts_temperature = false in "
           "models.toml)";
  const bool anthropic = entry.protocol == Protocol::kAnthropic;
  if (anthropic && !parameters.effort.empty())
    return "effort and temperature exclude each other: Anthropic accepts no temperature for a "
           "model that thinks";
  if (anthropic && *parameters.temperature > kMostOfAnthropic)
    return "Anthropic's temperatures are from 0 to 1";
  // `extra` is merged into the request last.
  const auto extra = nlohmann::json::parse(parameters.extra, nullptr, false);
  for (const char* path : {"/temperature", "/generationConfig/temperature"})
    if (extra.is_object() && extra.contains(nlohmann::json::json_pointer(path)))
      return "its parameters.extra sets a temperature, too";
  return "";
}

std::string IdentityOf(const Entry& entry) {
  // nlohmann's objects are sorted by key and its numbers are the shortest that read back the same,
  // so equal entries give equal texts.
  nlohmann::json all = {{"protocol", NameOf(entry.protocol)}};
  switch (entry.protocol) {
    case Protocol::kCommand:
      all["command"] = entry.source;
      all["check"] = entry.check_tool;
      all["seconds"] = entry.seconds.count();
      break;
    case Protocol::kReplay:
      all["folder"] = entry.source;
      break;
    case Protocol::kMaterial:
      all["material"] = entry.source;
      break;
    default: {
      const Parameters& p = entry.parameters;
      all["endpoint"] = entry.endpoint;
      all["model"] = entry.model;
      all["max_output_tokens"] = p.max_output_tokens;
      if (p.temperature) all["temperature"] = *p.temperature;
      if (p.top_p) all["top_p"] = *p.top_p;
      if (!p.effort.empty()) all["effort"] = p.effort;
      if (!p.extra.empty()) {
        nlohmann::json extra = nlohmann::json::parse(p.extra, nullptr, false);
        if (extra.is_discarded()) extra = p.extra;
        all["extra"] = std::move(extra);
      }
    }
  }
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Entry> FindModel(const std::string& word, const std::vector<Entry>& known) {
  const auto find = [&](const std::string& name) {
    return std::find_if(known.begin(), known.end(),
                        [&](const Entry& entry) { return entry.name == name; });
  };
  // A shell line may hold '=' itself: only a plain name before the first one gives a name.
  std::string name, rest = word;
  if (const std::size_t equals = word.find('='); equals != std::string::npos && !IsWord(word)) {
    name = word.substr(0, equals);
    rest = word.substr(equals + 1);
    if (!IsModelName(name))
      return Fail("'{}' cannot name a model: use 1 to {} characters of A-Z a-z 0-9 . _ - : / @ +",
                  name, kLongestName);
  }
  if (const auto entry = find(rest); entry != known.end()) {
    Entry found = *entry;
    if (!name.empty()) found.name = name;
    return found;
  }
  if (IsWord(rest)) {
    Result<Entry> entry = FromWord(rest);
    if (!entry) return entry;
    if (!name.empty()) entry->name = name;
    if (entry->name.size() > kLongestName)
      return Fail("'{}' is too long for a name: give the model another name, as in my-name={}...",
                  rest, rest.substr(0, 20));
    return entry;
  }
  std::vector<std::string> names;
  for (const Entry& entry : known) names.push_back(entry.name);
  return Fail(
      "no model named '{}'{}; the models are {}{}oracle, nop, material:KIND, replay:FOLDER and "
      "command:LINE",
      rest, problem::DidYouMean(rest, names), problem::Join(names), names.empty() ? "" : ", ");
}

double DollarsOf(const Price& price, const Usage& usage) {
  if (!price.known) return 0;
  const std::uint64_t cached = std::min(usage.cached_input, usage.input);
  return (static_cast<double>(usage.input - cached) * price.input +
          static_cast<double>(cached) * price.cached_input +
          static_cast<double>(usage.output) * price.output) /
         1e6;
}

}  // namespace allranks::model
