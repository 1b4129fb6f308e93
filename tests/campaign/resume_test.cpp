// A run that ends anywhere goes on as if nothing had happened: what was paid for is not asked for
// again, what was judged is not judged again, and what lies there of another run is left alone.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "doubles.h"

namespace allranks::campaign {
namespace {

namespace fs = std::filesystem;

// All files but those with times of day.
std::map<std::string, std::string> FilesOf(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder).string();
    if (entry.is_regular_file() && name != "log.txt" && name != "lock")
      files[name] = ReadWhole(entry.path()).value();
  }
  return files;
}

int LinesOf(const fs::path& file) {
  const Result<std::string> text = ReadWhole(file);
  return text ? static_cast<int>(std::count(text->begin(), text->end(), '\n')) : 0;
}

class ResumeTest : public CampaignTest {
 protected:
  // Two problems, two samples, two rounds: passes, repairs, improvements, replies without a source.
  static model::Outcome Answer(const model::Ask& ask) {
    if (ask.round == 2) return Says(Fenced(Code(ask.sample == 0 ? "pass" : "drawn slow")));
    if (ask.problem->slug == "flag_pingpong")
      return Says(ask.sample == 0 ? "no code" : Fenced(Code("slow")));
    return Says(Fenced(Code(ask.sample == 0 ? "compile" : "visible")));
  }

  Plan Small(const fs::path& out, FakeProvider* provider) {
    Plan plan = PlanFor(out, provider);
    plan.samples = 2;
    plan.rounds = 2;
    return plan;
  }

  // A chain without a source at first, one that is only improved, and one that ends in a source
  // that was judged before.
  static model::Outcome ShortAnswer(const model::Ask& ask) {
    if (ask.round == 2) return Says(Fenced(Code(ask.sample == 1 ? "drawn slow" : "pass")));
    const char* const first[] = {"no code", "slow", "visible"};
    return Says(ask.sample == 0 ? first[0] : Fenced(Code(first[ask.sample])));
  }

