// `allranks smi`: the devices of a profile and what joins them, as nvidia-smi prints them.
#pragma once

#include <memory>

#include "cli/command.h"

namespace allranks::cli {

std::unique_ptr<Command> MakeSmiCommand(CLI::App* app);

}  // namespace allranks::cli
