// From an entry to a model that can be asked. Keys are read here, from the environment, and handed
// to nobody but the model.
#include <cstdlib>
#include <utility>

#include "model/entry.h"
#include "model/http_model.h"
#include "model/local_models.h"
#include "model/words.h"

namespace allranks::model {
namespace {

// The key without blanks around it, which shells and files of keys add.
Result<std::string> KeyOf(const Entry& entry) {
  if (entry.key_variable.empty()) return std::string();
  const char* value = std::getenv(entry.key_variable.c_str());
  std::string key = value == nullptr ? "" : value;
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!key.empty() && blank(key.back())) key.pop_back();
  while (!key.empty() && blank(key.front())) key.erase(key.begin());
  if (key.empty())
    return Fail("{} needs a key: export {}=... (the variable is not set)", entry.name,
                entry.key_variable);
  for (const char c : key)
    if (static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f)
      return Fail(
          "{}: the value of {} is not a valid key: it contains blanks or other characters that "
          "HTTP headers do not allow",
          entry.name, entry.key_variable);
  return key;
}

}  // namespace

Result<std::unique_ptr<Model>> MakeModel(const Entry& entry, Budget budget, Listener* listener) {
  switch (entry.protocol) {
    case Protocol::kMaterial:
      return MakeMaterialModel(entry);
    case Protocol::kReplay:
      return MakeReplayModel(entry);
    case Protocol::kCommand:
      return MakeCommandModel(entry, std::move(budget), listener);
    default:
      break;
  }
  if (const std::string fault = EndpointFault(entry.endpoint); !fault.empty())
    return Fail("{}: the endpoint must be {}", entry.name, fault);
  Result<std::string> key = KeyOf(entry);
  if (!key) return Fail(key.error());
  return MakeHttpModel(entry, std::move(*key), std::move(budget), listener);
}

}  // namespace allranks::model
