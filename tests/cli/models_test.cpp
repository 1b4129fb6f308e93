// `allranks models` from the outside: which file it reads, and that keys stay unseen.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace {

namespace fs = std::filesystem;

class ModelsCommandTest : public ::testing::Test {
 protected:
  ModelsCommandTest() {
    std::string name = (fs::temp_directory_path() / "allranks_models.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    Write("own.toml", "own-model", "acme");
  }
  ~ModelsCommandTest() override { fs::remove_all(folder_); }

  void Write(const std::string& file, const std::string& model, const std::string& provider) {
    std::ofstream(folder_ / file)
        << "schema = 1\n[providers." << provider
        << "]\nendpoint = \"https://api.example/v1\"\nkey = \"ACME_KEY\"\n"
        << "[models." << model << "]\nprovider = \"acme\"\nmodel = \"m\"\n";
  }

  // stdout and stderr of the command, started in the folder.
  std::string Run(const std::string& before, const std::string& arguments, int code) {
    const std::string line = "cd " + folder_.string() + " && unset ACME_KEY ALLRANKS_MODELS; " +
                             before + " " ALLRANKS_COMMAND " models " + arguments + " 2>&1";
    FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return "";
    std::string output;
    std::array<char, 4096> buffer;
    std::size_t got = 0;
    while ((got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0)
      output.append(buffer.data(), got);
    const int status = pclose(pipe);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == code) << output;
    return output;
  }

  static bool Has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  fs::path folder_;
};

TEST_F(ModelsCommandTest, TheNearestFileIsRead) {
  EXPECT_TRUE(Has(Run("", "", 0), "ANTHROPIC_API_KEY")) << "our own";
  Write("models.toml", "here-model", "acme");
  const std::string both = Run("", "", 0);
  EXPECT_TRUE(Has(both, "here-model")) << both;
  EXPECT_TRUE(Has(both, "ANTHROPIC_API_KEY")) << both << "our own are still there";
  for (const char* arguments : {"ALLRANKS_MODELS=own.toml", "ALLRANKS_MODELS=models.toml"}) {
    const std::string one = Run(arguments, "", 0);
    EXPECT_TRUE(Has(one, "ACME_KEY")) << one;
    EXPECT_FALSE(Has(one, "ANTHROPIC_API_KEY")) << one << "that file alone";
  }
  EXPECT_TRUE(Has(Run("ALLRANKS_MODELS=own.toml", "", 0), "own-model"));
  EXPECT_TRUE(Has(Run("ALLRANKS_MODELS=models.toml", "--models-file own.toml", 0), "own-model"));
  EXPECT_TRUE(Has(Run("", "--models-file none.toml", 2), "none.toml"));
  Write("bad.toml", "m", "acne");
  EXPECT_TRUE(Has(Run("", "--models-file bad.toml", 2), "bad.toml:6: ")) << "file and line";
}

TEST_F(ModelsCommandTest, EachEntrySaysItsFile) {
  Write("models.toml", "\"gpt-6-luna\"", "acme");
  const std::string table = Run("", "", 0);
  EXPECT_TRUE(Has(table, "file 2: models.toml\n")) << table;
  EXPECT_TRUE(std::regex_search(table, std::regex("\ngpt-6-luna +2 "))) << table;
  EXPECT_TRUE(std::regex_search(table, std::regex("\ngpt-6-astra +1 "))) << table;
  const std::string json = Run("", "--json", 0);
  EXPECT_TRUE(Has(json, R"({"name":"gpt-6-luna","file":"models.toml")")) << json;
  EXPECT_TRUE(Has(json, "share/allranks/models.toml\"")) << json;
  // A model of the installed list whose provider is replaced by one that lacks what it needs.
  std::ofstream(folder_ / "models.toml") << "schema = 1\n[providers.openai]\nkey = \"MY_KEY\"\n";
  const std::string fault = Run("", "", 2);
  EXPECT_TRUE(Has(fault, "[providers.openai] of models.toml")) << fault;
}

TEST_F(ModelsCommandTest, KeysAreSetOrMissingAndNeverShown) {
  for (const char* form : {"", "--json"}) {
    const std::string arguments = std::string("--models-file own.toml ") + form;
    EXPECT_TRUE(Has(Run("", arguments, 0), "missing"));
    const std::string with = Run("ACME_KEY=sk-very-secret", arguments, 0);
    EXPECT_TRUE(Has(with, "set")) << with;
    EXPECT_FALSE(Has(with, "missing")) << with;
    EXPECT_FALSE(Has(with, "secret")) << with;
  }
  EXPECT_TRUE(Has(Run("", "--models-file own.toml --json", 0), "\"price\":null"));
}

}  // namespace
