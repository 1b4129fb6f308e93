// `allranks problems` (list, show, new and release) and `allranks prompt`, by their output and exit
// codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
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

std::string Read(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

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

TEST_F(ProblemsTest, AReleaseKeepsSecrets) {
  const fs::path source = folder_ / "source", out = folder_ / "out", held = folder_ / "held";
  const auto in = [](const fs::path& tree) { return " --problems-dir " + tree.string(); };
  for (const std::string split : {"public", "sealed", "private"}) {
    ASSERT_EQ(Command("new p2p/" + split + "_one" + in(source)).code, 0);
    const fs::path file = source / "p2p" / (split + "_one") / "problem.toml";
    std::string text = Read(file);
    const std::size_t at = text.find("title = ");
    ASSERT_NE(at, std::string::npos);
    text.insert(at, "split = \"" + split + "\"\n");
    std::ofstream(file) << text;
  }
  const std::string both = " --out " + out.string() + " --held-out " + held.string();
  const Outcome released = Command("release" + both + in(source));
  ASSERT_EQ(released.code, 0) << released.out;
  const auto slugs = [&](const fs::path& tree) {
    const auto list = nlohmann::json::parse(Command("list --json" + in(tree)).out);
    std::string all;
    for (const auto& one : list["problems"]) all += one["slug"].get<std::string>() + " ";
    return all;
  };
  EXPECT_EQ(slugs(out), "public_one sealed_one ");
  EXPECT_EQ(slugs(held), "private_one sealed_one ");

  // What is public or held out is whole, to the byte.
  const auto same = [&](const fs::path& tree, const std::string& slug) {
    for (const auto& entry : fs::recursive_directory_iterator(source / "p2p" / slug)) {
      if (!entry.is_regular_file()) continue;
      const fs::path copy = tree / fs::relative(entry.path(), source);
      EXPECT_EQ(Read(copy), Read(entry.path())) << copy;
    }
  };
  same(out, "public_one");
  same(held, "sealed_one");
  same(held, "private_one");

  // What is given away of the sealed one has its prompt, and no line of a solution.
  EXPECT_EQ(Program("prompt sealed_one" + in(out)).out,
            Program("prompt sealed_one" + in(source)).out);
  std::string given;
  for (const auto& entry : fs::recursive_directory_iterator(out / "p2p/sealed_one"))
    if (entry.is_regular_file()) given += Read(entry.path());
  std::istringstream reference(Read(source / "p2p/sealed_one/reference.cu"));
  for (std::string line; std::getline(reference, line);) {
    if (line.find(';') == std::string::npos) continue;
    EXPECT_EQ(given.find(line), std::string::npos) << line;
  }
  EXPECT_FALSE(fs::exists(out / "p2p/sealed_one/oracle.cpp"));
  EXPECT_EQ(given.find("[mutants]"), std::string::npos);

  EXPECT_EQ(Command("release" + both + in(source)).code, 2) << "the folders are there already";
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
