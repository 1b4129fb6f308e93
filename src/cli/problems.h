// `allranks problems`: what problems there are, what one looks like, a new one, and whether one
// keeps its word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace allranks::cli {

struct ProblemsOptions {
  std::string folder;              // --problems-dir
  std::string category;            // list
  bool json = false;               // list, check
  std::string name;                // show, new, export
  std::string target, solution;    // export
  std::string out;                 // export, release
  std::string held_out;            // release: where what is kept goes
  bool header = false;             // show: problem.h
  bool template_text = false;      // show: template.cu
  std::vector<std::string> names;  // check
  bool all = false;                // check
  bool update = false;             // check: write reference.lock
  std::string only;                // check: items whose names contain it
  std::string profile = "h100x8";  // check
  int workers = 0;                 // check: -j
  int every = 1;                   // check: of the mutants
  bool changed = false;            // check: not what the record says has passed ...
  int sample = 4;                  // ... but on one of so many days
  bool record = false;             // check: write what has passed
};

std::unique_ptr<Command> MakeProblemsCommand(CLI::App* app);

// Each returns an exit code.
int ProblemsList(const ProblemsOptions& options);
int ProblemsShow(const ProblemsOptions& options);
int ProblemsNew(const ProblemsOptions& options);
int ProblemsCheck(const ProblemsOptions& options);
int ProblemsExport(const ProblemsOptions& options);
int ProblemsRelease(const ProblemsOptions& options);

}  // namespace allranks::cli
