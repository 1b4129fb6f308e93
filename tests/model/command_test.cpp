// Commands as models: the contract of docs/models.md, and what a hostile or broken one can do.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "base/files.h"
#include "model/check_box.h"
#include "model/entry.h"
#include "problem/answer.h"
#include "problem/source.h"
#include "temporary_folder.h"

namespace allranks::model {
namespace {

namespace fs = std::filesystem;

class CommandTest : public ::testing::Test {
 protected:
  CommandTest()
      : problem_(
            problem::Load(fs::path(ALLRANKS_SOURCE_DIR) / "problems/p2p/flag_pingpong").value()) {
    ask_.messages = {{Message::Role::kSystem, "Be brief."}, {Message::Role::kUser, "Solve it."}};
    ask_.problem = &problem_;
    ask_.folder = folder_.path() / "round";
  }

  Outcome Run(const std::string& line, int seconds = 20) {
    Entry entry = FindModel("agent=command:" + line, {}).value();
    entry.seconds = std::chrono::seconds(seconds);
    entry.price = {true, 1, 1, 10};
    return MakeModel(entry, budget_, nullptr).value()->Generate(ask_, stop_);
  }

  problem::Answer AnswerOf(const Reply& reply) {
    const auto form = problem::ReadFile(problem_.folder / "template.cu").value();
    return problem::ReadAnswer(reply.text, reply.finish == Finish::kLength,
                               problem::SplitTemplate(form).value());
  }

  TemporaryFolder folder_;
  problem::Problem problem_;
  Ask ask_;
  Stop stop_;
  Budget budget_{std::numeric_limits<double>::infinity()};
};

TEST_F(CommandTest, WhatItLeavesIsTheAnswer) {
  const auto outcome =
      Run("grep -q 'Be brief.' prompt.md && grep -q 'Solve it.' $ALLRANKS_PROMPT && "
          "test $ALLRANKS_PROBLEM = flag_pingpong && test -s problem.h && test ! -e check && "
          "cp template.cu $ALLRANKS_SOLUTION && echo words");
  ASSERT_TRUE(outcome) << outcome.error().message;
  const problem::Answer answer = AnswerOf(*outcome);
  ASSERT_EQ(answer.kind, problem::Answer::Kind::kSource) << outcome->text;
  EXPECT_EQ(answer.source, problem::ReadFile(problem_.folder / "template.cu").value());
  EXPECT_EQ(outcome->finish, Finish::kStop);
  EXPECT_FALSE(outcome->usage_known);
  EXPECT_EQ(outcome->dollars, 0);
  EXPECT_NE(outcome->raw.find("words"), std::string::npos);
  const std::string attempts = ReadWhole(ask_.folder / "attempts.jsonl").value();
  EXPECT_NE(attempts.find("\"event\":\"begin\""), std::string::npos) << attempts;
  EXPECT_NE(attempts.find("\"outcome\":\"reply\""), std::string::npos) << attempts;
}

TEST_F(CommandTest, WithoutAFileWhatItPrintsIsTheReply) {
  EXPECT_EQ(Run("echo only words")->text, "only words\n");
  // A file wins over what is printed, also where the command ends badly after it.
  const auto outcome = Run("echo no; cp template.cu solution.cu; exit 3");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(AnswerOf(*outcome).kind, problem::Answer::Kind::kSource);
}

TEST_F(CommandTest, FencesInASourceDoNotEndIt) {
  const auto outcome =
      Run("sed 's|^// <<< edit|// ```\\n// ````cuda\\n// <<< edit|' template.cu > solution.cu");
  ASSERT_TRUE(outcome);
  const problem::Answer answer = AnswerOf(*outcome);
  ASSERT_EQ(answer.kind, problem::Answer::Kind::kSource);
  EXPECT_NE(answer.source.find("// ````cuda\n// <<< edit"), std::string::npos) << answer.source;
}

TEST_F(CommandTest, LaterRoundsFindTheEarlierAttempt) {
  const Reply first = Run("{ sed '/<<< edit/d' template.cu; echo '// mine'; echo '// <<< edit'; } "
                          "> solution.cu")
                          .value();
  ask_.messages.push_back({Message::Role::kAssistant, first.text});
  ask_.messages.push_back({Message::Role::kUser, "It deadlocks."});
  ask_.round = 2;
  const auto again = Run("grep -q mine solution.cu && grep -q 'It deadlocks.' prompt.md");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->text, first.text) << "it stands by its earlier attempt";
  const auto broken = Run("exit 1");
  ASSERT_FALSE(broken) << "an old file is no answer of a command that failed";
  EXPECT_EQ(broken.error().kind, Failure::Kind::kGaveUp);
}

TEST_F(CommandTest, EndsThatAreNoAnswers) {
  const auto failed = Run("echo out of credit >&2; exit 1");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, Failure::Kind::kGaveUp);
  EXPECT_NE(failed.error().message.find("out of credit"), std::string::npos);
  const auto unknown = Run("no-such-program-anywhere");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Failure::Kind::kModel);
  const std::string attempts = ReadWhole(ask_.folder / "attempts.jsonl").value();
  EXPECT_NE(attempts.find("\"outcome\":\"failed\""), std::string::npos) << attempts;
}

