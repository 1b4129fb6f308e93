// The same walk looks and works: it takes each step's file if it is there, and where it is not, a
// walk that only looks ends and one that works makes it. So what an interrupted run has left is
// read by the code that would have gone on, and a step is done again only if its file is missing.
#include "campaign/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "judge/scratch.h"
#include "problem/answer.h"

namespace allranks::campaign {
namespace {

namespace fs = std::filesystem;
using Kind = ChainEnd::Kind;

constexpr std::size_t kCheckLimit = 8000;  // bytes of what a command's tool prints

bool Goes(const ChainEnd& end) { return end.kind == Kind::kFinished; }

std::string GenerationKey(const std::string& identity, const std::vector<model::Message>& messages,
                          int sample, int round, const std::string& problem_hash) {
  std::string said;
  for (const model::Message& message : messages)
    said += judge::HashOf({model::NameOf(message.role), message.text});
  return judge::HashOf({"generation 1", identity, said, std::to_string(sample),
                        std::to_string(round), problem_hash});
}

problem::Answer AnswerOf(const ReplyRecord& record, const std::string& text,
                         const problem::Region& region) {
  problem::Answer answer =
      problem::ReadAnswer(text, record.finish == model::Finish::kLength, region);
  if (record.finish == model::Finish::kRefused && answer.kind != problem::Answer::Kind::kSource) {
    answer.kind = problem::Answer::Kind::kRefused;
    answer.text = "The reply was refused or cut off by a filter.";
  }
  return answer;
}

// Folders with answers: what a command may not see.
std::vector<fs::path> HiddenFrom(const Plan& plan) {
  std::vector<fs::path> hidden = {plan.out};
  const auto hide = [&](const fs::path& folder) {
    if (!folder.empty() && std::find(hidden.begin(), hidden.end(), folder) == hidden.end())
      hidden.push_back(folder);
  };
  hide(plan.tools.cache);
  std::error_code error;
  for (const fs::path& root : plan.problem_roots)
    if (fs::is_directory(root, error)) hide(fs::absolute(root, error).lexically_normal());
  for (const problem::Problem& problem : plan.problems) {
    // ROOT/CATEGORY/SLUG: all of ROOT, since problems are variations of each other.
    const fs::path category = problem.folder.parent_path();
    hide(category.filename() == problem.category ? category.parent_path() : problem.folder);
  }
  // Other runs beside this one.
  for (fs::directory_iterator at(plan.out.parent_path(), error), end; !error && at != end;
       at.increment(error))
    if (std::error_code none; fs::exists(at->path() / "run.json", none)) hide(at->path());
  // What is hidden may be in a repository's history.
  for (std::size_t i = 0, count = hidden.size(); i < count; ++i) {
    fs::path above = fs::absolute(hidden[i], error).lexically_normal();
    for (; above.has_relative_path(); above = above.parent_path())
      if (fs::is_directory(above / ".git", error)) hide(above / ".git");
  }
  return hidden;
}

}  // namespace

struct Chain::Reply {
  ReplyRecord record;
  problem::Answer answer;
  bool has_source() const { return answer.kind == problem::Answer::Kind::kSource; }
};

// A round between its reply and its end.
struct Chain::Step {
  bool known = false;  // round.json was there
  Round round;
  std::string verdict;  // the judge's JSON; empty without a source
};

Chain::Chain(Shared* shared, std::size_t model, std::size_t problem, int sample)
    : shared_(*shared),
      model_(model),
      asked_(shared->setup.problems[problem]),
      number_(sample),
      folder_(SampleFolder(shared->plan.models[model].name, asked_.facts.slug, sample)) {}

const std::string& Chain::model_name() const { return shared_.plan.models[model_].name; }

ChainEnd Chain::Look() {
  asks_ = nullptr;
  return Walk();
}

ChainEnd Chain::Run(model::Model* model) {
  asks_ = model;
  return Walk();
}

ChainEnd Chain::Write(const fs::path& path, std::string_view bytes) const {
  if (const Status wrote = shared_.store.Write(path, bytes); !wrote)
    return {Kind::kBroken, wrote.error().message};
  return {};
}

ChainEnd Chain::Walk() {
  sample_ = {model_name(), problem_name(), number_, {}, ""};
  replies_ = 0;
  kind_ = "first";
  std::vector<Attempt> attempts;
  for (int round = 1;; ++round) {
    bool over = false;
    if (ChainEnd end = OneRound(round, &attempts, &over); !Goes(end)) return end;
    if (over) return {};
  }
}

ChainEnd Chain::OneRound(int number, std::vector<Attempt>* attempts, bool* over) {
  inside_ = RoundFolder(model_name(), problem_name(), number_, number);
  const std::vector<model::Message> messages = MessagesOf(asked_.prompt, *attempts);
  const std::string key =
      GenerationKey(shared_.setup.identities[model_], messages, number_, number, asked_.facts.hash);
  if (!shared_.store.Has(inside_ / "reply.json")) {
    bool refused = false;
    if (ChainEnd end = Request(messages, key, number, &refused); !Goes(end)) return end;
    if (refused) {
      *over = true;
      return Finish("request");
    }
  }
  Reply reply;
  if (ChainEnd end = Load(messages, key, &reply); !Goes(end)) return end;
  ++replies_;
  if (asks_ != nullptr) {
    if (ChainEnd end = Copy(reply.record); !Goes(end)) return end;
  }

  Step step;
  step.known = shared_.store.Has(inside_ / "round.json");
  step.round.round = number;
  step.round.key = judge::HashOf({"round 1", key, asked_.judged});
  if (!step.known && asks_ == nullptr) return {Kind::kOpen, ""};
  if (ChainEnd end = step.known ? ReadRound(reply, &step) : MakeRound(reply, &step); !Goes(end))
    return end;

  std::string stopped;
  Attempt attempt;
  attempt.said = SaidOf(reply.answer, reply.record.text);
  if (ChainEnd end = Conclude(reply, step, &stopped, &attempt.feedback); !Goes(end)) return end;
  if (!step.known) {
    if (ChainEnd end = Write(inside_ / "round.json", ToJson(step.round)); !Goes(end)) return end;
  }
  sample_.rounds.push_back(std::move(step.round));
  attempts->push_back(std::move(attempt));
  if (!step.known) {
    const Round& last = sample_.rounds.back();
    shared_.store.Log(fmt::format("{} {} {} round {}: {}{}", model_name(), problem_name(), number_,
                                  number, last.verdict,
                                  last.strict ? fmt::format(", score {:.3f}", last.score) : ""));
    shared_.observer.OnRound(sample_);
  }
  if (stopped.empty()) return {};
  *over = true;
  return Finish(std::move(stopped));
}

ChainEnd Chain::ReadRound(const Reply& reply, Step* step) const {
  const Result<std::string> text = shared_.store.Read(inside_ / "round.json");
  if (!text) return {Kind::kBroken, text.error().message};
  Result<Round> stored = RoundFrom(*text);
  if (!stored)
    return {Kind::kBroken, fmt::format("{}: {}; remove this file to create it again",
                                       inside_.string(), stored.error().message)};
  if (stored->key != step->round.key)
    return {Kind::kBroken,
            fmt::format("{}/round.json was judged under other settings: choose another --out",
                        inside_.string())};
  step->round = std::move(*stored);
  if (!reply.has_source()) return {};
  Result<std::string> verdict = shared_.store.Read(inside_ / "verdict.json");
  if (!verdict) return {Kind::kBroken, verdict.error().message};
  step->verdict = std::move(*verdict);
  return {};
}

ChainEnd Chain::MakeRound(const Reply& reply, Step* step) {
  Round& round = step->round;
  round.kind = kind_;
  round.finish = model::NameOf(reply.record.finish);
  round.answer = problem::NameOf(reply.answer.kind);
  round.usage = reply.record.usage;
  round.usage_known = reply.record.usage_known;
  round.dollars = reply.record.dollars;
  if (!reply.has_source()) {
    round.verdict = kNoAnswer;
    round.text = reply.answer.text;
    return {};
  }
  if (ChainEnd end = Judge(reply.answer.source, &step->verdict); !Goes(end)) return end;
  if (const Status took = TakeVerdict(step->verdict, &round); !took)
    return {Kind::kFailed, took.error().message};
  Result<std::string> hash =
      judge::HashOfFile((shared_.store.folder() / inside_ / "source.cu").string());
  if (!hash) return {Kind::kBroken, hash.error().message};
  round.source_hash = std::move(*hash);
  return {};
}

// Whether the chain ends here, and if not, what the model is told.
ChainEnd Chain::Conclude(const Reply& reply, const Step& step, std::string* stopped,
                         std::string* feedback) {
  using Next = Assessment::Next;
  Assessment assessment = NoAnswer(reply.answer);
  if (reply.has_source()) {
    Result<Assessment> made = Assess(step.verdict, shared_.setup.settings.target);
    if (!made)
      return {Kind::kBroken, fmt::format("{}: {}", inside_.string(), made.error().message)};
    assessment = std::move(*made);
  }
  const int rounds = shared_.setup.settings.rounds;
  // Not the candidate's: it is judged again when the run goes on.
  if (assessment.next == Next::kInternal)
    return {Kind::kFailed, "internal_error of the judge: " + step.round.text};
  if (assessment.next == Next::kFast) {
    *stopped = "fast";
  } else if (step.round.round >= rounds) {
    *stopped = "rounds";
  }
  if (!stopped->empty()) return {};
  kind_ = assessment.next == Next::kImprove ? "improve" : "repair";
  // Once it has been answered it stays as it was told; until then it may say other things, because
  // there may be more rounds than before.
  const fs::path next =
      RoundFolder(model_name(), problem_name(), number_, step.round.round + 1) / "reply.json";
  if (shared_.store.Has(next) && shared_.store.Has(inside_ / "feedback.md")) {
    Result<std::string> text = shared_.store.Read(inside_ / "feedback.md");
    if (!text) return {Kind::kBroken, text.error().message};
    *feedback = std::move(*text);
    return {};
  }
  if (asks_ == nullptr) return {Kind::kOpen, ""};
  assessment.feedback.round = step.round.round;
  assessment.feedback.rounds = rounds;
  Result<std::string> text =
      problem::MakeFeedback(shared_.plan.prompt, asked_.context, assessment.feedback);
  if (!text) return {Kind::kFailed, text.error().message};
  *feedback = std::move(*text);
  return Write(inside_ / "feedback.md", *feedback);
}

ChainEnd Chain::Finish(std::string stopped) {
  sample_.stopped = std::move(stopped);
  const std::string json = ToJson(sample_);
  const fs::path path = folder_ / "sample.json";
  if (const Result<std::string> stored = shared_.store.Read(path); stored && *stored == json)
    return {};
  if (asks_ == nullptr) return {Kind::kOpen, ""};
  if (ChainEnd end = Write(path, json); !Goes(end)) return end;
  shared_.store.Remove(folder_ / "unfinished.txt");
  return {};
}

model::Ask Chain::AskFor(const std::vector<model::Message>& messages, int round) const {
  model::Ask ask;
  ask.messages = messages;
  ask.problem = asked_.problem;
  ask.sample = number_;
  ask.round = round;
  ask.folder = shared_.store.folder() / inside_;
  if (shared_.plan.models[model_].protocol == model::Protocol::kCommand) {
    ask.hidden = HiddenFrom(shared_.plan);
    if (shared_.plan.models[model_].check_tool)
      ask.check = [this](const std::string& source, const Stop& stop) {
        return CheckVisible(source, stop);
      };
  }
  return ask;
}

std::string Chain::CheckVisible(const std::string& source, const Stop& stop) const {
  JudgeTask task;
  task.problem = asked_.problem->folder;
  task.source = source;
  task.profile = shared_.plan.profile;
  task.seed = judge::HashOf({"seed of a tool", asked_.seed});
  task.visible = true;
  const Result<std::string> judged = shared_.executor->Judge(task, stop);
  if (!judged) return "internal_error\n" + judged.error().message + "\n";
  const Result<Assessment> made = Assess(*judged, 1);
  if (!made) return "internal_error\n";
  std::string said = made->feedback.verdict + "\n";
  for (const std::string& more : {made->feedback.text, made->feedback.log})
    if (!more.empty()) said += problem::Shortened(more, kCheckLimit) + "\n";
  return said;
}

// `*refused`: a later round's request is not taken; the chain ends with what it has.
ChainEnd Chain::Request(const std::vector<model::Message>& messages, const std::string& key,
                        int round, bool* refused) {
  // An earlier process was told so already.
  if (round > 1) {
    if (const Result<std::string> text = shared_.store.Read(folder_ / "sample.json")) {
      const Result<Sample> stored = SampleFrom(*text);
      if (stored && stored->stopped == "request" &&
          stored->rounds.size() == sample_.rounds.size()) {
        *refused = true;
        return {};
      }
    }
  }
  if (asks_ == nullptr) return {Kind::kOpen, ""};
  if (shared_.stop.requested()) return {Kind::kStopped, "stopped"};
  if (shared_.no_money || shared_.poor[model_]) return {Kind::kNoMoney, "the budget is spent"};
  if (ChainEnd end = Write(inside_ / "prompt.json", ToJson(messages)); !Goes(end)) return end;
  shared_.observer.OnAsk(true);
  model::Outcome outcome = asks_->Generate(AskFor(messages, round), shared_.stop);
  shared_.observer.OnAsk(false);
  if (!outcome) {
    const model::Failure& failure = outcome.error();
    shared_.store.Log(fmt::format("{} {} {} round {}: no reply ({}): {}", model_name(),
                                  problem_name(), number_, round, model::NameOf(failure.kind),
                                  failure.message));
    switch (failure.kind) {
      case model::Failure::Kind::kStopped:
        return {Kind::kStopped, "stopped"};
      case model::Failure::Kind::kBudget: {
        const double spent = shared_.budget.spent(), limit = shared_.budget.limit();
        if (spent >= limit) shared_.no_money = true;
        shared_.poor[model_] = true;
        const double most = asks_->MostDollars(messages);
        for (double known = shared_.refused_dollars;
             known < most && !shared_.refused_dollars.compare_exchange_weak(known, most);) {
        }
        if (spent >= limit)
          return {Kind::kNoMoney, fmt::format("the budget of ${:.2f} is spent (${:.2f}): continue "
                                              "with a larger --budget",
                                              limit, spent)};
        return {Kind::kNoMoney,
                fmt::format("the budget is too small for a reply that may cost ${:.2f} (${:.2f} of "
                            "${:.2f} spent): continue with a larger --budget",
                            most, spent, limit)};
      }
      case model::Failure::Kind::kModel:
        return {Kind::kModel, failure.message};
      case model::Failure::Kind::kRequest:
        *refused = round > 1;
        if (*refused) return {};
        return {Kind::kFailed, failure.message};
      case model::Failure::Kind::kGaveUp:
        return {Kind::kFailed, failure.message};
      case model::Failure::Kind::kOurs:
        return {Kind::kBroken, failure.message};
    }
  }
  ReplyRecord record;
  record.key = key;
  record.finish = outcome->finish;
  record.usage = outcome->usage;
  record.usage_known = outcome->usage_known;
  record.dollars = outcome->dollars;
  record.wasted_dollars = outcome->wasted_dollars;
  record.served_by = outcome->served_by;
  record.attempts = outcome->attempts;
  record.text = outcome->text;
  record.request = std::move(outcome->request);
  if (ChainEnd end = Write(inside_ / "reply.json", ToJson(record)); !Goes(end)) return end;
  if (ChainEnd end = Copy(record); !Goes(end)) return end;
  if (ChainEnd end = Write(inside_ / "reply.raw", outcome->raw); !Goes(end)) return end;
  shared_.observer.OnReply(model_name(), problem_name(), *outcome);
  return {};
}

// For people; a process that was killed may not have come to it.
ChainEnd Chain::Copy(const ReplyRecord& record) const {
  if (!shared_.store.Has(inside_ / "reply.txt")) {
    if (ChainEnd end = Write(inside_ / "reply.txt", record.text); !Goes(end)) return end;
  }
  if (record.request.empty() || shared_.store.Has(inside_ / "request.json")) return {};
  return Write(inside_ / "request.json", record.request);
}

ChainEnd Chain::Load(const std::vector<model::Message>& messages, const std::string& key,
                     Reply* reply) const {
  const Result<std::string> json = shared_.store.Read(inside_ / "reply.json");
  if (!json) return {Kind::kBroken, json.error().message};
  Result<ReplyRecord> record = ReplyFrom(*json);
  if (!record)
    return {Kind::kBroken, fmt::format("{}: {}; remove this file to repeat the request",
                                       inside_.string(), record.error().message)};
  if (record->key != key) {
    const Result<std::string> asked = shared_.store.Read(inside_ / "prompt.json");
    const bool prompt = asked && *asked != ToJson(messages);
    return {
        Kind::kBroken,
        fmt::format("{} contains the reply to another request ({} differs): choose another --out",
                    inside_.string(), prompt ? "the prompt" : "the model or the problem")};
  }
  reply->answer = AnswerOf(*record, record->text, asked_.region);
  reply->record = std::move(*record);
  return {};
}

ChainEnd Chain::Judge(const std::string& source, std::string* verdict) {
  if (ChainEnd end = Write(inside_ / "source.cu", source); !Goes(end)) return end;
  const std::string key = judge::HashOf({"judged 1", source, asked_.judged});
  JudgeTask task;
  task.problem = asked_.problem->folder;
  task.source = source;
  task.profile = shared_.plan.profile;
  task.seed = asked_.seed;
  task.band = shared_.plan.band;
  task.on_repeat = [this](const std::string& why) {
    shared_.store.Log("judged again: " + why);
    shared_.observer.OnRepeat(why);
  };
  bool started = false;
  task.on_start = [&] {
    started = true;
    shared_.observer.OnJudging(true);
  };
  shared_.observer.OnJudge(true);
  const bool trace = shared_.setup.settings.trace;
  const Result<std::string> judged =
      shared_.judgements.Get(key, std::move(task), trace, shared_.stop);
  if (started) shared_.observer.OnJudging(false);
  shared_.observer.OnJudge(false);
  if (shared_.stop.requested() && !judged) return {Kind::kStopped, "stopped"};
  if (!judged) return {Kind::kFailed, judged.error().message};
  if (ChainEnd end = Write(inside_ / "verdict.json", *judged); !Goes(end)) return end;
  if (ChainEnd end = Write(inside_ / "compiler.log", LogOf(*judged)); !Goes(end)) return end;
  if (trace) {
    std::error_code error;
    const fs::path to = shared_.store.folder() / inside_ / "trace.json";
    fs::remove(to, error);
    fs::create_hard_link(shared_.store.folder() / Judgements::TraceOf(key), to, error);
    if (error) fs::copy_file(shared_.store.folder() / Judgements::TraceOf(key), to, error);
  }
  *verdict = *judged;
  return {};
}

}  // namespace allranks::campaign
