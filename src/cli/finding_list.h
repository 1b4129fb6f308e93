// What `exec --check` makes of the findings of one run or several: equal ones are one, filters and
// suppressions leave some out, the rest is printed and counted.
//
// Every finding has an id that is the same in every run and on every machine: it is made of its
// kind, the kernels and the text of the source lines, so that edits elsewhere do not change it.
// A suppression file has one pattern per line, `#` begins a comment:
//   KIND ID              this finding, as the line `suppress:` under it says
//   KIND kernel:GLOB     findings with an access in such a kernel
//   KIND file:GLOB       ... in such a file
// KIND may be `*`.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/finding_files.h"
#include "node/finding.h"

namespace allranks::cli {

struct FindingOptions {
  std::string suppress;              // a file; empty: none
  std::size_t most = 20;             // that are printed
  std::vector<std::string> only;     // kinds; empty: all
  std::vector<std::string> kernels;  // globs, of which one must fit; empty: all
  std::vector<std::string> files;    // the same
  std::vector<std::string> also;     // kinds that count although they usually do not
  enum class Leaks { kNo, kSummary, kFull };
  std::optional<Leaks> leaks;  // printed; unless they count, a summary
};

class FindingList {
 public:
  static Result<FindingList> Make(const FindingOptions& options);

  void Add(std::vector<node::Finding> findings);
  // How many count against the program.
  std::size_t counted() const;
  bool Counts(const node::Finding& finding) const;
  // For a person: each finding, then a line that sums them up. `checked`: what was looked at.
  std::string Text(std::string_view checked) const;
  // All of them, chosen or not, for files.
  std::vector<ListedFinding> Listed() const;

 private:
  struct Pattern {
    std::string kind;
    std::string id, kernel, file;  // one of them
  };
  bool Chosen(const node::Finding& finding) const;
  bool Suppressed(const node::Finding& finding) const;
  // A leak that has no lines of its own; --leaks.
  bool OnlySummed(const node::Finding& finding) const;
  std::string IdOf(const node::Finding& finding) const;
  std::string SourceLine(const std::string& file, int line) const;

  FindingOptions options_;
  std::vector<Pattern> patterns_;
  std::vector<node::Finding> findings_;
  mutable std::map<std::string, std::vector<std::string>> sources_;
};

}  // namespace allranks::cli
