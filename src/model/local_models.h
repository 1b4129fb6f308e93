// Models without a network of ours: the problems' own material, recordings, commands. MakeModel
// makes them from entries; each answers at no charge that a budget would have to know.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/entry.h"
#include "model/model.h"

namespace allranks::model {

std::unique_ptr<Model> MakeMaterialModel(const Entry& entry);
std::unique_ptr<Model> MakeReplayModel(const Entry& entry);
std::unique_ptr<Model> MakeCommandModel(const Entry& entry, Budget budget, Listener* listener);

// Tokens by bytes, where nobody counted them: 4 bytes each.
Usage EstimateUsage(const std::vector<Message>& messages, const std::string& reply);

// What a file of JSON says of a reply: finish, input_tokens, cached_input_tokens, output_tokens,
// reasoning_tokens, usage_known, dollars; each may be absent, others are ignored.
Status TakeFacts(const std::string& json, Reply* reply);

// Text that may not be UTF-8 as a JSON string, quotes included.
std::string Quoted(const std::string& text);

}  // namespace allranks::model
