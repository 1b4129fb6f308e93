// Reads models.toml. Tables of providers hold what their models share; a model's own keys win.
// Nothing is guessed: an unknown key, a value of another type and a missing one are all faults, and
// all of a file's faults are told at once.
#include <toml++/toml.h>
#include <algorithm>
#include <string_view>

#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "model/entry.h"
#include "model/words.h"
#include "problem/reader.h"

namespace allranks::model {
namespace {

// A hint for "localhost:8000/v1". Nothing else of a wrong endpoint is repeated: it may hold a key.
std::string WithScheme(std::string_view endpoint) {
  const std::size_t colon = endpoint.find(':');
  const std::size_t end = std::min(endpoint.find('/'), endpoint.size());
  if (colon == 0 || colon >= end || end - colon > 6 || colon + 1 == end) return "";
  const std::string_view host = endpoint.substr(0, colon),
                         port = endpoint.substr(colon + 1, end - colon - 1);
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || c == '.'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool name =
      std::all_of(host.begin(), host.end(), plain) ||
      std::all_of(host.begin(), host.end(), [&](char c) { return digit(c) || c == '.'; });
  if (!name || !std::all_of(port.begin(), port.end(), digit)) return "";
  return fmt::format(" (did you mean http://{}:{}/...?)", host, port);
}

using problem::Faults;
using problem::Section;

constexpr std::size_t kLargestFile = 4 << 20;
constexpr int kSchema = 1;

const std::vector<std::string>& ProtocolNames() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> all;
    for (int i = 0; i <= static_cast<int>(Protocol::kMaterial); ++i)
      all.emplace_back(NameOf(static_cast<Protocol>(i)));
    return all;
  }();
  return kNames;
}

// A number, integer or not.
bool Number(Section& section, const char* key, double* out, double low, double high,
            Section::Need need = Section::kOptional) {
  const std::string expected = fmt::format("a number from {} to {}", low, high);
  const toml::node* node = section.Find(key, need, expected);
  if (node == nullptr) return false;
  const auto value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value || !std::isfinite(*value) || *value < low || *value > high) {
    section.Wrong(node, key, expected);
    return false;
  }
  *out = *value;
  return true;
}

void Seconds(Section& section, const char* key, std::chrono::milliseconds* out, double high) {
  double seconds = 0;
  if (Number(section, key, &seconds, 0.001, high))
    *out = std::chrono::milliseconds(std::llround(seconds * 1e3));
}

// What TOML can say and JSON too. Dates are no JSON; depth is bounded by toml++.
Result<nlohmann::json> ToJson(const toml::node& node) {
  if (const auto* text = node.as_string()) return nlohmann::json(text->get());
  if (const auto* number = node.as_integer()) return nlohmann::json(number->get());
  if (const auto* flag = node.as_boolean()) return nlohmann::json(flag->get());
  if (const auto* number = node.as_floating_point()) {
    if (!std::isfinite(number->get())) return Fail("JSON has no infinity and no NaN");
    return nlohmann::json(number->get());
  }
  if (const auto* list = node.as_array()) {
    nlohmann::json all = nlohmann::json::array();
    for (const toml::node& one : *list) {
      auto value = ToJson(one);
      if (!value) return value;
      all.push_back(std::move(*value));
    }
    return all;
  }
  if (const auto* table = node.as_table()) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto& [key, one] : *table) {
      auto value = ToJson(one);
      if (!value) return value;
      all[std::string(key.str())] = std::move(*value);
    }
    return all;
  }
  return Fail("JSON has no dates and times");
}

