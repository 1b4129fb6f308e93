// What entry.cpp and entry_reader.cpp agree on: which words and names there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace allranks::model {

// Agents at once, unless told: each is a few processes on this machine.
inline constexpr int kCommandConcurrency = 4;

// references mixture baselines oracle nop
const std::vector<std::string>& MaterialKinds();

// What may stand in tables, folders (escaped) and lists with commas.
bool IsModelName(std::string_view text);

// What an endpoint should have been, or nothing: https:// or http://, a host, maybe a path.
std::string EndpointFault(std::string_view endpoint);

// A name of an environment variable: A-Z 0-9 _.
bool IsVariable(std::string_view text);

}  // namespace allranks::model
