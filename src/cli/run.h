// `allranks run`: models asked, replies judged, a folder from which reports are made.
#pragma once

#include <memory>

#include "cli/command.h"

namespace allranks::cli {

std::unique_ptr<Command> MakeRunCommand(CLI::App* app);

}  // namespace allranks::cli
