// Lists of findings, for all that print them: equal ones folded into one, in a line, and as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "node/finding.h"

namespace allranks::node {

// The same kind of thing between the same places of the source.
bool SamePlaces(const Finding& a, const Finding& b);

// The same kind of thing, with the same remedy at the same place of the source.
bool SameCause(const Finding& a, const Finding& b);
// Counts `more`, of the same places or cause, to `into`.
void Merge(Finding more, Finding* into);
// What threads of other places need at the edits' places, they need here: the wider scope, the
// barrier of more threads.
void Widen(const Finding& more, Finding* into);

// Findings that follow from others: where a flag is accessed weakly, whatever it should order
// between the same kernels is unordered, too, and counts to the flag's finding. A barrier that only
// some threads reach comes before the races behind it.
void FoldConsequences(std::vector<Finding>* findings);

// Operations of streams whose order is missed at several places are one finding, whose remedy
// creates the order at each: the same earlier or later operation, or the same two streams.
void FoldOrders(std::vector<Finding>* findings);

// Adds `more` to `all`; what is there already only counts up. Beyond a thousand nothing is added.
void Fold(std::vector<Finding> more, std::vector<Finding>* all);

// Whether a finding counts against a program: all do but portability and leaks.
bool Counts(const Finding& finding);
std::size_t CountedOf(const std::vector<Finding>& findings);

// "3 findings: 2 races, 1 portability"; "no findings".
std::string Summary(const std::vector<Finding>& findings);

// Puts `to` wherever a path in a finding begins with `from`.
void ReplacePaths(std::string_view from, std::string_view to, Finding* finding);

// "race", "memory", "synchronisation", "portability", "leak".
const char* NameOf(FindingClass of);

// A JSON array. Every finding has all members; what is not known of an access is null.
std::string ToJson(const std::vector<Finding>& findings);
// The way back; what is no finding is left out.
std::vector<Finding> FindingsFromJson(std::string_view json);

}  // namespace allranks::node
