// `allranks prompt`: what a model would be sent about a problem.
#pragma once

#include <memory>

#include "cli/command.h"

namespace allranks::cli {

std::unique_ptr<Command> MakePromptCommand(CLI::App* app);

}  // namespace allranks::cli
