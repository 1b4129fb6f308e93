// Chains: what is asked, judged, told and kept in the rounds of a sample, and what a failure ends.
#include <algorithm>
#include <set>
#include <thread>

#include "doubles.h"

namespace allranks::campaign {
namespace {

using model::Message;

// The words of the messages that come after the task.
std::string Later(const std::vector<Message>& messages) {
  std::string all;
  bool task = false;
  for (const Message& message : messages) {
    if (task) all += message.text + "\n";
    task = task || message.role == Message::Role::kUser;
  }
  return all;
}

Sample SampleOf(const std::filesystem::path& run, const std::string& model,
                const std::string& problem, int number) {
  const campaign::Run loaded = LoadRun(run).value();
  for (const Sample& sample : loaded.samples)
    if (sample.model == model && sample.problem == problem && sample.sample == number)
      return sample;
  return {};
}

TEST_F(CampaignTest, OneRoundIsAskedJudgedAndKept) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    return Says(Fenced(Code(ask.sample == 0 ? "pass" : "visible")));
  });
  provider.dollars = 0.5;
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.samples = 2;
  const Ending ending = Run(plan);
  EXPECT_EQ(ending.finished, 4);
  EXPECT_EQ(ending.unfinished, 0);
  EXPECT_DOUBLE_EQ(ending.dollars, 2);
  const Result<campaign::Run> run = LoadRun(folder_ / "run");
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->unfinished.empty());
  ASSERT_EQ(run->samples.size(), 4u);
  const Round& good = run->samples[0].rounds.at(0);
  EXPECT_EQ(good.verdict, "pass");
  EXPECT_EQ(good.kind, "first");
  EXPECT_EQ(good.score, 1);
  EXPECT_EQ(good.dollars, 0.5);
  EXPECT_EQ(good.usage.output, 20u);
  EXPECT_EQ(run->samples[0].stopped, "fast");
  EXPECT_EQ(run->samples[1].rounds.at(0).verdict, "wrong_result");
  EXPECT_EQ(run->samples[1].stopped, "rounds");
  // Everything that record.h promises is there.
  const auto place = folder_ / "run" / RoundFolder("m", "flag_pingpong", 0, 1);
  for (const char* name : {"prompt.json", "request.json", "reply.raw", "reply.txt", "reply.json",
                           "source.cu", "verdict.json", "compiler.log", "round.json"})
    EXPECT_TRUE(std::filesystem::exists(place / name)) << name;
  EXPECT_EQ(*ReadWhole(place / "reply.txt"), Fenced(Code("pass")));
  EXPECT_NE(ReadWhole(place / "source.cu")->find("__global__"), std::string::npos);
  for (const char* name : {"problem.json", "statement.md", "template.cu"})
    EXPECT_TRUE(std::filesystem::exists(folder_ / "run/problems/flag_pingpong" / name)) << name;
}

TEST_F(CampaignTest, ExamplesArePartOfThePromptOfTheEstimateAndOfTheRecord) {
  FakeProvider provider(
      [](const std::string&, const model::Ask&) { return Says(Fenced(Code("pass"))); });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.models[0].protocol = model::Protocol::kOpenAiChat;
  const double before = Foresee(plan)->rows.at(0).input_tokens;
  plan.few_shot = 1;
  for (const problem::Problem& problem : plan.problems)
    plan.examples[problem.slug] = {{"other", "SOLVED " + std::string(3994, 'x') + "\n"}};
  EXPECT_GT(Foresee(plan)->rows.at(0).input_tokens, before + 2 * 4000 / 4);
  Run(plan);
  const auto& messages = provider.messages.at({"m", "flag_pingpong", 0, 1});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_NE(messages[1].text.find("SOLVED"), std::string::npos);
  EXPECT_NE(ReadWhole(folder_ / "run/problems/flag_pingpong/problem.json")
                ->find("\"examples\": [\n    \"other\"\n  ]"),
            std::string::npos);
  EXPECT_EQ(LoadRun(folder_ / "run")->settings.few_shot, 1);
}

TEST_F(CampaignTest, TheSameSourceIsJudgedOnceAndProblemsHaveTheirOwnSeed) {
  FakeProvider provider(
      [](const std::string&, const model::Ask&) { return Says(Fenced(Code("pass"))); });
  executor_.milliseconds = 20;  // others come for it meanwhile
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.models = {Entry("a"), Entry("b")};
  plan.samples = 3;
  EXPECT_EQ(Run(plan).finished, 12);
  int judged = 0;
  for (const auto& [source, count] : executor_.judged) judged += count;
  EXPECT_EQ(judged, 2);  // once per problem
  EXPECT_NE(executor_.seeds.at("flag_pingpong"), executor_.seeds.at("allreduce_one_shot"));
  EXPECT_EQ(provider.calls(), 12);
}

