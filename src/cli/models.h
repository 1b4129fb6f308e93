// `allranks models`: which models there are, and whether they can be asked.
#pragma once

#include <memory>

#include "cli/command.h"

namespace allranks::cli {

std::unique_ptr<Command> MakeModelsCommand(CLI::App* app);

}  // namespace allranks::cli
