// What a prompt template can name: facts made from a problem and a profile. Part of prompt.cpp;
// docs/prompts.md lists the names for people.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "problem/prompt.h"

namespace allranks::problem {

// Everything that a template may insert, by name.
struct Facts {
  using Row = std::map<std::string, std::string>;
  std::map<std::string, std::string> words;               // {{name}}
  std::map<std::string, bool> flags;                      // {{#name}} ... {{/name}}
  std::map<std::string, std::vector<std::string>> lists;  // {{#name}}{{.}}{{/name}}
  std::map<std::string, std::vector<Row>> tables;         // {{#name}}{{column}}{{/name}}
};

// All names of MakeFacts, of AddFeedback, and the columns of their tables.
const std::vector<std::string>& FactNames();
const std::vector<std::string>& FeedbackNames();

// Fails if a file of the problem cannot be read. `operation` is missing if the problem has no
// operation.py.
Result<Facts> MakeFacts(const PromptContext& context);
void AddFeedback(const Feedback& feedback, Facts* facts);

// problem.h without the lines that only hold the compiler to our layout.
std::string HeaderOf(const Problem& problem);

// Names of the pages in share/prompts/apis that are of use for a problem.
std::vector<std::string> ApiPages(const Problem& problem);

// What machine it is, and what the links that a problem grants can do on a machine: one sentence
// each.
std::vector<std::string> MachineFacts(const Problem& problem, const node::Profile& profile);
std::vector<std::string> LinkFacts(const Problem& problem, const node::Profile& profile);

// What each verdict means, in a sentence; empty for a word that is none.
std::string MeaningOf(const std::string& verdict);

// Valid UTF-8 without control characters but tabs and newlines: the rest becomes U+FFFD.
std::string Printable(std::string_view text);

}  // namespace allranks::problem
