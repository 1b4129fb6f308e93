// What a model is told: a problem's statement and template, facts made from the problem and the
// profile, and later what was wrong with its attempts.
//
// A prompt template is one text file in mustache syntax whose parts begin with lines `=== system`,
// `=== task`, `=== repair` and `=== improve`; a part that it lacks is that of `default`.
// docs/prompts.md lists the names that may be used in it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/hardware/profile.h"
#include "problem/examples.h"
#include "problem/problem.h"

namespace allranks::problem {

struct PromptTemplate {
  std::string name;                          // "default", or a file's name without extension
  std::map<std::string, std::string> parts;  // system task repair improve: all four are there
};

// By name in `folder` (share/prompts/NAME.md), or a file by its path (has a '/' or exists). The
// message of a failure lists the names there are.
Result<PromptTemplate> LoadPrompt(const std::string& name, const std::filesystem::path& folder);
std::vector<std::string> PromptNames(const std::filesystem::path& folder);

struct PromptContext {
  const Problem* problem = nullptr;
  const node::Profile* profile = nullptr;
  std::filesystem::path folder;     // share/prompts: apis/*.md are read from there
  std::string cuda;                 // "13.0"
  std::vector<std::string> flags;   // what nvcc is told
  std::vector<Example> examples{};  // solved ones, which stand before the task
};

struct Prompt {
  std::string system, task;
};
Result<Prompt> MakePrompt(const PromptTemplate& form, const PromptContext& context);

// What is said after an attempt. Words come from visible cases only; the caller sees to that.
struct Feedback {
  struct Time {
    std::string name;                                          // "timed.w8.n4096"
    double call_us = 0, roofline_us = 0, reference_ratio = 0;  // reference time / this; 0: unknown
  };
  bool improve = false;  // right, and slow: the part `improve`; else `repair`
  std::string verdict;   // "compile_error", "no_answer", ...
  std::string text;      // the judge's paragraph
  std::string log;       // the compiler's words, a deadlock's waiters
  std::vector<Time> times;
  double fraction = 0;  // of the roofline, over timed cases
  int round = 1;        // that this is about, from 1
  int rounds = 1;       // that there may be
};
inline constexpr std::size_t kFeedbackLimit = 8000;  // bytes of text and log, each; the middle goes
Result<std::string> MakeFeedback(const PromptTemplate& form, const PromptContext& context,
                                 const Feedback& feedback);

// At most `limit` bytes of `text`, whole lines where possible: its beginning and its end, and how
// much is left out between them.
std::string Shortened(const std::string& text, std::size_t limit);

}  // namespace allranks::problem
