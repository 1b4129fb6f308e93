#include "cli/prompt.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/exec.h"
#include "cli/judge_tools.h"
#include "cli/paths.h"
#include "cli/places.h"
#include "cli/select.h"
#include "cli/usage.h"
#include "cli/values.h"
#include "judge/build.h"
#include "node/hardware/profile.h"
#include "problem/prompt.h"

namespace allranks::cli {
namespace {

constexpr char kHelp[] =
    R"(Prints the prompt that `allranks run` sends. It consists of the problem's statement and template,
of facts of the problem and the profile, and of a prompt template. docs/prompts.md describes how to
write a prompt template.

Parts: system, task, repair, improve; by default system and task. The parts of later rounds (repair,
improve) are shown for an example of an attempt.

Exit codes: 0; 2 wrong usage, or a problem or a prompt that is missing or invalid.

The JSON has the members version, problem, profile, prompt, examples[] (slugs) and parts{}.)";

class PromptCommand : public Command {
 public:
  explicit PromptCommand(CLI::App* app);
  int Run() const override;

 private:
  Result<std::string> Part(const std::string& part, const problem::PromptTemplate& form,
                           const problem::PromptContext& context) const;

  std::string problem_, prompt_ = "default", profile_ = "h100x8", problems_dir_;
  std::vector<std::string> parts_;
  int few_shot_ = 0;
  bool json_ = false;
};

PromptCommand::PromptCommand(CLI::App* app) {
  command_ = app->add_subcommand("prompt", "Print the prompt for a problem");
  command_->footer(kHelp);
  command_->formatter(std::make_shared<UsageFormatter>("prompt PROBLEM [OPTIONS]"));
  const auto option = [&](const char* name, auto& value, const char* text, const char* what) {
    return command_->add_option(name, value, what)->option_text(text);
  };
  command_->add_option("PROBLEM", problem_, "Its slug, or the path of its folder")->required();
  option("--prompt", prompt_, "NAME|FILE [default]",
         "The prompt template: apis, default, pytorch, "
         "terse, or a file of your own");
  option("--few-shot", few_shot_, "N [0]",
         "Put N solved examples, other problems with their references, before the task")
      ->check(Whole(0, kMostExamples));
  option("--profile", profile_, "PROFILE [h100x8]",
         "The simulated hardware: the name of a profile, or a path");
  option("--part", parts_, "PART", "Only this part; repeatable")
      ->check(OneOf({"system", "task", "repair", "improve"}))
      ->allow_extra_args(false);
  option("--problems-dir", problems_dir_, "DIR",
         "Folder to search for problems, instead of the installed ones")
      ->check(InputFolder());
  command_->add_flag("--json", json_, "Print JSON");
}

// An attempt to speak of, where none was made.
problem::Feedback Example(const problem::Problem& problem, bool improve) {
  problem::Feedback feedback;
  feedback.improve = improve;
  feedback.round = 1;
  feedback.rounds = 3;
  if (!improve) {
    feedback.verdict = "compile_error";
    feedback.text = "candidate.cu(7): error: identifier \"example\" is undefined";
    feedback.log =
        "candidate.cu(7): error: identifier \"example\" is undefined\n"
        "1 error detected in the compilation of \"candidate.cu\".\n";
    return feedback;
  }
  feedback.verdict = "pass";
  feedback.fraction = 0.5;
  for (const problem::Case& one : problem.cases)
    if (one.kind == problem::Case::Kind::kTimed) feedback.times.push_back({one.name, 20, 10, 0.8});
  return feedback;
}

Result<std::string> PromptCommand::Part(const std::string& part,
                                        const problem::PromptTemplate& form,
                                        const problem::PromptContext& context) const {
  if (part == "repair" || part == "improve")
    return problem::MakeFeedback(form, context, Example(*context.problem, part == "improve"));
  Result<problem::Prompt> prompt = problem::MakePrompt(form, context);
  if (!prompt) return Fail(prompt.error());
  return part == "system" ? prompt->system : prompt->task;
}

int PromptCommand::Run() const {
  const Result<problem::Problem> problem = FindProblem(problem_, problems_dir_);
  if (!problem) return Usage(problem.error().message);
  const Result<std::string> path = FindProfile(profile_);
  if (!path) return Usage(path.error().message);
  const Result<node::Profile> profile = node::LoadProfile(*path);
  if (!profile) return Usage(profile.error().message);
  const std::filesystem::path folder = std::filesystem::path(ShareFolder()) / "prompts";
  if (const Status there = CheckPrompt(prompt_); !there) return Usage(there.error().message);
  const Result<problem::PromptTemplate> form = problem::LoadPrompt(prompt_, folder);
  if (!form) return Usage(form.error().message);
  const Result<judge::Tools> tools = FindTools(false);
  if (!tools) return Usage(tools.error().message);
  Result<std::string> cuda = judge::CudaVersion(*tools);
  if (!cuda) return Usage(cuda.error().message);

  problem::PromptContext context;
  context.problem = &*problem;
  context.profile = &*profile;
  context.folder = folder;
  context.cuda = std::move(*cuda);
  context.flags = judge::CompilerFlags(*problem, *profile);
  nlohmann::ordered_json shown = nlohmann::ordered_json::array();
  if (few_shot_ > 0) {
    const Result<std::vector<problem::Problem>> all = AllProblems(problems_dir_);
    if (!all) return Usage(all.error().message);
    Result<std::vector<problem::Example>> examples =
        problem::ChooseExamples(*problem, *all, few_shot_);
    if (!examples)
      return Usage(fmt::format("--few-shot {}: {}", few_shot_, examples.error().message));
    for (const problem::Example& example : *examples) shown.push_back(example.slug);
    context.examples = std::move(*examples);
  }
  std::vector<std::string> parts = parts_;
  if (parts.empty()) parts = {"system", "task"};
  nlohmann::ordered_json json;
  std::string text;
  for (const std::string& part : parts) {
    const Result<std::string> made = Part(part, *form, context);
    if (!made) return Usage(made.error().message);
    json[part] = *made;
    if (parts.size() > 1) text += fmt::format("{}=== {}\n", text.empty() ? "" : "\n", part);
    text += *made;
  }
  if (json_) {
    const nlohmann::ordered_json all = {
        {"version", 1},         {"problem", problem->slug}, {"profile", profile->name},
        {"prompt", form->name}, {"examples", shown},        {"parts", json}};
    text = all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  fmt::print("{}", text);
  std::fflush(stdout);
  return 0;
}

}  // namespace

std::unique_ptr<Command> MakePromptCommand(CLI::App* app) {
  return std::make_unique<PromptCommand>(app);
}

}  // namespace allranks::cli
