// Judgements as processes: what is taken for a judgement, what is tried again, and that none
// outlives us. The program is a shell script in place of `allranks judge`.
#include "campaign/executor.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/files.h"

namespace allranks::campaign {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest() {
    char name[] = "/tmp/allranks-executor-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ExecutorTest() override { fs::remove_all(folder_); }

  std::string Program(const std::string& script) {
    const fs::path path = folder_ / "program";
    EXPECT_TRUE(WriteWhole(path, "#!/bin/sh\ncd " + folder_.string() + "\n" + script + "\n"));
    chmod(path.c_str(), 0755);
    return path;
  }
  static JudgeTask Task() {
    JudgeTask task;
    task.problem = "/problems/p";
    task.source = "int x;";
    task.profile = "profile.toml";
    task.seed = "a secret";
    return task;
  }
  std::string Text(const char* name) const {
    return ReadWhole(folder_ / name).value_or(std::string());
  }

  fs::path folder_;
  Stop stop_;
};

TEST_F(ExecutorTest, TheSeedIsInAFileAndKeysAreGone) {
  setenv("SOME_API_KEY", "sk-1", 1);
  setenv("SOME_OTHER", "kept", 1);
  setenv("OF_A_MODEL", "sk-2", 1);
  const auto executor = MakeLocalExecutor(
      Program("echo \"$@\" > arguments; env > environment\n"
              "while [ $# -gt 0 ]; do case $1 in --seed-file) cp $2 seed;; --solution) cp $2 s;; "
              "esac; shift; done; echo '{}'"),
      1, {"OF_A_MODEL"});
  const Result<std::string> judged = executor->Judge(Task(), stop_);
  ASSERT_TRUE(judged) << judged.error().message;
  EXPECT_EQ(*judged, "{}\n");
  EXPECT_EQ(Text("seed"), "a secret");
  EXPECT_EQ(Text("s"), "int x;");
  EXPECT_EQ(Text("arguments").find("secret"), std::string::npos);
  EXPECT_NE(Text("arguments").find("judge /problems/p"), std::string::npos);
  EXPECT_NE(Text("arguments").find("--drawn-last"), std::string::npos);
  EXPECT_EQ(Text("arguments").find("--band"), std::string::npos);
  EXPECT_EQ(Text("environment").find("sk-"), std::string::npos);
  EXPECT_NE(Text("environment").find("SOME_OTHER=kept"), std::string::npos);

  JudgeTask visible = Task();
  visible.visible = true;
  visible.trace = "/t.json";
  ASSERT_TRUE(executor->Judge(visible, stop_));
  EXPECT_NE(Text("arguments").find("--visible"), std::string::npos);
  EXPECT_EQ(Text("arguments").find("--drawn-last"), std::string::npos);
  EXPECT_NE(Text("arguments").find("--trace /t.json"), std::string::npos);
  unsetenv("SOME_API_KEY");
}

TEST_F(ExecutorTest, AnyVerdictIsAJudgementAndAnythingElseIsNot) {
  EXPECT_TRUE(MakeLocalExecutor(Program("echo '{}'; exit 1"), 1)->Judge(Task(), stop_));
  const std::pair<const char*, const char*> failures[] = {
      {"echo used wrongly >&2; exit 2", "used wrongly"},
      {"exit 0", "exit code 0"},
      {"printf '{\"half'; exit 0", "exit code 0"},
      {"echo '{}'; exit 3", "exit code 3"},
      {"kill -SEGV $$", "signal 11"},
      {"yes | head -c 100000 >&2; echo last >&2; exit 2", "last"},
      {"head -c 100000000 /dev/zero; exit 0", "more than 64 MB"}};
  for (const auto& [script, why] : failures) {
    const Result<std::string> judged = MakeLocalExecutor(Program(script), 1)->Judge(Task(), stop_);
    ASSERT_FALSE(judged) << script;
    EXPECT_NE(judged.error().message.find(why), std::string::npos) << judged.error().message;
    EXPECT_LT(judged.error().message.size(), 6000u);
  }
  EXPECT_FALSE(MakeLocalExecutor("/nonexistent", 1)->Judge(Task(), stop_));
}

TEST_F(ExecutorTest, OurOwnFaultIsTriedAgain) {
  const std::string count = "echo x >> tries; ";
  JudgeTask task = Task();
  int repeats = 0;
  task.on_repeat = [&](const std::string&) { ++repeats; };
  Result<std::string> judged =
      MakeLocalExecutor(Program(count + "echo '{\"v\": 1}'; exit 70"), 1)->Judge(task, stop_);
  ASSERT_TRUE(judged);
  EXPECT_EQ(*judged, "{\"v\": 1}\n");  // stands
  EXPECT_EQ(Text("tries"), "x\nx\nx\n");
  EXPECT_EQ(repeats, 2);
  fs::remove(folder_ / "tries");
  judged = MakeLocalExecutor(
               Program(count + "[ $(wc -l < tries) = 2 ] && echo '{}' && exit 0; kill -KILL $$"), 1)
               ->Judge(task, stop_);
  EXPECT_TRUE(judged);
  EXPECT_EQ(Text("tries"), "x\nx\n");
  fs::remove(folder_ / "tries");
  EXPECT_FALSE(MakeLocalExecutor(Program(count + "exit 2"), 1)->Judge(task, stop_));
  EXPECT_EQ(Text("tries"), "x\n");  // a wrong command stays wrong
}

TEST_F(ExecutorTest, NoMoreThanJobsAtOnce) {
  const auto executor = MakeLocalExecutor(
      Program("mkdir running 2>/dev/null; touch running/$$; ls running | wc -l >> at_once; "
              "sleep 0.05; rm running/$$; echo '{}'"),
      2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { EXPECT_TRUE(executor->Judge(Task(), stop_)); });
  for (std::thread& thread : threads) thread.join();
  const std::string seen = Text("at_once");
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 8);
  EXPECT_NE(seen.find('2'), std::string::npos);
  EXPECT_EQ(seen.find_first_of("345678"), std::string::npos) << seen;
}

TEST_F(ExecutorTest, TheWishToStopEndsItAtOnce) {
  const auto executor = MakeLocalExecutor(Program("echo $$ > pid; exec sleep 60"), 1);
  std::thread other([&] {
    while (Text("pid").empty()) std::this_thread::sleep_for(milliseconds(5));
    stop_.Request();
  });
  // The second one waits for its turn, and stops too.
  std::thread waiting([&] { EXPECT_FALSE(executor->Judge(Task(), stop_)); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(executor->Judge(Task(), stop_));
  waiting.join();
  other.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_NE(kill(std::stoi(Text("pid")), 0), 0);
}

TEST_F(ExecutorTest, AKilledProcessLeavesNoJudgement) {
  const std::string program = Program("echo $$ > pid; exec sleep 60");
  const pid_t pid = fork();
  if (pid == 0) {
    (void)MakeLocalExecutor(program, 1)->Judge(Task(), stop_);
    _exit(0);
  }
  for (int i = 0; i < 1000 && Text("pid").empty(); ++i)
    std::this_thread::sleep_for(milliseconds(5));
  ASSERT_FALSE(Text("pid").empty());
  const int child = std::stoi(Text("pid"));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  bool gone = false;
  for (int i = 0; i < 400 && !gone; ++i) {
    // Nobody may have collected it yet: then it is a zombie.
    const std::string stat =
        ReadWhole("/proc/" + std::to_string(child) + "/stat").value_or(std::string());
    gone = stat.empty() || stat.find(") Z ") != std::string::npos;
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace allranks::campaign