TEST_F(CampaignTest, ARepairRoundIsToldWhatTheJudgeSaid) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    if (ask.problem->slug == "flag_pingpong")
      return Says(ask.round == 1 ? Fenced(Code("compile")) : Fenced(Code("pass")));
    return Says(ask.round == 1 ? "I cannot do this." : Fenced(Code("visible")));
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.rounds = 3;
  EXPECT_EQ(Run(plan).finished, 2);
  const Sample repaired = SampleOf(plan.out, "m", "flag_pingpong", 0);
  ASSERT_EQ(repaired.rounds.size(), 2u);
  EXPECT_EQ(repaired.rounds[0].verdict, "compile_error");
  EXPECT_EQ(repaired.rounds[1].kind, "repair");
  EXPECT_TRUE(repaired.rounds[1].strict);
  EXPECT_EQ(repaired.stopped, "fast");
  const std::string told = Later(provider.messages.at({"m", "flag_pingpong", 0, 2}));
  EXPECT_NE(told.find("NVCC_SAID"), std::string::npos);
  EXPECT_NE(told.find("does: compile"), std::string::npos);  // its own attempt

  const Sample wrong = SampleOf(plan.out, "m", "allreduce_one_shot", 0);
  ASSERT_EQ(wrong.rounds.size(), 3u);
  EXPECT_EQ(wrong.rounds[0].verdict, kNoAnswer);
  EXPECT_EQ(wrong.rounds[0].answer, "none");
  EXPECT_EQ(wrong.rounds[2].verdict, "wrong_result");
  EXPECT_EQ(wrong.stopped, "rounds");
  const std::string history = Later(provider.messages.at({"m", "allreduce_one_shot", 0, 3}));
  EXPECT_NE(history.find("I cannot do this."), std::string::npos);
  EXPECT_NE(history.find("WORDS_ON_visible"), std::string::npos);
}

TEST_F(CampaignTest, SlowPassesAreImprovedAndALaterFailureKeepsThePass) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    return Says(Fenced(Code(ask.round == 1 ? "slow" : "visible")));
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.rounds = 3;
  Run(plan);
  const Sample sample = SampleOf(plan.out, "m", "flag_pingpong", 0);
  ASSERT_EQ(sample.rounds.size(), 3u);
  EXPECT_TRUE(sample.rounds[0].strict);
  EXPECT_EQ(sample.rounds[0].score, 0.25);
  EXPECT_EQ(sample.rounds[1].kind, "improve");
  EXPECT_FALSE(sample.rounds[1].strict);
  EXPECT_EQ(sample.rounds[2].kind, "repair");
  const std::string told = Later(provider.messages.at({"m", "flag_pingpong", 0, 2}));
  EXPECT_NE(told.find("timed.w8.n4096"), std::string::npos);
}

TEST_F(CampaignTest, TheTargetDecidesWhatIsFast) {
  FakeProvider provider(
      [](const std::string&, const model::Ask&) { return Says(Fenced(Code("slow"))); });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.rounds = 3;
  plan.target = 0.2;
  Run(plan);
  EXPECT_EQ(SampleOf(plan.out, "m", "flag_pingpong", 0).stopped, "fast");
  EXPECT_EQ(provider.calls(), 2);
}

