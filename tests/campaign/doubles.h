// A model, a judge and a plan for tests of campaigns: replies are written by the test, and the
// judge does what a comment in the source says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/files.h"
#include "campaign/campaign.h"
#include "judge/report.h"

namespace allranks::campaign {

inline std::string Fenced(const std::string& code) {
  return "Here it is.\n```cuda\n" + code + "\n```\n";
}

// `what`: words for FakeExecutor.
inline std::string Code(const std::string& what) {
  return "// does: " + what + "\n__global__ void kernel(int* x) { *x = 1; }\nvoid launch() {}";
}

// Says a judgement by the words after "does:" in the source:
//   pass | slow | drawn (fails there) | visible | timed | compile | internal | crash (no judgement)
class FakeExecutor : public Executor {
 public:
  Result<std::string> Judge(const JudgeTask& task, const Stop& stop) override {
    {
      const std::lock_guard lock(mutex_);
      ++judged[task.source];
      seeds[task.problem.filename().string()] = task.seed;
    }
    if (on_judge) on_judge(task);
    if (milliseconds > 0 && stop.Sleep(std::chrono::milliseconds(milliseconds)))
      return Fail("stopped");
    const auto does = [&](const char* word) {
      return task.source.find(std::string("does: ") + word) != std::string::npos;
    };
    if (does("crash")) return Fail("the judge crashed");
    problem::Problem problem;
    problem.slug = task.problem.filename().string();
    problem.params = {"n"};
    return judge::ToJson(problem, JudgementFor(does));
  }
  int jobs() const override { return at_once; }

  int at_once = 2;
  int milliseconds = 0;
  std::function<void(const JudgeTask&)> on_judge;
  std::map<std::string, int> judged;  // by source
  std::map<std::string, std::string> seeds;

 private:
  static judge::Judgement JudgementFor(const std::function<bool(const char*)>& does) {
    judge::Judgement judgement;
    judgement.profile = "h100x8";
    if (does("internal")) {
      judgement.verdict = judge::Verdict::kInternalError;
      judgement.text = "no memory";
      return judgement;
    }
    if (does("compile")) {
      judgement.verdict = judge::Verdict::kCompileError;
      judgement.text = "nvcc refused it";
      judgement.log = "candidate.cu(3): error: NVCC_SAID";
      return judgement;
    }
    using CaseKind = problem::Case::Kind;
    const std::pair<const char*, CaseKind> cases[] = {{"visible.w2.n8", CaseKind::kVisible},
                                                      {"timed.w8.n4096", CaseKind::kTimed},
                                                      {"drawn.0", CaseKind::kDrawn}};
    bool over = false;
    for (const auto& [name, kind] : cases) {
      judge::CaseResult result;
      result.what.name = name;
      result.what.kind = kind;
      result.what.world = 8;
      result.what.params = {4096};
      const std::string word = std::string(name).substr(0, std::string(name).find('.'));
      if (!over && does(word.c_str())) {
        result.verdict = judgement.verdict = judge::Verdict::kWrongResult;
        result.text = judgement.text = "WORDS_ON_" + word;
        over = true;
      } else if (!over) {
        result.ran = true;
        result.call_ns = does("slow") || does("drawn slow") ? 4000 : 1000;
        result.roofline_ns = 1000;
        result.reference_ns = 2000;
      }
      judgement.cases.push_back(result);
    }
    if (judgement.verdict == judge::Verdict::kPass) judgement.score = does("slow") ? 0.25 : 1;
    return judgement;
  }
  std::mutex mutex_;
};

struct Asked1 {
  std::string model, problem;
  int sample, round;
  auto operator<=>(const Asked1&) const = default;
};

// All models of a test in one: who is asked what, and what it says.
class FakeProvider {
 public:
  using Answers = std::function<model::Outcome(const std::string& model, const model::Ask& ask)>;
  explicit FakeProvider(Answers answers) : answers_(std::move(answers)) {}

  auto Maker() {
    return [this](const model::Entry& entry, model::Budget budget,
                  model::Listener*) -> Result<std::unique_ptr<model::Model>> {
      return std::make_unique<One>(this, entry.name, budget);
    };
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(asked.size());
  }

