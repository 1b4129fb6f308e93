// `allranks compare`: two runs against each other.
#pragma once

#include <memory>

#include "cli/command.h"

namespace allranks::cli {

std::unique_ptr<Command> MakeCompareCommand(CLI::App* app);

}  // namespace allranks::cli