  // In a process of its own, which ends at the `k`-th write; what it asks and judges is counted in
  // files. Whether it came to its end.
  bool RunUntilWrite(Plan plan, int k, std::string* written) {
    const pid_t pid = fork();
    if (pid == 0) {
      FakeProvider provider([&](const std::string&, const model::Ask& ask) {
        (void)AppendLine(folder_ / "asked", "x");
        return ShortAnswer(ask);
      });
      provider.concurrency = 1;
      executor_.at_once = 0;  // one thread: the k-th write is the same in every repetition
      executor_.on_judge = [&](const JudgeTask&) { (void)AppendLine(folder_ / "judged", "x"); };
      plan.make_model = provider.Maker();
      int count = 0;
      plan.before_write = [&](const fs::path& path) -> Status {
        if (++count == k) {
          (void)WriteWhole(folder_ / "written", path.filename().string());
          _exit(9);
        }
        return Ok();
      };
      const Result<Ending> ending = Execute(plan, &executor_, stop_, nullptr);
      _exit(ending && ending->unfinished == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_NE(WEXITSTATUS(status), 1);
    if (const Result<std::string> name = ReadWhole(folder_ / "written")) *written = *name;
    return WEXITSTATUS(status) == 0;
  }
};

TEST_F(ResumeTest, KilledAtAnyWriteItEndsAsIfUndisturbed) {
  FakeProvider nobody([](const std::string&, const model::Ask& ask) { return ShortAnswer(ask); });
  Plan plan = PlanFor(folder_ / "whole", &nobody);
  plan.problems.resize(1);
  plan.samples = 3;
  plan.rounds = 2;
  std::string written;
  ASSERT_TRUE(RunUntilWrite(plan, 0, &written));
  const auto expected = FilesOf(folder_ / "whole");
  const int requests = LinesOf(folder_ / "asked"), judgements = LinesOf(folder_ / "judged");
  EXPECT_EQ(requests, 6);
  EXPECT_EQ(judgements, 4);  // one source comes twice
  int k = 0;
  for (bool killed = true; killed;) {
    ++k;
    for (const char* name : {"asked", "judged", "written"}) fs::remove(folder_ / name);
    const fs::path out = folder_ / fmt::format("run-{}", k);
    written.clear();
    plan.out = out;
    killed = !RunUntilWrite(plan, k, &written);
    ASSERT_TRUE(!killed || RunUntilWrite(plan, 0, &written)) << k;
    auto files = FilesOf(out);
    // The folder's own name is in its settings.
    const auto name = files["run.json"].find(fmt::format("\"run-{}\"", k));
    ASSERT_NE(name, std::string::npos);
    files["run.json"].replace(name, fmt::format("\"run-{}\"", k).size(), "\"whole\"");
    // What was received, byte by byte, is not kept for going on.
    auto undisturbed = expected;
    const std::set<std::string> copies = {"reply.txt", "request.json", "reply.raw"};
    if (copies.contains(written)) {
      const auto is_raw = [](const auto& file) { return file.first.ends_with("reply.raw"); };
      std::erase_if(undisturbed, is_raw);
      std::erase_if(files, is_raw);
    }
    EXPECT_EQ(files, undisturbed) << "killed before writing " << written;
    // Only what was under way is done again.
    EXPECT_EQ(LinesOf(folder_ / "asked"), requests + (killed && written == "reply.json" ? 1 : 0))
        << written;
    const bool judging = killed && written.size() > 64;  // judged/HASH.json
    EXPECT_EQ(LinesOf(folder_ / "judged"), judgements + (judging ? 1 : 0)) << written;
    fs::remove_all(out);
  }
  EXPECT_GT(k, 45);  // every write was tried
}

TEST_F(ResumeTest, AFinishedRunDoesNothing) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
  Plan plan = Small(folder_ / "run", &provider);
  Run(plan);
  const auto before = FilesOf(plan.out);
  const int calls = provider.calls();
  // Not even a key is needed.
  plan.make_model = [](const model::Entry&, model::Budget,
                       model::Listener*) -> Result<std::unique_ptr<model::Model>> {
    return Fail("no key");
  };
  plan.before_write = [](const fs::path& path) -> Status {
    return Fail("{} is written", path.string());
  };
  EXPECT_EQ(Run(plan).finished, 4);
  EXPECT_EQ(provider.calls(), calls);
  EXPECT_EQ(FilesOf(plan.out), before);
}

TEST_F(ResumeTest, OtherSettingsAreRefusedBeforeAnythingIsSent) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
  Plan first = Small(folder_ / "run", &provider);
  first.samples = 1;
  Run(first);
  const auto before = FilesOf(first.out);
  const int calls = provider.calls();
  const auto refused = [&](const char* word, const std::function<void(Plan*)>& change) {
    Plan plan = first;
    plan.samples = 3;  // there would be something to do
    change(&plan);
    const Result<Ending> ending = Execute(plan, &executor_, stop_, nullptr);
    ASSERT_FALSE(ending) << word;
    EXPECT_NE(ending.error().message.find(word), std::string::npos) << ending.error().message;
    EXPECT_NE(ending.error().message.find("--out"), std::string::npos) << ending.error().message;
    EXPECT_FALSE(Foresee(plan)) << word;
  };
  refused("seed", [](Plan* plan) { plan->seed = "other"; });
  refused("--band", [](Plan* plan) { plan->band = 3; });
  refused("--temperature", [](Plan* plan) { plan->temperature = 0.5; });
  refused("--few-shot", [](Plan* plan) { plan->few_shot = 1; });
  refused("--target", [](Plan* plan) { plan->target = 0.5; });
  refused("--trace", [](Plan* plan) { plan->trace = true; });
  refused("version", [](Plan* plan) { plan->version = "2"; });
  refused("prompt", [](Plan* plan) { plan->prompt.parts["task"] += "more"; });
  refused("model", [](Plan* plan) { plan->models[0].source = "elsewhere"; });
  refused("judge", [&](Plan* plan) {
    EXPECT_TRUE(WriteWhole(folder_ / "program", "x"));
    plan->tools.allranks = folder_ / "program";
  });
  refused("flag_pingpong", [&](Plan* plan) {
    const fs::path copy = folder_ / "flag_pingpong";
    fs::copy(plan->problems[1].folder, copy, fs::copy_options::recursive);
    std::ofstream(copy / "statement.md", std::ios::app) << "more\n";
    plan->problems[1].folder = copy;
  });
  refused("profile", [&](Plan* plan) {
    fs::copy_file(plan->profile, folder_ / "h100x8.toml");
    std::ofstream(folder_ / "h100x8.toml", std::ios::app) << "# more\n";
    plan->profile = folder_ / "h100x8.toml";
  });
  EXPECT_EQ(provider.calls(), calls);
  EXPECT_EQ(FilesOf(first.out), before);
}

