// `command:LINE`: any program as a model, say a coding agent. It finds the prompt and the template
// in a fresh folder and leaves solution.cu there; docs/models.md is its contract. model/confined.h
// runs it, model/check_box.h answers its `./check`.
//
// What it leaves is read as hostile: no links, no pipes, bounded. What counts as its answer:
//   solution.cu, if it is new or changed, however the command ended; else
//   what it printed, if it ended with code 0 and there is no solution.cu; else
//   solution.cu as it was, if it ended with code 0: it stands by its earlier attempt; else
//   none: out of time is a reply without code, another end is a failure of the command.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "base/files.h"
#include "judge/scratch.h"
#include "model/attempts.h"
#include "model/check_box.h"
#include "model/confined.h"
#include "model/local_models.h"
#include "model/redact.h"
#include "problem/answer.h"
#include "problem/args.h"
#include "problem/source.h"

namespace allranks::model {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestUsage = 64 << 10;
constexpr std::size_t kShownErrors = 2000;

std::string PromptFile(const Ask& ask) {
  std::string all;
  bool later = false;
  for (const Message& message : ask.messages) {
    if (message.role == Message::Role::kAssistant) {
      all += "# Your earlier attempt\n\n";
      later = true;
    } else if (later) {
      all += "# What was found\n\n";
    }
    all += message.text + "\n\n";
  }
  all +=
      "# What to leave\n\nWrite your solution to the file solution.cu in this folder: the whole "
      "file, as template.cu with its region filled in.";
  if (ask.round > 1) all += " Your earlier attempt is there already.";
  all += " problem.h is what the template includes.";
  if (ask.check)
    all += fmt::format(
        " `./check [FILE]` compiles and judges a file (solution.cu) on the open "
        "cases and prints what the judge says; it may be used {} times.",
        kMostChecks);
  return all + "\n";
}

// The attempt of the round before, as a whole file; empty: there is none.
std::string EarlierSolution(const Ask& ask, const problem::Region& region) {
  for (auto message = ask.messages.rbegin(); message != ask.messages.rend(); ++message) {
    if (message->role != Message::Role::kAssistant) continue;
    const problem::Answer answer = problem::ReadAnswer(message->text, false, region);
    if (answer.kind != problem::Answer::Kind::kSource) return "";
    return problem::Assemble(region, answer.source).value_or(answer.source);
  }
  return "";
}

std::string Ending(const std::string& text) {
  return text.size() <= kShownErrors ? text : "..." + text.substr(text.size() - kShownErrors);
}

// The source between fences that are longer than any in it.
std::string Fenced(const std::string& source) {
  std::size_t longest = 2, run = 0;
  for (const char c : source) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  return fence + "cuda\n" + source + (source.ends_with('\n') ? "" : "\n") + fence + "\n";
}

class Command : public Model {
 public:
  Command(Entry entry, Budget budget, Listener* listener)
      : entry_(std::move(entry)),
        budget_(std::move(budget)),
        listener_(listener),
        redacted_(SecretsOfEnvironment(entry_.key_variable)) {}

  Outcome Generate(const Ask& ask, const Stop& stop) override {
    if (stop.requested()) return Failed(Failure::Kind::kStopped, "stopped");
    if (ask.problem == nullptr)
      return Failed(Failure::Kind::kRequest, "a command model solves problems only");
    if (!budget_.Reserve(0)) return Failed(Failure::Kind::kBudget, "the budget is spent");
    if (listener_ != nullptr) listener_->OnAttempt(entry_.name);
    if (auto noted = NoteAttempt(ask, fmt::format(R"({{"event":"begin","attempt":1,"time":"{}",)"
                                                  R"("model":{}}})",
                                                  TimeOfDay(), Quoted(entry_.name)));
        !noted)
      return Failed(Failure::Kind::kOurs, noted.error().message);
    Outcome outcome = Redacted(Run(ask, stop));
    const double dollars = outcome ? outcome->dollars : outcome.error().wasted_dollars;
    budget_.Settle(0, dollars);
    const bool stopped = !outcome && outcome.error().kind == Failure::Kind::kStopped;
    const std::string line = fmt::format(
        R"({{"event":"end","attempt":1,"time":"{}","outcome":"{}","error":{},"dollars":{}}})",
        TimeOfDay(), outcome ? "reply" : (stopped ? "stopped" : "failed"),
        Quoted(outcome ? "" : outcome.error().message), dollars);
    // An answer is not thrown away for a line: whoever keeps it will meet the same disk.
    (void)NoteAttempt(ask, line);
    return outcome;
  }

  double MostDollars(const std::vector<Message>&) const override { return 0; }
  int concurrency() const override { return entry_.concurrency; }

 private:
  // A command has the environment's keys, and may print them.
  Outcome Redacted(Outcome outcome) const {
    if (!outcome) {
      outcome.error().message = redacted_(std::move(outcome.error().message));
    } else {
      for (std::string* text : {&outcome->text, &outcome->raw, &outcome->request})
        *text = redacted_(std::move(*text));
    }
    return outcome;
  }

  tl::unexpected<Failure> Failed(Failure::Kind kind, const std::string& message,
                                 double wasted = 0) const {
    return tl::unexpected(Failure{kind, entry_.name + ": " + message, wasted});
  }

