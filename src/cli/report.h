// `allranks report`: scores, tables, plots and a page from runs.
#pragma once

#include <memory>

#include "cli/command.h"

namespace allranks::cli {

std::unique_ptr<Command> MakeReportCommand(CLI::App* app);

}  // namespace allranks::cli
