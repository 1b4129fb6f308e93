// The node's report (server/report.h), shown to a person.
#pragma once

#include <string>
#include <vector>

#include "node/finding.h"

namespace allranks::cli {

// Tables of at most 40 rows: kernels by name, ranges, kernels, links, movers; no line is longer
// than kTextWidth. `json` is what the node answered to Finish.
std::string StatsTable(const std::string& json);
// The same JSON, indented, for --stats-json.
std::string Indented(const std::string& json);
std::vector<node::Finding> FindingsIn(const std::string& json);
// What a checked run looked at: "2 kernels, 1234 accesses".
std::string CheckedIn(const std::string& json);
// Why images of the program could not be loaded.
std::vector<std::string> RefusedIn(const std::string& json);
// A kernel or a copy that failed.
struct Failed {
  int status = 0;       // a CUresult
  std::string message;  // what happened, and where
  std::string text;     // a sentence: the device, the message and the name of the status
};
std::vector<Failed> FaultsIn(const std::string& json);

}  // namespace allranks::cli