// Processes of this machine with such an argument, whatever namespace they are in.
int Processes(const std::string& argument) {
  int found = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    std::string line;  // empty if the process has ended: an iterator would throw
    std::getline(file, line);
    found += line.starts_with("sleep") && line.find(argument) != std::string::npos;
  }
  return found;
}

// Three sleepers: one in a session of its own, one that ignores signals, one whose parent is gone.
std::string Sleepers(const std::string& time) {
  return "setsid sleep " + time + " & (trap '' TERM INT HUP; exec sleep " + time + ") & (sleep " +
         time + " &) ; sleep " + time;
}

TEST_F(CommandTest, OutOfTimeEndsEverythingItStarted) {
  const std::string time = "300.1" + std::to_string(getpid());
  int most = 0;
  std::atomic<bool> over = false;
  std::thread watcher([&] {
    while (!over) {
      most = std::max(most, Processes(time));
      usleep(20'000);
    }
  });
  const auto before = std::chrono::steady_clock::now();
  const auto outcome = Run(Sleepers(time), 2);
  const auto took = std::chrono::steady_clock::now() - before;
  const int left = Processes(time);
  over = true;
  watcher.join();
  EXPECT_GE(most, 4);
  EXPECT_EQ(left, 0);
  EXPECT_LT(took, std::chrono::seconds(10));
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->finish, Finish::kLength);
  EXPECT_NE(AnswerOf(*outcome).kind, problem::Answer::Kind::kSource);
}

TEST_F(CommandTest, WhatItLeavesRunningEndsWithIt) {
  const std::string time = "300.2" + std::to_string(getpid());
  const auto outcome = Run("setsid sleep " + time + " & sleep 0.1; echo done");
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->text, "done\n");
  EXPECT_EQ(Processes(time), 0);
}

TEST_F(CommandTest, StopEndsIt) {
  const std::string time = "300.3" + std::to_string(getpid());
  std::thread stopper([&] {
    for (int tries = 0; tries < 1000 && Processes(time) < 4; ++tries) usleep(10'000);
    stop_.Request();
  });
  const auto outcome = Run(Sleepers(time), 100);
  stopper.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, Failure::Kind::kStopped);
  EXPECT_EQ(Processes(time), 0);
}

TEST_F(CommandTest, OutOfTimeAFileCountsStill) {
  const auto outcome = Run("cp template.cu solution.cu; sleep 300", 1);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(AnswerOf(*outcome).kind, problem::Answer::Kind::kSource);
}

TEST_F(CommandTest, OnlyPlainFilesAreTaken) {
  for (const char* line :
       {"ln -s template.cu solution.cu", "ln -s /etc/passwd solution.cu", "mkfifo solution.cu",
        "mkdir solution.cu", "ln -s /dev/zero solution.cu"}) {
    const auto outcome = Run(line);
    ASSERT_TRUE(outcome) << line << outcome.error().message;
    EXPECT_NE(AnswerOf(*outcome).kind, problem::Answer::Kind::kSource) << line;
    EXPECT_NE(outcome->text.find("rejected"), std::string::npos) << line << outcome->text;
    EXPECT_EQ(outcome->text.find("root:"), std::string::npos) << line;
  }
  const auto large = Run("head -c 30000000 /dev/zero | tr '\\0' x > solution.cu");
  ASSERT_TRUE(large);
  EXPECT_LT(large->text.size(), problem::kLargestSource + 1000);
  EXPECT_NE(AnswerOf(*large).kind, problem::Answer::Kind::kSource);
}