TEST_F(ResumeTest, RepliesToOtherMessagesAreNeitherTakenNorOverwritten) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
  Plan plan = Small(folder_ / "run", &provider);
  Run(plan);
  const int calls = provider.calls();
  // A feedback that was changed by hand: the second round answered something else.
  const fs::path feedback = plan.out / RoundFolder("m", "flag_pingpong", 0, 1) / "feedback.md";
  const std::string before = *ReadWhole(feedback);
  ASSERT_TRUE(WriteWhole(feedback, before + "more"));
  Result<Ending> ending = Execute(plan, &executor_, stop_, nullptr);
  ASSERT_FALSE(ending);
  EXPECT_NE(ending.error().message.find("the prompt differs"), std::string::npos)
      << ending.error().message;
  ASSERT_TRUE(WriteWhole(feedback, before));
  EXPECT_TRUE(Execute(plan, &executor_, stop_, nullptr));
  // Damaged files are named.
  const fs::path reply = plan.out / RoundFolder("m", "flag_pingpong", 0, 1) / "reply.json";
  ASSERT_TRUE(WriteWhole(reply, "{"));
  ending = Execute(plan, &executor_, stop_, nullptr);
  ASSERT_FALSE(ending);
  EXPECT_NE(ending.error().message.find("flag_pingpong/0/round-1"), std::string::npos);
  EXPECT_EQ(provider.calls(), calls);
}

TEST_F(ResumeTest, ARunIsExtended) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
  // In small steps ...
  Plan plan = Small(folder_ / "run", &provider);
  const Plan all = plan;
  plan.problems.resize(1);
  plan.samples = plan.rounds = 1;
  Run(plan);
  EXPECT_EQ(provider.calls(), 1);
  plan.rounds = 2;
  Run(plan);
  EXPECT_EQ(provider.calls(), 2);
  plan.samples = 2;
  Run(plan);
  plan.problems = all.problems;
  Run(plan);
  EXPECT_EQ(provider.calls(), 8);
  plan.models.push_back(Entry("n"));
  EXPECT_EQ(Run(plan).finished, 8);
  EXPECT_EQ(provider.calls(), 16);
  // ... or at once: the same in the end.
  Plan other = plan;
  other.out = folder_ / "other/run";
  Run(other);
  auto steps = FilesOf(plan.out), once = FilesOf(other.out);
  EXPECT_EQ(steps, once);
  // Less than there is asks for nothing and takes nothing away.
  plan.rounds = plan.samples = 1;
  plan.models = {Entry("n")};
  EXPECT_EQ(Run(plan).finished, 2);
  EXPECT_EQ(FilesOf(plan.out), steps);
  EXPECT_EQ(LoadRun(plan.out)->samples.size(), 8u);
}

// What has not been answered yet is told with the rounds that there are now.
TEST_F(ResumeTest, FeedbackFollowsAnExtension) {
  std::atomic<bool> network = true;
  FakeProvider provider([&](const std::string&, const model::Ask& ask) {
    if (!network && ask.round > 1) return Fails(model::Failure::Kind::kGaveUp, "no network");
    return Says(Fenced(Code("visible")));
  });
  Plan whole = PlanFor(folder_ / "whole", &provider);
  whole.problems.resize(1);
  whole.rounds = 3;
  Run(whole);
  Plan plan = whole;
  plan.out = folder_ / "cut";
  plan.rounds = 2;
  network = false;
  EXPECT_EQ(Run(plan).unfinished, 1);
  network = true;
  plan.rounds = 3;
  EXPECT_EQ(Run(plan).finished, 1);
  const auto told = [](const Plan& one) {
    return *ReadWhole(one.out / RoundFolder("m", "allreduce_one_shot", 0, 1) / "feedback.md");
  };
  EXPECT_EQ(told(plan), told(whole));
}

TEST_F(ResumeTest, TwoProcessesDoNotWorkOnOneRun) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
  Plan plan = Small(folder_ / "run", &provider);
  std::string second;
  provider.on_ask = [&] {
    if (!second.empty()) return;
    const Result<Ending> ending = Execute(plan, &executor_, stop_, nullptr);
    second = ending ? "ran" : ending.error().message;
  };
  provider.concurrency = 1;
  executor_.at_once = 0;
  EXPECT_EQ(Run(plan).finished, 4);
  EXPECT_NE(second.find("another process"), std::string::npos) << second;
  EXPECT_EQ(Run(plan).finished, 4);
}