  std::vector<Asked1> asked;
  std::map<Asked1, std::vector<model::Message>> messages;
  std::function<void()> on_ask;
  double dollars = 0;                    // of each reply
  std::map<std::string, double> prices;  // of some models' replies
  int concurrency = 2;

 private:
  class One : public model::Model {
   public:
    One(FakeProvider* provider, std::string name, model::Budget budget)
        : provider_(provider), name_(std::move(name)), budget_(std::move(budget)) {}
    model::Outcome Generate(const model::Ask& ask, const Stop& stop) override {
      if (stop.requested())
        return tl::unexpected(model::Failure{model::Failure::Kind::kStopped, "stopped", 0});
      const double price = MostDollars(ask.messages);
      if (!budget_.Reserve(price))
        return tl::unexpected(model::Failure{model::Failure::Kind::kBudget, "no money", 0});
      {
        const std::lock_guard lock(provider_->mutex_);
        const Asked1 what{name_, ask.problem->slug, ask.sample, ask.round};
        provider_->asked.push_back(what);
        provider_->messages[what] = ask.messages;
      }
      if (provider_->on_ask) provider_->on_ask();
      model::Outcome outcome = provider_->answers_(name_, ask);
      budget_.Settle(price, outcome ? price : 0);
      if (outcome) outcome->dollars = price;
      return outcome;
    }
    double MostDollars(const std::vector<model::Message>&) const override {
      const auto found = provider_->prices.find(name_);
      return found == provider_->prices.end() ? provider_->dollars : found->second;
    }
    int concurrency() const override { return provider_->concurrency; }

   private:
    FakeProvider* provider_;
    std::string name_;
    model::Budget budget_;
  };

  Answers answers_;
  mutable std::mutex mutex_;
};

inline model::Outcome Says(const std::string& text) {
  model::Reply reply;
  reply.text = text;
  reply.raw = "{" + text + "}";
  reply.request = "{\"asked\": true}\n";
  reply.usage = {.input = 10, .cached_input = 0, .output = 20, .reasoning = 0};
  reply.usage_known = true;
  return reply;
}

inline model::Outcome Fails(model::Failure::Kind kind, const std::string& message) {
  return tl::unexpected(model::Failure{kind, message, 0});
}

class CampaignTest : public testing::Test {
 protected:
  CampaignTest() {
    char name[] = "/dev/shm/allranks-campaign-XXXXXX";
    char other[] = "/tmp/allranks-campaign-XXXXXX";
    const char* made = mkdtemp(name);
    folder_ = made != nullptr ? made : mkdtemp(other);
  }
  ~CampaignTest() override { std::filesystem::remove_all(folder_); }

  static model::Entry Entry(const std::string& name) {
    model::Entry entry;
    entry.name = name;
    entry.protocol = model::Protocol::kReplay;
    entry.source = "of " + name;
    return entry;
  }

  static Plan PlanFor(const std::filesystem::path& out, FakeProvider* provider) {
    const std::filesystem::path root = ALLRANKS_SOURCE_DIR;
    Plan plan;
    plan.out = out;
    plan.models = {Entry("m")};
    for (const char* slug : {"collective/allreduce_one_shot", "p2p/flag_pingpong"})
      plan.problems.push_back(problem::Load(root / "problems" / slug).value());
    plan.prompt_folder = root / "share/prompts";
    plan.prompt = problem::LoadPrompt("default", plan.prompt_folder).value();
    plan.profile = root / "profiles/h100x8.toml";
    plan.version = "1";
    plan.seed = "seed";
    plan.make_model = provider->Maker();
    return plan;
  }

  Ending Run(const Plan& plan, Observer* observer = nullptr) {
    Result<Ending> ending = Execute(plan, &executor_, stop_, observer);
    EXPECT_TRUE(ending) << ending.error().message;
    return ending ? *ending : Ending();
  }

  std::filesystem::path folder_;
  FakeExecutor executor_;
  Stop stop_;
};

}  // namespace allranks::campaign