TEST_F(CommandTest, AFloodOfOutputIsBounded) {
  const auto outcome = Run("yes | head -c 50000000; yes | head -c 50000000 >&2");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->text.size(), 4u << 20);
  EXPECT_LE(outcome->raw.size(), 5u << 20);
}

TEST_F(CommandTest, HiddenFoldersAreEmptyAndOthersAreNot) {
  std::string base = "/var/tmp/allranks_hidden.XXXXXX";
  ASSERT_NE(mkdtemp(base.data()), nullptr);
  const fs::path secret = fs::path(base) / "secret", open = fs::path(base) / "open";
  fs::create_directories(secret / "inner");
  fs::create_directories(open);
  std::ofstream(secret / "inner/reference.cu") << "answer";
  std::ofstream(open / "file") << "seen";
  fs::create_symlink(secret, fs::path(base) / "link");
  const std::string line = "cat " + (secret / "inner/reference.cu").string() + " " +
                           (open / "file").string() + " 2>/dev/null; ls -A " + secret.string() +
                           " | wc -l; (umount " + secret.string() + " || touch " +
                           (secret / "x").string() + ") 2>/dev/null; ls -A " + secret.string();
  EXPECT_EQ(Run(line + "; true")->text, "answerseen1\ninner\nx\n")
      << "nothing hidden: all is there";
  fs::remove(secret / "x");
  // By a link, twice, within each other, and missing ones: all the same.
  ask_.hidden = {fs::path(base) / "link", secret / "inner", secret, fs::path(base) / "missing",
                 problem_.folder};
  EXPECT_EQ(Run(line + "; true")->text, "seen0\n");
  EXPECT_FALSE(fs::exists(secret / "x"));
  EXPECT_EQ(Run("ls " + (problem_.folder / "reference.cu").string() + " 2>/dev/null; true")->text,
            "");
  // Temporary files of judgements and of other agents lie beside its own folder.
  EXPECT_EQ(Run("ls -A " + fs::temp_directory_path().string() + " | wc -l")->text, "1\n");
  EXPECT_EQ(Run("cat /proc/" + std::to_string(getpid()) +
                "/cmdline 2>/dev/null | grep -c command_test"
                "; true")
                ->text.find("entry_test"),
            std::string::npos);
  fs::remove_all(base);
}

TEST_F(CommandTest, TheCheckToolAnswers) {
  std::vector<std::string> seen;
  ask_.check = [&](const std::string& source, const Stop&) {
    seen.push_back(source);
    return "pass for " + std::to_string(source.size()) + " bytes";
  };
  const auto outcome =
      Run("printf 12345 > a.cu; ./check a.cu; mkdir d; cd d; printf 123 > solution.cu; "
          "../check; cd ..; ./check missing.cu 2>&1; grep -c './check' prompt.md");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->text,
            "pass for 5 bytes\npass for 3 bytes\ncheck: no such file: missing.cu\n1\n");
  EXPECT_EQ(seen, (std::vector<std::string>{"12345", "123"}));
}

TEST_F(CommandTest, TheCheckToolCannotBeMadeToReadOrWriteElsewhere) {
  int calls = 0;
  ask_.check = [&](const std::string&, const Stop&) {
    ++calls;
    return "checked";
  };
  const fs::path victim = fs::path("/var/tmp") / ("allranks_victim." + std::to_string(getpid()));
  std::ofstream(victim) << "untouched";
  const auto outcome = Run(
      "cd .allranks; mkdir 1 2 3 4; ln -s /etc/passwd 1/source.cu; mkfifo 2/source.cu; "
      "ln -s " +
      victim.string() + " 3/answer.part; ln -s " + victim.string() +
      " 3/answer.txt; echo x > 3/source.cu; ln -s /etc 5; mkdir 4/source.cu; cd ..; echo y > z; "
      "./check z; cat .allranks/1/answer.txt .allranks/2/answer.txt");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->text, "checked\nsource.cu is a link\nsource.cu is not a regular file\n");
  EXPECT_EQ(ReadWhole(victim).value(), "untouched");
  EXPECT_EQ(calls, 2);
  fs::remove(victim);
}