// The disk is full at the k-th write, whichever it is: everything ends with the reason, and goes on
// when there is space again.
TEST_F(ResumeTest, AFullDiskEndsEverythingAndLosesNothing) {
  for (int k = 1; k < 60; k += 3) {
    FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
    Plan plan = Small(folder_ / fmt::format("run-{}", k), &provider);
    std::atomic<int> count = 0;
    plan.before_write = [&](const fs::path& path) -> Status {
      if (++count < k) return Ok();
      return Fail("cannot write {}: No space left on device", path.string());
    };
    const Result<Ending> ending = Execute(plan, &executor_, stop_, nullptr);
    const std::string why = ending ? ending->broken : ending.error().message;
    EXPECT_NE(why.find("No space left"), std::string::npos) << k;
    EXPECT_TRUE(!ending || ending->unfinished > 0);
    const int before = provider.calls();
    plan.before_write = nullptr;
    EXPECT_EQ(Run(plan).finished, 4) << k;
    // In flight there were no more than there are threads.
    EXPECT_LE(provider.calls(), 8 + 4);
    EXPECT_LE(before, 8);
  }
}

// The same by the kernel: files cannot grow beyond a bound.
TEST_F(ResumeTest, AFullDiskAsTheKernelSaysIt) {
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGXFSZ, SIG_IGN);
    FakeProvider provider([](const std::string&, const model::Ask& ask) {
      if (ask.sample == 1) return Says(Fenced(Code("pass " + std::string(100'000, 'x'))));
      return Says(Fenced(Code("pass")));
    });
    Plan plan = Small(folder_ / "run", &provider);
    const rlimit limit{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Result<Ending> ending = Execute(plan, &executor_, stop_, nullptr);
    const bool right = ending && ending->unfinished > 0 && !ending->broken.empty();
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  for (const auto& entry : fs::recursive_directory_iterator(folder_))
    EXPECT_NE(entry.path().extension(), ".part") << entry.path();
}

// Whatever a file holds: it is taken, or it is named, and nothing is sent or changed meanwhile.
TEST_F(ResumeTest, DamagedFilesHarmNobody) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
  Plan plan = Small(folder_ / "run", &provider);
  plan.problems.resize(1);
  Run(plan);
  const int calls = provider.calls();
  const auto files = FilesOf(plan.out);
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  int refused = 0;
  for (int i = 0; i < 150; ++i) {
    auto file = files.begin();
    std::advance(file, below(files.size()));
    std::string bytes = file->second;
    if (bytes.empty()) continue;
    const std::size_t at = below(bytes.size());
    const char* const numbers[] = {"-1", "1e999", "99999999999999999999", "null", "\"\xff\"", "[]"};
    switch (below(4)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.insert(at, numbers[below(6)]);
        break;
      default:  // a member's value
        if (const std::size_t colon = bytes.find(": ", at); colon != std::string::npos)
          bytes.replace(colon + 2, bytes.find_first_of(",\n", colon) - colon - 2,
                        numbers[below(6)]);
    }
    ASSERT_TRUE(WriteWhole(plan.out / file->first, bytes));
    const Result<campaign::Run> run = LoadRun(plan.out);
    const Result<Estimate> ahead = Foresee(plan);
    if (!run || !ahead || !run->unfinished.empty()) ++refused;
    ASSERT_TRUE(WriteWhole(plan.out / file->first, file->second));
  }
  EXPECT_GT(refused, 30);
  EXPECT_EQ(provider.calls(), calls);
  EXPECT_EQ(FilesOf(plan.out), files);
}

TEST_F(ResumeTest, WhatIsAheadIsForeseen) {
  FakeProvider provider([](const std::string&, const model::Ask& ask) { return Answer(ask); });
  Plan plan = Small(folder_ / "run", &provider);
  plan.models[0].protocol = model::Protocol::kOpenAiChat;
  plan.models[0].price = {.known = true, .input = 0, .cached_input = 0, .output = 10};
  plan.models[0].parameters.max_output_tokens = 1000;
  plan.models.push_back(Entry("free"));
  Result<Estimate> estimate = Foresee(plan);
  ASSERT_TRUE(estimate) << estimate.error().message;
  EXPECT_FALSE(fs::exists(plan.out));
  ASSERT_EQ(estimate->rows.size(), 2u);
  EXPECT_EQ(estimate->rows[0].generations, 8);
  EXPECT_EQ(estimate->rows[0].output_tokens, 8000);
  EXPECT_DOUBLE_EQ(estimate->rows[0].dollars, 0.08);
  EXPECT_GT(estimate->rows[0].input_tokens, 0);
  EXPECT_EQ(estimate->rows[1].dollars, 0);
  EXPECT_EQ(estimate->done, 0);
  plan.rounds = 1;
  Run(plan);
  plan.rounds = 2;
  estimate = Foresee(plan);
  EXPECT_EQ(estimate->rows[0].generations, 4);
  EXPECT_EQ(provider.calls(), 8);
}

}  // namespace
}  // namespace allranks::campaign
