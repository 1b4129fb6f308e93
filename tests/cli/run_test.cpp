// `allranks run` by its output and exit codes, with models whose replies need no judgement.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string Text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class RunTest : public ::testing::Test {
 protected:
  RunTest() : folder_(fs::temp_directory_path() / ("allranks_run." + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "said/flag_pingpong");
    std::ofstream(folder_ / "said/flag_pingpong/0.1.txt") << "I have no code for you.\n";
  }
  ~RunTest() override { fs::remove_all(folder_); }

  pid_t Start(const std::string& line) {
    const std::string command = "cd '" + folder_.string() + "' && exec " + line;
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const auto into = [&](const char* name, int fd) {
      dup2(open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), fd);
    };
    into("out", 1);
    into("err", 2);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  static int End(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int Allranks(const std::string& arguments) {
    return End(Start(std::string(ALLRANKS_COMMAND) + " run " + arguments));
  }
  std::string out() const { return Text(folder_ / "out"); }
  std::string err() const { return Text(folder_ / "err"); }

  fs::path folder_;
};

TEST_F(RunTest, ADryRunCountsAndLeavesNothing) {
  ASSERT_EQ(Allranks("--models oracle,other=nop --problems category:collective,flag_pingpong,"
                     "allreduce_one_shot --samples 3 --rounds 2 --out run --dry-run --json"),
            0)
      << err();
  const Json json = Json::parse(out());
  ASSERT_EQ(json["models"].size(), 2u);
  EXPECT_EQ(json["models"][1]["model"], "other");
  const fs::path problems = fs::path(ALLRANKS_SOURCE_DIR) / "problems/collective";
  const auto collective = std::distance(fs::directory_iterator(problems), {});
  EXPECT_EQ(json["models"][0]["generations"], (collective + 1) * 3 * 2);  // one is named twice
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(RunTest, MistakesEndWithTheRemedy) {
  EXPECT_EQ(Allranks("--models nobody --problems all --out run"), 2);
  EXPECT_NE(err().find("oracle"), std::string::npos) << err();
  EXPECT_EQ(Allranks("--models nop --problems level:none --out run"), 2);
  EXPECT_NE(err().find("easy"), std::string::npos) << err();
  EXPECT_EQ(Allranks("--models nop,nop --problems all --out run"), 2);
  EXPECT_NE(err().find("="), std::string::npos) << err();
  EXPECT_EQ(Allranks("--models nop --problems all"), 2);
  EXPECT_EQ(Allranks("--models nop --problems all --out run --samples 0"), 2);
  EXPECT_EQ(Allranks("--models nop --problems all --out run --prompt nothing"), 2);
  EXPECT_EQ(Allranks("--models nop --problems all --out run --budget nan"), 2);
  EXPECT_EQ(Allranks("--models nop --problems all --out run --target nan"), 2);
  std::ofstream(folder_ / "models.toml") << "schema = 1\n[models.own]\nprotocol = \"openai-chat\"\n"
                                            "endpoint = \"http://127.0.0.1:9/v1\"\nmodel = \"x\"\n";
  EXPECT_EQ(Allranks("--models own --problems all --out run --budget 5"), 2);
  EXPECT_NE(err().find("--budget"), std::string::npos) << err();
  EXPECT_FALSE(fs::exists(folder_ / "run/run.json"));
}

TEST_F(RunTest, TheSameCommandGoesOnAndAnotherIsRefused) {
  const std::string command =
      "--models r=replay:said --problems flag_pingpong --rounds 2 --out run/ ";
  ASSERT_EQ(Allranks(command + "--json"), 0) << err();
  Json json = Json::parse(out());
  EXPECT_EQ(json["finished"], 1);
  EXPECT_EQ(json["unfinished"], 0);
  EXPECT_EQ(json["models"][0]["pass_at_1"], 0);
  EXPECT_NE(err().find("no_answer"), std::string::npos) << err();
  EXPECT_EQ(Json::parse(Text(folder_ / "run/run.json"))["name"], "run");
  const std::string sample = Text(folder_ / "run/samples/r/flag_pingpong/0/sample.json");
  ASSERT_EQ(Allranks(command), 0);
  EXPECT_NE(out().find("1 of 1"), std::string::npos) << out();
  EXPECT_NE(err().find("1 of 1 samples already exist"), std::string::npos) << err();
  EXPECT_EQ(Text(folder_ / "run/samples/r/flag_pingpong/0/sample.json"), sample);
  EXPECT_EQ(Allranks(command + "--target 0.5"), 2);
  EXPECT_NE(err().find("--target"), std::string::npos) << err();
  EXPECT_EQ(err().find('\x1b'), std::string::npos);  // no terminal: no colours, nothing redrawn
}

TEST_F(RunTest, AnInterruptPrintsTheCommandThatGoesOn) {
  // The line has what a shell would take apart.
  const std::string line =
      "command:if [ \"$GO_ON\" = \"it's so\" ]; then echo no; else sleep 60; fi";
  std::string quoted;
  for (const char c : "slow=" + line)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const pid_t pid = Start(std::string(ALLRANKS_COMMAND) + " run --models '" + quoted +
                          "' --models r=replay:said --problems flag_pingpong --out 'a run'");
  const fs::path round = folder_ / "a run/samples/slow/flag_pingpong/0/round-1";
  const fs::path other = folder_ / "a run/samples/r/flag_pingpong/0/sample.json";
  for (int i = 0; i < 1000 && !(fs::exists(round / "prompt.json") && fs::exists(other)); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(fs::exists(other)) << err();
  const auto begin = std::chrono::steady_clock::now();
  kill(pid, SIGINT);
  EXPECT_EQ(End(pid), 130) << err();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  std::istringstream said(err());
  std::string resume;
  for (std::string each; std::getline(said, each);)
    if (each.find(" run --models ") != std::string::npos) resume = each;
  ASSERT_FALSE(resume.empty()) << err();
  setenv("GO_ON", "it's so", 1);
  EXPECT_EQ(End(Start(resume)), 0) << err();
  EXPECT_TRUE(fs::exists(folder_ / "a run/samples/slow/flag_pingpong/0/sample.json"));
}

}  // namespace
