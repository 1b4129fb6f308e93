// The node's report (server/report.h), shown to a person.
#pragma once

#include <cstdint>
#include <string>

namespace allranks::cli {

// A table of at most 40 kernels and the totals. `json` is what the node answered to Finish.
std::string StatsTable(const std::string& json);
// The same JSON, indented, for --stats-json.
std::string Indented(const std::string& json);
// Its findings on their own, for --findings.
std::string FindingsOf(const std::string& json, std::uint64_t schedule);

}  // namespace allranks::cli