void ReadParameters(const toml::table* table, const std::string& name, Faults* faults,
                    Parameters* out) {
  Section section(table, name, faults);
  double number = 0;
  if (Number(section, "temperature", &number, 0, 2)) out->temperature = number;
  if (Number(section, "top_p", &number, 0, 1)) out->top_p = number;
  section.Text("effort", &out->effort, Section::kOptional);
  section.Int("max_output_tokens", &out->max_output_tokens, 1, 10'000'000);
  section.OneOf("max_tokens_field", &out->max_tokens_field, {"max_tokens", "max_completion_tokens"},
                Section::kOptional);
  section.Flag("stream", &out->stream);
  if (const toml::node* node = section.Find("extra", Section::kOptional, "")) {
    if (!node->is_table()) {
      section.Wrong(node, "extra", "a table, which is merged into the request");
    } else if (const auto json = ToJson(*node); !json) {
      faults->Add(node, "{}: {}", section.Path("extra"), json.error().message);
    } else {
      out->extra = json->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
  }
  section.RejectOthers();
}

void ReadRetry(const toml::table* table, const std::string& name, Faults* faults,
               RetryPolicy* out) {
  Section section(table, name, faults);
  section.Int("attempts", &out->attempts, 1, 100);
  Seconds(section, "base", &out->base, 3600);
  Seconds(section, "cap", &out->cap, 86'400);
  Seconds(section, "longest_retry_after", &out->longest_retry_after, 86'400);
  Seconds(section, "connect", &out->connect, 3600);
  Seconds(section, "stall", &out->stall, 86'400);
  Seconds(section, "total", &out->total, 7 * 86'400);
  section.RejectOthers();
}

void ReadPrice(const toml::table* table, const std::string& name, Faults* faults, Price* out) {
  if (table == nullptr) return;
  Section section(table, name, faults);
  constexpr double kHigh = 1e6;
  const bool input = Number(section, "input", &out->input, 0, kHigh, Section::kRequired);
  const bool output = Number(section, "output", &out->output, 0, kHigh, Section::kRequired);
  if (!Number(section, "cached_input", &out->cached_input, 0, kHigh))
    out->cached_input = out->input;
  out->known = input && output;
  section.RejectOthers();
}

// What providers and models both may say.
void ReadShared(Section& section, const std::string& name, Entry* out) {
  Faults* faults = &section.faults();
  std::string protocol;
  if (section.OneOf("protocol", &protocol, ProtocolNames(), Section::kOptional)) {
    for (int i = 0; i <= static_cast<int>(Protocol::kMaterial); ++i)
      if (protocol == NameOf(static_cast<Protocol>(i))) out->protocol = static_cast<Protocol>(i);
  }
  if (section.Text("endpoint", &out->endpoint, Section::kOptional)) {
    while (out->endpoint.ends_with('/')) out->endpoint.pop_back();
    if (const auto fault = EndpointFault(out->endpoint); !fault.empty())
      faults->Add(section.Find("endpoint", Section::kOptional, ""), "{}: expected {}{}",
                  section.Path("endpoint"), fault, WithScheme(out->endpoint));
  }
  const toml::node* key = section.Find("key", Section::kOptional, "");
  if (key != nullptr) {
    const auto* text = key->as_string();
    if (text == nullptr || !IsVariable(text->get())) {
      // What stands there may be a key itself: it is not repeated.
      faults->Add(key, "{}: expected the name of an environment variable, as in \"OPENAI_API_KEY\"",
                  section.Path("key"));
    } else {
      out->key_variable = text->get();
    }
  }
  section.Int("concurrency", &out->concurrency, 1, 4096);
  section.Flag("accepts_temperature", &out->accepts_temperature);
  ReadParameters(section.Table("parameters", Section::kOptional), name + ".parameters", faults,
                 &out->parameters);
  ReadRetry(section.Table("retry", Section::kOptional), name + ".retry", faults, &out->retry);
}

// The first member of `extra` that the protocol sets itself, or nothing. With one of these a
// request would cost more than was set aside for it, or its reply could not be read.
std::string ReservedIn(const Entry& entry) {
  const auto extra = nlohmann::json::parse(entry.parameters.extra, nullptr, false);
  if (!extra.is_object()) return "";
  std::vector<std::string> reserved;
  switch (entry.protocol) {
    case Protocol::kOpenAiResponses:
      reserved = {"/model",  "/input",      "/instructions",
                  "/stream", "/background", "/max_output_tokens"};
      break;
    case Protocol::kOpenAiChat:
      reserved = {
          "/model",         "/messages", "/stream", "/n", "/max_tokens", "/max_completion_tokens",
          "/stream_options"};
      break;
    case Protocol::kAnthropic:
      reserved = {"/model", "/messages", "/system", "/stream", "/max_tokens"};
      break;
    case Protocol::kGemini:
      reserved = {"/contents",
                  "/systemInstruction",
                  "/system_instruction",
                  "/generation_config",
                  "/generationConfig/maxOutputTokens",
                  "/generationConfig/max_output_tokens",
                  "/generationConfig/candidateCount",
                  "/generationConfig/candidate_count"};
      break;
    default:
      break;
  }
  for (const std::string& path : reserved)
    if (extra.contains(nlohmann::json::json_pointer(path))) return path.substr(1);
  // A value in place of the object would take the cap away with it.
  if (entry.protocol == Protocol::kGemini && extra.contains("generationConfig") &&
      !extra["generationConfig"].is_object())
    return "generationConfig";
  return "";
}

// `*out` begins as the table of its provider, if it has one.
void ReadModel(Section& section, const std::string& name, Entry* out) {
  Faults* faults = &section.faults();
  ReadShared(section, name, out);
  section.Flag("open_weights", &out->open_weights);
  ReadPrice(section.Table("price", Section::kOptional), name + ".price", faults, &out->price);
  const auto only_with = [&](const char* key, Protocol protocol) {
    const toml::node* node = section.Find(key, Section::kOptional, "");
    if (node != nullptr && out->protocol != protocol)
      faults->Add(node, "{} needs protocol = \"{}\"", section.Path(key), NameOf(protocol));
    return out->protocol == protocol;
  };
  if (only_with("command", Protocol::kCommand)) section.Text("command", &out->source);
  if (only_with("check", Protocol::kCommand)) {
    out->check_tool = true;
    section.Flag("check", &out->check_tool);
    if (out->provider.empty() && section.Find("concurrency", Section::kOptional, "") == nullptr)
      out->concurrency = kCommandConcurrency;
  }
  if (only_with("folder", Protocol::kReplay)) section.Text("folder", &out->source);
  if (only_with("material", Protocol::kMaterial))
    section.OneOf("material", &out->source, MaterialKinds());
  if (only_with("seconds", Protocol::kCommand)) {
    int seconds = static_cast<int>(out->seconds.count());
    section.Int("seconds", &seconds, 1, 7 * 86'400);
    out->seconds = std::chrono::seconds(seconds);
  }
  if (!IsHttp(out->protocol)) return;
  section.Text("model", &out->model);
  if (out->endpoint.empty())
    section.Find("endpoint", Section::kRequired,
                 out->provider.empty() ? "a URL"
                                       : fmt::format("a URL, here or in [providers.{}] of {}",
                                                     out->provider, out->file));
  // It may stand in the provider's table: then the model's own line is named.
  const toml::node* where = section.Find("parameters", Section::kOptional, "");
  if (where == nullptr) where = section.Find("model", Section::kOptional, "");
  if (where == nullptr) return;
  if (const std::string reserved = ReservedIn(*out); !reserved.empty())
    faults->Add(where, "{}.parameters.extra: {} is set by the protocol {} itself", name, reserved,
                NameOf(out->protocol));
  if (const std::string why = TemperatureFault(*out); !why.empty())
    faults->Add(where, "{}.parameters: {}", name, why);
}

Result<toml::table> ParseFile(const std::filesystem::path& file) {
  const auto text = ReadWhole(file, kLargestFile);
  if (!text) return Fail(text.error());
  try {
    return toml::parse(*text, file.string());
  } catch (const toml::parse_error& error) {
    return Fail("{}:{}: {}", file.string(), error.source().begin.line, error.description());
  }
}

// One of the files that are read as one list.
struct Layer {
  Layer(const std::filesystem::path& path, toml::table parsed)
      : file(path), table(std::move(parsed)), faults(path.string()), root(&table, "", &faults) {
    int schema = 0;
    root.Int("schema", &schema, kSchema, kSchema, Section::kRequired);
  }
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  std::filesystem::path file;
  toml::table table;
  Faults faults;
  Section root;
};

// In place of the one with the same name, or at the end.
void Put(Entry one, std::vector<Entry>* all) {
  for (Entry& other : *all) {
    if (other.name != one.name) continue;
    other = std::move(one);
    return;
  }
  all->push_back(std::move(one));
}

// A table of [providers] is the entry that its models begin with.
void ReadProviders(Layer* layer, std::vector<Entry>* providers) {
  Section tables(layer->root.Table("providers", Section::kOptional), "providers", &layer->faults);
  for (const auto& [name, node] : tables.InOrder()) {
    if (!node->is_table()) {
      tables.Wrong(node, name, "a section");
      continue;
    }
    Entry provider;
    provider.name = provider.provider = name;
    provider.file = layer->file.string();
    Section section(node->as_table(), "providers." + name, &layer->faults);
    ReadShared(section, "providers." + name, &provider);
    section.RejectOthers();
    Put(std::move(provider), providers);
  }
}

void ReadModels(Layer* layer, const std::vector<Entry>& providers, std::vector<Entry>* entries) {
  Faults& faults = layer->faults;
  Section tables(layer->root.Table("models", Section::kOptional), "models", &faults);
  for (const auto& [name, node] : tables.InOrder()) {
    if (!node->is_table()) {
      tables.Wrong(node, name, "a section");
      continue;
    }
    if (!IsModelName(name))
      faults.Add(
          node,
          "'{}' cannot name a model: expected 1 to 80 characters of A-Z a-z 0-9 . _ - : / @ +",
          name);
    Section section(node->as_table(), "models." + name, &faults);
    Entry entry;
    std::string provider;
    if (section.Text("provider", &provider, Section::kOptional)) {
      std::vector<std::string> names;
      const Entry* found = nullptr;
      for (const Entry& known : providers) {
        names.push_back(known.name);
        if (known.name == provider) found = &known;
      }
      if (found != nullptr) {
        entry = *found;
      } else {
        section.Wrong(section.Find("provider", Section::kOptional, ""), "provider",
                      names.empty() ? "a table of [providers]"
                                    : "one of " + problem::Join(names) +
                                          problem::DidYouMean(provider, names));
      }
    }
    entry.name = entry.table = name;
    ReadModel(section, "models." + name, &entry);
    section.RejectOthers();
    entry.file = layer->file.string();
    if (entry.protocol == Protocol::kReplay) {
      // Beside the file that names it.
      entry.source = std::filesystem::absolute(layer->file.parent_path() / entry.source)
                         .lexically_normal()
                         .string();
    }
    Put(std::move(entry), entries);
  }
}

}  // namespace

std::string EndpointFault(std::string_view endpoint) {
  std::string_view rest = endpoint;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return "a URL that begins with https:// or http://";
  }
  if (rest.empty() || rest.front() == '/') return "a URL with a host";
  for (const char c : rest)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return "a URL without blanks";
  if (rest.substr(0, rest.find('/')).find('@') != std::string_view::npos)
    return "a URL without a user name: keys come from the variable that `key` names";
  if (rest.find_first_of("?#") != std::string_view::npos)
    return "a URL without ? and #: the protocol appends its path";
  return "";
}

bool IsVariable(std::string_view text) {
  // Shorter than any key, and only such characters: a key put here by mistake is seldom taken.
  if (text.empty() || text.size() > 64 || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text)
    if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

Result<std::vector<Entry>> LoadModels(const std::filesystem::path& file) {
  return LoadModels(std::vector<std::filesystem::path>{file});
}

Result<std::vector<Entry>> LoadModels(const std::vector<std::filesystem::path>& files) {
  std::deque<Layer> layers;  // their sections point into them: they stay where they are
  for (const std::filesystem::path& file : files) {
    Result<toml::table> table = ParseFile(file);
    if (!table) return Fail(table.error());
    layers.emplace_back(file, std::move(*table));
  }
  // Models of one file may name providers of another: providers of all files come first.
  std::vector<Entry> providers;
  for (Layer& layer : layers) ReadProviders(&layer, &providers);
  std::vector<Entry> entries;
  std::string faults;
  for (Layer& layer : layers) {
    ReadModels(&layer, providers, &entries);
    layer.root.RejectOthers();
    if (layer.faults.Any()) faults += (faults.empty() ? "" : "\n") + layer.faults.Text();
  }
  if (!faults.empty()) return Fail("{}", faults);
  return entries;
}

}  // namespace allranks::model
