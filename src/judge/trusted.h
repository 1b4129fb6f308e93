// A stand-in for a sandbox that keeps nothing out: for `allranks judge --trusted`, where somebody
// judges code of their own on a machine that allows no sandboxes. trusted.cpp says what remains.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "judge/sandbox.h"

namespace allranks::judge {

// Runs spec.command as this process's user, in its namespaces, with its files and its network.
Result<std::unique_ptr<Sandbox>> StartTrusted(const SandboxSpec& spec);

// A word of a command, or a variable, with each path inside a sandbox below one of `tops` ("/tmp")
// replaced by that path below `root`.
std::string PathsBelow(const std::string& root, const std::vector<std::string>& tops,
                       std::string_view word);

// The folder of a build in `text` (".../tmp/"), which a sandbox has at /tmp/; empty: none is there.
std::string BuildFolderIn(std::string_view text);
// `text` with all such folders as a sandbox has them: a report is the same in every judgement.
std::string AsInSandbox(std::string text);

}  // namespace allranks::judge