// What fails in drawn cases only looks like a pass to the model.
TEST_F(CampaignTest, FailuresInDrawnCasesAreNotTold) {
  FakeProvider provider([](const std::string& name, const model::Ask&) {
    return Says(Fenced(Code(name == "slow" ? "drawn slow" : "drawn")));
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.models = {Entry("slow"), Entry("fast")};
  plan.rounds = 2;
  Run(plan);
  EXPECT_EQ(SampleOf(plan.out, "fast", "flag_pingpong", 0).stopped, "fast");
  const Sample sample = SampleOf(plan.out, "slow", "flag_pingpong", 0);
  ASSERT_EQ(sample.rounds.size(), 2u);
  EXPECT_EQ(sample.rounds[0].verdict, "wrong_result");
  EXPECT_FALSE(sample.rounds[0].strict);
  EXPECT_EQ(sample.rounds[1].kind, "improve");
  const std::string told =
      *ReadWhole(plan.out / RoundFolder("slow", "flag_pingpong", 0, 1) / "feedback.md");
  EXPECT_EQ(told.find("WORDS_ON_drawn"), std::string::npos);
  EXPECT_EQ(told.find("wrong_result"), std::string::npos);
}

TEST_F(CampaignTest, OnlyTheLastAttemptsAreShown) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    return Says(Fenced(Code(fmt::format("visible attempt {}", ask.round))));
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.problems.resize(1);
  plan.rounds = 6;
  Run(plan);
  const auto messages = provider.messages.at({"m", "allreduce_one_shot", 0, 6});
  EXPECT_EQ(messages.size(), 2 + 2 * 3u);
  const std::string told = Later(messages);
  for (int round = 1; round <= 5; ++round)
    EXPECT_EQ(told.find(fmt::format("attempt {}", round)) != std::string::npos, round >= 3);
}

TEST_F(CampaignTest, AModelThatCannotWorkEndsItsOwnChainsOnly) {
  FakeProvider provider([](const std::string& name, const model::Ask&) {
    return name == "bad" ? Fails(model::Failure::Kind::kModel, "the key is not valid")
                         : Says(Fenced(Code("pass")));
  });
  provider.concurrency = 1;
  executor_.at_once = 0;  // one thread per model
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.models = {Entry("bad"), Entry("good")};
  plan.samples = 5;
  struct Told : Observer {
    void OnUnfinished(const Unfinished& what) override { all.push_back(what); }
    std::vector<Unfinished> all;
  } told;
  const Ending ending = Run(plan, &told);
  EXPECT_EQ(ending.finished, 10);
  EXPECT_EQ(ending.unfinished, 10);
  EXPECT_EQ(provider.calls(), 11);
  ASSERT_EQ(told.all.size(), 1u);
  EXPECT_EQ(told.all[0].why, "the key is not valid");
  EXPECT_EQ(LoadRun(plan.out)->unfinished.at(0).why, "the key is not valid");
}

TEST_F(CampaignTest, ARequestThatIsNotTakenEndsTheChainWithWhatItHas) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    if (ask.problem->slug == "flag_pingpong" || ask.round == 2)
      return Fails(model::Failure::Kind::kRequest, "too long");
    return Says(Fenced(Code("slow")));
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.rounds = 4;
  const Ending ending = Run(plan);
  EXPECT_EQ(ending.finished, 1);
  EXPECT_EQ(ending.unfinished, 1);
  ASSERT_EQ(ending.why.size(), 1u);
  EXPECT_EQ(ending.why[0].why, "too long");
  const Sample sample = SampleOf(plan.out, "m", "allreduce_one_shot", 0);
  EXPECT_EQ(sample.rounds.size(), 1u);
  EXPECT_EQ(sample.stopped, "request");
  // Known already: only the other one is asked again.
  const int before = provider.calls();
  Run(plan);
  EXPECT_EQ(provider.calls(), before + 1);
}

TEST_F(CampaignTest, GivingUpLeavesOneSampleForAnotherDay) {
  std::atomic<bool> network = false;
  FakeProvider provider([&](const std::string&, const model::Ask& ask) {
    if (!network && ask.problem->slug == "flag_pingpong")
      return Fails(model::Failure::Kind::kGaveUp, "no network");
    return Says(Fenced(Code("pass")));
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  EXPECT_EQ(Run(plan).unfinished, 1);
  EXPECT_EQ(LoadRun(plan.out)->unfinished.at(0).why, "no network");
  network = true;
  EXPECT_EQ(Run(plan).finished, 2);
  EXPECT_EQ(provider.calls(), 3);
  EXPECT_FALSE(
      std::filesystem::exists(plan.out / SampleFolder("m", "flag_pingpong", 0) / "unfinished.txt"));
}

TEST_F(CampaignTest, OurOwnFaultIsNeverTheModels) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    return Says(Fenced(Code(ask.problem->slug == "flag_pingpong" ? "internal" : "crash")));
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.rounds = 3;
  const Ending ending = Run(plan);
  EXPECT_EQ(ending.finished, 0);
  EXPECT_EQ(ending.unfinished, 2);
  EXPECT_EQ(provider.calls(), 2);  // nobody is asked to repair what is ours
  ASSERT_EQ(ending.why.size(), 2u);
  EXPECT_NE((ending.why[0].why + ending.why[1].why).find("internal_error"), std::string::npos);
  // It is judged again, not asked for again.
  Run(plan);
  EXPECT_EQ(provider.calls(), 2);
  for (const auto& [source, count] : executor_.judged) EXPECT_EQ(count, 2) << source;
}

// A reply that may cost more than there is ends the requests of its own model only.
TEST_F(CampaignTest, AnExpensiveModelDoesNotStopTheOthers) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    return Says(Fenced(Code(ask.round == 1 ? "visible" : "pass")));
  });
  provider.prices = {{"dear", 40}, {"cheap", 0.5}};
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.models = {Entry("dear"), Entry("cheap")};
  plan.samples = 2;
  plan.rounds = 2;
  plan.budget = 5;
  const Ending ending = Run(plan);
  EXPECT_TRUE(ending.out_of_money);
  EXPECT_EQ(ending.finished, 4);
  EXPECT_DOUBLE_EQ(ending.dollars, 4);
  ASSERT_EQ(ending.why.size(), 1u);
  EXPECT_EQ(ending.why[0].model, "dear");
  EXPECT_NE(ending.why[0].why.find("may cost $40.00"), std::string::npos) << ending.why[0].why;
}

