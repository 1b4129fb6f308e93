#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command.h"
#include "cli/compare.h"
#include "cli/doctor.h"
#include "cli/exec.h"
#include "cli/judge.h"
#include "cli/models.h"
#include "cli/problems.h"
#include "cli/prompt.h"
#include "cli/report.h"
#include "cli/run.h"
#include "cli/smi.h"

namespace allranks::cli {

bool Command::parsed() const { return command_->parsed(); }
std::string Command::name() const { return command_->get_name(); }
std::string Command::help() const { return command_->help(); }

int Usage(const std::string& message) {
  fmt::print(stderr, "allranks: {}\n", message);
  return kExitUsage;
}

std::vector<std::unique_ptr<Command>> MakeCommands(CLI::App* app) {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeSmiCommand(app));
  commands.push_back(MakeJudgeCommand(app));
  commands.push_back(MakeProblemsCommand(app));
  commands.push_back(MakePromptCommand(app));
  commands.push_back(MakeModelsCommand(app));
  commands.push_back(MakeRunCommand(app));
  commands.push_back(MakeReportCommand(app));
  commands.push_back(MakeCompareCommand(app));
  commands.push_back(MakeDoctorCommand(app));
  return commands;
}

}  // namespace allranks::cli
