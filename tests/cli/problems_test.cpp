// `allranks problems` (list, show and new) and `allranks prompt`, by their output and exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out;
};

Outcome Program(const std::string& arguments) {
  const std::string command = std::string(ALLRANKS_COMMAND) + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    outcome.out.append(buffer.data(), n);
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

Outcome Command(const std::string& arguments) { return Program("problems " + arguments); }

class ProblemsTest : public ::testing::Test {
 protected:
  ProblemsTest()
      : folder_(fs::temp_directory_path() / ("allranks_problems." + std::to_string(getpid()))),
        at_(" --problems-dir " + folder_.string()) {}
  ~ProblemsTest() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::string at_;
};

TEST_F(ProblemsTest, ANewOneIsListedAndShown) {
  EXPECT_EQ(Command("new ep/fresh" + at_).code, 0);
  EXPECT_EQ(Command("new ep/fresh" + at_).code, 2) << "it is there already";
  const Outcome list = Command("list --json" + at_);
  EXPECT_EQ(list.code, 0);
  const auto json = nlohmann::json::parse(list.out);
  ASSERT_EQ(json["problems"].size(), 1u);
  EXPECT_EQ(json["problems"][0]["slug"], "fresh");
  EXPECT_EQ(json["problems"][0]["category"], "ep");
  EXPECT_GE(json["problems"][0]["mutants"], 12);
  EXPECT_NE(Command("show fresh --header" + at_).out.find("struct Args {"), std::string::npos);
  EXPECT_NE(Command("show ep/fresh --template" + at_).out.find("// >>> edit"), std::string::npos);
  EXPECT_NE(Command("show fresh" + at_).out.find("publish.drop"), std::string::npos);
}

TEST_F(ProblemsTest, MistakesEndWithTheRemedy) {
  const Outcome unknown = Command("show allreduce_one_shoot");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.out.find("did you mean 'allreduce_one_shot'"), std::string::npos)
      << unknown.out;
  for (const char* wrong : {"new fresh", "new nowhere/fresh", "new p2p/Fresh", "new p2p/../fresh",
                            "check", "check nothing_of_this_name", "check --all --only nothing",
                            "list --category nonsense", ""}) {
    EXPECT_EQ(Command(wrong + at_).code, 2) << wrong;
  }
}

TEST_F(ProblemsTest, AWrongProblemIsNamedAndTheOthersAreListed) {
  EXPECT_EQ(Command("new ep/fresh" + at_).code, 0);
  EXPECT_EQ(Command("new ep/broken" + at_).code, 0);
  fs::resize_file(folder_ / "ep/broken/problem.toml", 100);
  const Outcome list = Command("list" + at_);
  EXPECT_EQ(list.code, 2);
  EXPECT_NE(list.out.find("broken/problem.toml:"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("\nfresh "), std::string::npos) << list.out;
}

TEST(ProblemsListTest, AllThatShipAreGood) {
  const Outcome list = Command("list");
  EXPECT_EQ(list.code, 0) << list.out;
  EXPECT_NE(list.out.find("allreduce_one_shot "), std::string::npos);
}

#ifdef ALLRANKS_HAVE_CUDA  // a prompt tells the toolkit's version
TEST_F(ProblemsTest, APromptIsPrinted) {
  const Outcome plain = Program("prompt flag_pingpong");
  EXPECT_EQ(plain.code, 0) << plain.out;
  EXPECT_TRUE(plain.out.starts_with("=== system\n")) << plain.out;
  EXPECT_NE(plain.out.find("\n=== task\n"), std::string::npos);
  EXPECT_NE(plain.out.find("-gencode=arch=compute_90,code=[sm_90,compute_90]"), std::string::npos);
  const Outcome parts =
      Program("prompt flag_pingpong --json --part repair --part improve --prompt terse");
  EXPECT_EQ(parts.code, 0);
  const auto json = nlohmann::json::parse(parts.out);
  EXPECT_EQ(json["prompt"], "terse");
  EXPECT_EQ(json["profile"], "h100x8");
  EXPECT_EQ(json["parts"].size(), 2u);
  EXPECT_NE(json["parts"]["improve"].get<std::string>().find("timed.w2.rounds16"),
            std::string::npos);
}

TEST_F(ProblemsTest, PromptsThatCannotBeMadeSayWhy) {
  EXPECT_EQ(Command("new ep/fresh" + at_).code, 0);
  EXPECT_EQ(Program("prompt fresh" + at_).code, 0);
  const Outcome bare = Program("prompt fresh --prompt pytorch" + at_);
  EXPECT_EQ(bare.code, 2);
  EXPECT_NE(bare.out.find("operation.py"), std::string::npos) << bare.out;
  const Outcome unknown = Program("prompt flag_pingpong --prompt tersee");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.out.find("did you mean 'terse'"), std::string::npos) << unknown.out;
  EXPECT_EQ(Program("prompt flag_pingpong --part answer").code, 2);
  EXPECT_EQ(Program("prompt").code, 2);
}
#endif

}  // namespace