TEST(CheckBoxTest, ChecksAreCounted) {
  const TemporaryFolder folder;
  int calls = 0;
  auto box = CheckBox::Make(folder.path(), [&](const std::string&, const Stop&) {
    ++calls;
    return std::string(1 << 20, 'x');
  });
  ASSERT_TRUE(box) << box.error().message;
  for (int i = 0; i < kMostChecks + 3; ++i)
    folder.Write(".allranks/" + std::to_string(i) + "/source.cu", "code");
  int refused = 0;
  for (int i = 0; i < kMostChecks + 3; ++i) {
    const fs::path answer = folder.path() / ".allranks" / std::to_string(i) / "answer.txt";
    for (int tries = 0; tries < 500 && !fs::exists(answer); ++tries) usleep(10'000);
    const std::string text = ReadWhole(answer).value_or("missing");
    EXPECT_LE(text.size(), 300'000u);
    refused += text.find("limit of") != std::string::npos;
  }
  EXPECT_EQ(calls, kMostChecks);
  EXPECT_EQ(refused, 3);
}

TEST_F(CommandTest, ACheckThatNobodyWaitsForIsStopped) {
  std::atomic<bool> stopped = false;
  ask_.check = [&](const std::string&, const Stop& stop) {
    stopped = stop.Sleep(std::chrono::milliseconds(30'000));
    return "late";
  };
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = Run("echo y > z; ./check z & sleep 0.5; echo done");
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->text, "done\n");
  EXPECT_TRUE(stopped);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
}

TEST_F(CommandTest, KeysOfTheEnvironmentAreNotRepeated) {
  setenv("ALLRANKS_TEST_KEY", "sk-secret-0123456789", 1);
  const auto said = Run("env | grep ALLRANKS_TEST_KEY; echo $ALLRANKS_TEST_KEY >&2");
  const auto failed = Run("echo $ALLRANKS_TEST_KEY >&2; exit 3");
  unsetenv("ALLRANKS_TEST_KEY");
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->text, "ALLRANKS_TEST_KEY=[key]\n");
  EXPECT_EQ(said->raw.find("sk-secret"), std::string::npos);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("[key]"), std::string::npos);
  EXPECT_EQ(failed.error().message.find("sk-secret"), std::string::npos);
}

TEST_F(CommandTest, UsageIsTakenAndSpent) {
  const auto told = Run(
      R"(echo '{"input_tokens":1000,"output_tokens":2000,"dollars":0.5}' > usage.json; echo x)");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_TRUE(told->usage_known);
  EXPECT_EQ(told->usage.input, 1000u);
  EXPECT_EQ(told->usage.output, 2000u);
  EXPECT_EQ(told->dollars, 0.5);
  EXPECT_EQ(budget_.spent(), 0.5);
  const auto priced =
      Run(R"(echo '{"input_tokens":1000,"output_tokens":2000}' > usage.json; echo x)");
  EXPECT_DOUBLE_EQ(priced->dollars, 0.021) << "by the entry's prices";
  EXPECT_DOUBLE_EQ(budget_.spent(), 0.521);
  const auto failed = Run(R"(echo '{"dollars":0.25}' > usage.json; exit 1)");
  EXPECT_EQ(failed.error().wasted_dollars, 0.25);
  EXPECT_DOUBLE_EQ(budget_.spent(), 0.771);
  for (const char* facts : {R"({"dollars":-5})", R"({"dollars":1e300})", "nonsense"}) {
    const auto spoiled = Run("echo '" + std::string(facts) + "' > usage.json; echo x");
    ASSERT_TRUE(spoiled) << facts << ": the answer counts all the same";
    EXPECT_EQ(spoiled->text, "x\n");
    EXPECT_FALSE(spoiled->usage_known);
    EXPECT_EQ(spoiled->dollars, 0);
    EXPECT_NE(spoiled->raw.find("usage.json is ignored"), std::string::npos);
  }
  EXPECT_DOUBLE_EQ(budget_.spent(), 0.771);
  budget_ = Budget(0.1);
  budget_.AddSpent(0.2);
  EXPECT_EQ(Run("echo x").error().kind, Failure::Kind::kBudget);
}

}  // namespace
}  // namespace allranks::model
