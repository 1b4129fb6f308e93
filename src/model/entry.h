// models.toml: which models there are, how they are reached and what they cost. One file for all
// providers; docs/models.md describes it. Keys are named by environment variables and never stored.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace allranks::model {

enum class Protocol {
  kOpenAiResponses,  // openai-responses
  kOpenAiChat,       // openai-chat: also every compatible server
  kAnthropic,        // anthropic
  kGemini,           // gemini
  kCommand,          // command
  kReplay,           // replay
  kMaterial,         // material: the problem's own sources
};
const char* NameOf(Protocol protocol);
// Whether it sends requests to a provider: not for commands, recordings and material.
bool IsHttp(Protocol protocol);

struct Price {  // dollars per million tokens
  bool known = false;
  double input = 0, cached_input = 0, output = 0;
};

struct Parameters {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::string effort;  // reasoning: as the provider names its levels; empty: its default
  int max_output_tokens = 32768;
  std::string max_tokens_field;  // openai-chat: "max_tokens" (default) or "max_completion_tokens"
  bool stream = true;
  std::string extra;  // a JSON object, merged into the body; empty: nothing
};

struct RetryPolicy {
  int attempts = 6;                       // in all, the first one included
  std::chrono::milliseconds base{1000};   // the n-th wait is drawn from [0, base * 2^n)
  std::chrono::milliseconds cap{60'000};  // of one drawn wait
  std::chrono::milliseconds longest_retry_after{300'000};  // a longer one is a failure at once
  std::chrono::milliseconds connect{15'000};
  // Without a byte. Models that think send none for minutes, and asking again is paid for again: as
  // long as the providers' own libraries wait.
  std::chrono::milliseconds stall{600'000};
  std::chrono::milliseconds total{3'600'000};  // of one attempt
};

struct Entry {
  std::string name;      // ours: in results, folders, tables
  std::string file;      // that holds its table; empty: a word of --models
  std::string table;     // that table's key; `name` differs from it in NAME=MODEL
  std::string provider;  // of the table it took defaults from; may be empty
  Protocol protocol = Protocol::kOpenAiChat;
  std::string model;         // the provider's name
  std::string endpoint;      // base URL, without the protocol's path
  std::string key_variable;  // environment variable; empty: none is sent
  bool open_weights = false;
  bool accepts_temperature = true;
  Price price;
  Parameters parameters;
  RetryPolicy retry;
  int concurrency = 16;
  // command: a shell line; replay: a folder; material: its kind (references mixture baselines
  // oracle nop).
  std::string source;
  bool check_tool = false;             // command: gets `./check`
  std::chrono::seconds seconds{1800};  // command: its wall time
};

// Why it cannot be asked with the temperature that its parameters have; empty: it can.
std::string TemperatureFault(const Entry& entry);

// Everything that decides what it answers, as canonical JSON: part of the key of a generation.
// Neither key nor price, concurrency or retry.
std::string IdentityOf(const Entry& entry);

// Reads and checks a models.toml. A message names file, line, key and what is expected.
Result<std::vector<Entry>> LoadModels(const std::filesystem::path& file);
// Several as one list: a table of [providers] or [models] replaces, as a whole, the table of the
// same name in the files before it. An entry keeps the place of the one that it replaces.
Result<std::vector<Entry>> LoadModels(const std::vector<std::filesystem::path>& files);

// One word of --models: a name in `known`, `oracle`, `nop`, `material:KIND`, `replay:FOLDER`,
// `command:LINE`, each also as NAME=WORD to be called NAME. The message of a failure lists what
// there is.
Result<Entry> FindModel(const std::string& word, const std::vector<Entry>& known);

// Fails where a key is needed and its variable is not set.
Result<std::unique_ptr<Model>> MakeModel(const Entry& entry, Budget budget, Listener* listener);

// By the entry's prices.
double DollarsOf(const Price& price, const Usage& usage);

}  // namespace allranks::model
