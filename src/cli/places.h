// Where the parts of AllRanks are: beside this executable, in ../share/allranks and
// ../lib/allranks.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::cli {

// This executable.
std::string OwnPath();

// Where profiles are looked for by name, first come first.
std::vector<std::string> ProfileFolders();

// Whether the variables that name folders name any. FindProfile and FindProblem ask themselves.
Status CheckProfileFolder();
Status CheckProblemFolder(const std::string& own);

// The file of a profile given by name or by path. The message lists the names there are.
Result<std::string> FindProfile(const std::string& name);

// Where problems are looked for by name: `own` alone, if it is not empty.
std::vector<std::string> ProblemFolders(const std::string& own);
// A problem given by its slug, by category/slug, or by path.
Result<problem::Problem> FindProblem(const std::string& name, const std::string& own);

// Whether a prompt template that is given as a path can be read.
Status CheckPrompt(const std::string& name);

// The folder whose allranks/ has the headers of solutions and oracles.
std::string IncludeFolder();

// The folder share/ of what the program carries with it: prompts/, models.toml, report/.
std::string ShareFolder();

// The files of models, as model::LoadModels takes them: `own` alone if it is not empty, else
// ALLRANKS_MODELS alone, else our own and, if it is there, ./models.toml.
Result<std::vector<std::filesystem::path>> FindModelsFiles(const std::string& own);

// The folder with liballranks_host.so, libcuda.so.1 and libcudart.so.13.
Result<std::string> FindShim();

}  // namespace allranks::cli