  Outcome Run(const Ask& ask, const Stop& stop) const {
    const auto ours = [&](const Error& error) {
      return Failed(Failure::Kind::kOurs, error.message);
    };
    auto scratch = judge::Scratch::Make();
    if (!scratch) return ours(scratch.error());
    const fs::path folder = fs::path(scratch->path()) / "work";
    std::error_code error;
    fs::create_directory(folder, error);
    const auto form = problem::TemplateOf(*ask.problem);
    if (!form) return ours(form.error());
    const auto region = problem::SplitTemplate(*form);
    if (!region) return ours(region.error());
    const std::string prompt = PromptFile(ask);
    const std::string earlier = EarlierSolution(ask, *region);
    const std::pair<const char*, std::string> files[] = {
        {"prompt.md", prompt},
        {"template.cu", *form},
        {"problem.h", problem::RenderHeader(*ask.problem)},
        {"solution.cu", earlier}};
    for (const auto& [name, text] : files) {
      if (text.empty()) continue;
      if (auto written = WriteWhole(folder / name, text); !written) return ours(written.error());
    }
    // Held from before the command runs: what it renames or links cannot lead elsewhere.
    const wire::Fd opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (opened.get() < 0) return ours({"cannot open " + folder.string()});

    ConfinedOrder order;
    order.line = entry_.source;
    order.folder = folder;
    order.hidden = ask.hidden;
    order.wall = entry_.seconds;
    order.environment = {{"ALLRANKS_PROBLEM", ask.problem->slug},
                         {"ALLRANKS_PROMPT", (folder / "prompt.md").string()},
                         {"ALLRANKS_SOLUTION", (folder / "solution.cu").string()}};
    std::unique_ptr<CheckBox> box;
    if (ask.check && entry_.check_tool) {
      auto made = CheckBox::Make(folder, ask.check);
      if (!made) return ours(made.error());
      box = std::move(*made);
    }
    const auto end = RunConfined(order, stop);
    box.reset();
    if (!end) return Failed(Failure::Kind::kModel, end.error().message);
    return Collect(ask, prompt, earlier, *end, opened.get());
  }

  Outcome Collect(const Ask& ask, const std::string& prompt, const std::string& earlier,
                  const ConfinedEnd& end, int folder) const {
    Reply reply;
    reply.served_by = "command";
    reply.request =
        fmt::format(R"({{"command":{},"prompt":{}}})", Quoted(entry_.source), Quoted(prompt));
    reply.raw = end.out + (end.err.empty() ? "" : "\n--- stderr\n" + end.err);

    const bool in_time = end.why == ConfinedEnd::Why::kExit;
    const bool good = in_time && end.code == 0;
    struct stat about{};
    const bool left = fstatat(folder, "solution.cu", &about, AT_SYMLINK_NOFOLLOW) == 0;
    // One byte more than may be, so that it is found too large and not cut to fit.
    const auto source = ReadPlain(folder, "solution.cu", problem::kLargestSource + 1);
    const auto usage = ReadPlain(folder, "usage.json", kLargestUsage);
    if (usage) {
      // A file that cannot be read is as none: the answer was paid for.
      Reply facts = reply;
      if (const Status taken = TakeFacts(*usage, &facts))
        reply = std::move(facts);
      else
        reply.raw += "\n--- usage.json is ignored: " + taken.error().message;
    }
    if (reply.usage_known && reply.dollars == 0)
      reply.dollars = DollarsOf(entry_.price, reply.usage);
    const double dollars = reply.dollars;

    if (end.why == ConfinedEnd::Why::kStopped)
      return Failed(Failure::Kind::kStopped, "stopped", dollars);
    if (left && !source) {
      reply.text = fmt::format("(The command's answer is rejected: {}.)\n", source.error().message);
      reply.finish = Finish::kOther;
    } else if (source && (*source != earlier || good)) {
      reply.text = "solution.cu as the command left it:\n\n" + Fenced(*source);
    } else if (good) {
      reply.text = end.out;
    } else if (!in_time) {
      reply.text =
          fmt::format("(The command reached its limit of {} seconds and wrote no solution.cu.)\n",
                      entry_.seconds.count());
      reply.finish = Finish::kLength;
    } else {
      // 126 and 127 are the shell's words for a program that it cannot start.
      const bool never = end.code == 126 || end.code == 127 || end.err.starts_with("bwrap: ");
      return Failed(never ? Failure::Kind::kModel : Failure::Kind::kGaveUp,
                    fmt::format("exited with code {} and wrote no solution.cu; its output:\n{}",
                                end.code, Ending(end.err.empty() ? end.out : end.err)),
                    dollars);
    }
    if (!reply.usage_known) reply.usage = EstimateUsage(ask.messages, reply.text);
    return reply;
  }

  Entry entry_;
  mutable Budget budget_;
  Listener* listener_;
  Redactor redacted_;
};

}  // namespace

std::unique_ptr<Model> MakeCommandModel(const Entry& entry, Budget budget, Listener* listener) {
  return std::make_unique<Command>(entry, std::move(budget), listener);
}

}  // namespace allranks::model
