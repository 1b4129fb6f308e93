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

TEST_F(RunTest, SelectorsAreJoinedByCommasAndNarrowedByPlus) {
  const auto count = [&](const std::string& problems) {
    EXPECT_EQ(Allranks("--models nop --problems " + problems + " --out run --dry-run --json"), 0)
        << err();
    return Json::parse(out())["models"][0]["generations"].get<int>();
  };
  const int p2p = count("category:p2p"), easy = count("level:easy"),
            both = count("category:p2p+level:easy"), either = count("category:p2p,level:easy");
  EXPECT_GT(both, 0);
  EXPECT_LT(both, std::min(p2p, easy));
  EXPECT_EQ(either, p2p + easy - both);
  EXPECT_EQ(count("level:easy+category:p2p"), both);
  EXPECT_EQ(count("all+level:easy"), easy);
  EXPECT_EQ(count("library:nccl_device"), count("family:nccl_device"));
  EXPECT_GT(count("parallelism:ep+level:hard"), 0);
  EXPECT_EQ(count("parallelism:ep+level:hard,flag_pingpong"),
            count("parallelism:ep+level:hard") + 1);
}

TEST_F(RunTest, ATemperatureIsRecordedOrRefusedBeforeWorkBegins) {
  std::ofstream(folder_ / "models.toml")
      << "schema = 1\n[models.fixed]\nendpoint = \"http://127.0.0.1:9/v1\"\nmodel = \"x\"\n"
         "accepts_temperature = false\n[models.any]\nendpoint = \"http://127.0.0.1:9/v1\"\n"
         "model = \"x\"\nretry = { attempts = 1 }\n";
  const std::string rest = " --problems flag_pingpong --out run --temperature 0.7";
  EXPECT_EQ(Allranks("--models any,fixed" + rest), 2);
  EXPECT_NE(err().find("fixed: its provider accepts no temperature"), std::string::npos) << err();
  EXPECT_NE(err().find("; remove --temperature, or run this model separately"), std::string::npos)
      << err();
  EXPECT_EQ(Allranks("--models gpt-6-luna" + rest), 2);
  EXPECT_NE(err().find("accepts_temperature"), std::string::npos) << err();
  EXPECT_EQ(Allranks("--models nop" + rest), 2);
  EXPECT_NE(err().find("--temperature"), std::string::npos) << err();
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  // Nobody listens there: the run ends with what would help, and has its settings.
  EXPECT_EQ(Allranks("--models any,nop" + rest), 1);
  EXPECT_NE(err().find("check that the server runs"), std::string::npos) << err();
  EXPECT_NE(err().find("models.toml"), std::string::npos) << err();
  EXPECT_EQ(Json::parse(Text(folder_ / "run/run.json"))["temperature"], 0.7);
  const std::string sent = Text(folder_ / "run/samples/any/flag_pingpong/0/round-1/attempts.jsonl");
  EXPECT_NE(sent.find("begin"), std::string::npos) << sent;
}

TEST_F(RunTest, ExamplesAreInThePromptAndInRunJson) {
  const std::string rest = "--models r=replay:said --problems flag_pingpong --out run";
  ASSERT_EQ(Allranks(rest + " --few-shot 2"), 0) << err();
  EXPECT_EQ(Json::parse(Text(folder_ / "run/run.json"))["few_shot"], 2);
  const Json facts = Json::parse(Text(folder_ / "run/problems/flag_pingpong/problem.json"));
  ASSERT_EQ(facts["examples"].size(), 2u);
  // The prompt command shows the same.
  ASSERT_EQ(End(Start(std::string(ALLRANKS_COMMAND) +
                      " prompt flag_pingpong --few-shot 2 --part task --json")),
            0)
      << err();
  const Json shown = Json::parse(out());
  EXPECT_EQ(shown["examples"], facts["examples"]);
  const Json asked =
      Json::parse(Text(folder_ / "run/samples/r/flag_pingpong/0/round-1/prompt.json"));
  EXPECT_EQ(asked.back()["text"], shown["parts"]["task"]);
  EXPECT_EQ(Allranks(rest + " --few-shot 1"), 2);
  EXPECT_NE(err().find("--few-shot"), std::string::npos) << err();
  EXPECT_EQ(Allranks("--models nop --problems library:nccl --out other --few-shot 1"), 2);
  EXPECT_NE(err().find("same library (nccl)"), std::string::npos) << err();
}

TEST_F(RunTest, ASpentBudgetEndsWithTheCommandThatHasALargerOne) {
  std::ofstream(folder_ / "models.toml") << R"(schema = 1
[models.agent]
protocol = "command"
concurrency = 1
command = """echo '{"input_tokens": 1, "output_tokens": 1, "dollars": 2}' > usage.json; echo none"""
)";
  ASSERT_EQ(Allranks("--models agent --problems flag_pingpong --rounds 2 --out run --budget 1.5"),
            1)
      << err();
  EXPECT_NE(err().find("$1.50"), std::string::npos) << err();
  std::istringstream said(err());
  std::string resume;
  for (std::string each; std::getline(said, each);)
    if (each.find(" run --models ") != std::string::npos) resume = each;
  EXPECT_NE(resume.find("--budget 3.00"), std::string::npos) << err();
  EXPECT_EQ(End(Start(resume)), 0) << err();
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