TEST_F(CampaignTest, MoneyEndsRequestsAndWhatIsPaidIsJudged) {
  FakeProvider provider(
      [](const std::string&, const model::Ask&) { return Says(Fenced(Code("visible"))); });
  provider.dollars = 1;
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.samples = 4;
  plan.rounds = 2;  // 16 dollars in all
  plan.budget = 5;
  Ending ending = Run(plan);
  EXPECT_TRUE(ending.out_of_money);
  EXPECT_EQ(provider.calls(), 5);
  EXPECT_DOUBLE_EQ(ending.dollars, 5);
  EXPECT_GT(ending.unfinished, 0);
  int rounds = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(plan.out))
    rounds += entry.path().filename() == "round.json" ? 1 : 0;
  EXPECT_EQ(rounds, 5);
  // The same command spends nothing more; a larger budget goes on, and counts what was spent.
  EXPECT_TRUE(Run(plan).out_of_money);
  EXPECT_EQ(provider.calls(), 5);
  plan.budget = 7;
  EXPECT_DOUBLE_EQ(Run(plan).dollars, 7);
  plan.budget = 100;
  ending = Run(plan);
  EXPECT_FALSE(ending.out_of_money);
  EXPECT_EQ(ending.unfinished, 0);
  EXPECT_EQ(provider.calls(), 16);
  EXPECT_DOUBLE_EQ(ending.dollars, 16);
}

TEST_F(CampaignTest, StoppingIsQuickAndKeepsWhatIsThere) {
  FakeProvider provider(
      [](const std::string&, const model::Ask&) { return Says(Fenced(Code("pass"))); });
  executor_.milliseconds = 60'000;
  Plan plan = PlanFor(folder_ / "run", &provider);
  provider.on_ask = [this] { stop_.Request(); };
  const auto begin = std::chrono::steady_clock::now();
  const Ending ending = Run(plan);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_TRUE(ending.stopped);
  EXPECT_EQ(ending.finished, 0);
  EXPECT_TRUE(ending.why.empty());
  const int paid = provider.calls();
  EXPECT_GE(paid, 1);
  const Stop again;
  executor_.milliseconds = 0;
  provider.on_ask = nullptr;
  EXPECT_EQ(Execute(plan, &executor_, again, nullptr)->finished, 2);
  EXPECT_EQ(provider.calls(), 2);
}

// Generation and judging overlap: with one judgement at a time, replies come meanwhile.
TEST_F(CampaignTest, ModelsAreAskedWhileOthersAreJudged) {
  std::atomic<int> judging = 0, asked_meanwhile = 0;
  FakeProvider provider([&](const std::string&, const model::Ask& ask) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (judging > 0) ++asked_meanwhile;
    return Says(Fenced(Code(fmt::format("pass {}", ask.sample))));
  });
  executor_.on_judge = [&](const JudgeTask&) {
    ++judging;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --judging;
  };
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.samples = 5;
  EXPECT_EQ(Run(plan).finished, 10);
  EXPECT_GT(asked_meanwhile, 0);
}

TEST_F(CampaignTest, NamesOfModelsStayInTheRunsFolder) {
  FakeProvider provider(
      [](const std::string&, const model::Ask&) { return Says(Fenced(Code("pass"))); });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.models = {Entry("../../x"), Entry("a/b c"), Entry("..")};
  EXPECT_EQ(Run(plan).finished, 6);
  EXPECT_EQ(LoadRun(plan.out)->samples.size(), 6u);
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    there.insert(entry.path().filename());
  EXPECT_EQ(there, std::set<std::string>{"run"});
}

TEST_F(CampaignTest, RefusalsAndCutRepliesAreNoAnswers) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) {
    model::Outcome outcome = Says(ask.sample == 0 ? "" : "```cuda\n__global__ void k() {\n  int x");
    outcome->finish = ask.sample == 0 ? model::Finish::kRefused : model::Finish::kLength;
    return outcome;
  });
  Plan plan = PlanFor(folder_ / "run", &provider);
  plan.samples = 2;
  plan.rounds = 2;
  EXPECT_EQ(Run(plan).finished, 4);
  EXPECT_EQ(SampleOf(plan.out, "m", "flag_pingpong", 0).rounds.at(0).answer, "refused");
  EXPECT_EQ(SampleOf(plan.out, "m", "flag_pingpong", 1).rounds.at(0).answer, "truncated");
  EXPECT_TRUE(executor_.judged.empty());
  for (const auto& [what, messages] : provider.messages)
    for (const Message& message : messages) EXPECT_FALSE(message.text.empty());
}

}  // namespace
}  // namespace allranks::campaign
