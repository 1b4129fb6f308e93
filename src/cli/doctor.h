// `allranks doctor`: what works on this machine, what does not, and the remedy.
#pragma once

#include <memory>

#include "cli/command.h"

namespace allranks::cli {

std::unique_ptr<Command> MakeDoctorCommand(CLI::App* app);

}  // namespace allranks::cli
