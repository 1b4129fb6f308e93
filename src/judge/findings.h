// What the checker found in a judgement's windows: from the node's message to a verdict and to
// text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "node/finding.h"
#include "wire/messages.h"

namespace allranks::judge {

// A finding and the cases in which it was seen, in their order.
struct CaseFinding {
  node::Finding finding;
  std::vector<std::string> cases;
};

// With the candidate's file under the name by which its author knows it.
std::vector<node::Finding> FindingsOf(const wire::JudgeRunReply& reply);

void Fold(const std::vector<node::Finding>& more, const std::string& in_case,
          std::vector<CaseFinding>* all);

// What findings make of a candidate whose outputs say nothing worse. A race explains the
// uninitialised read that it leads to, so it comes first. nullopt: none counts.
std::optional<Verdict> VerdictOf(const std::vector<node::Finding>& findings);

// All that count, the one that gave the verdict first; at most so many in full.
inline constexpr std::size_t kMostDescribed = 8;
std::string TextOf(const std::vector<node::Finding>& findings);

}  // namespace allranks::judge
