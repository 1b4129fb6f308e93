// Filters, suppressions and ids of findings.
#include "cli/finding_list.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace allranks::cli {
namespace {

namespace fs = std::filesystem;

class Findings : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "finding-list-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    Write("kernel.cu", "// a line\n  flag[0] =  1;\nsum += *p;\n");
  }
  void TearDown() override { fs::remove_all(folder); }
  void Write(const char* name, const std::string& text) const {
    std::ofstream(folder / name) << text;
  }
  node::Finding At(int line, node::Finding::Kind kind = node::Finding::Kind::kRace) const {
    node::Finding finding;
    finding.kind = kind;
    finding.text = "something";
    node::FindingAccess& access = finding.accesses.emplace_back();
    access.what = "load";
    access.kernel = "AllReduce(float*)";
    access.file = (folder / "kernel.cu").string();
    access.line = line;
    return finding;
  }
  FindingList List(const FindingOptions& options, std::vector<node::Finding> findings) const {
    auto list = FindingList::Make(options);
    EXPECT_TRUE(list.has_value()) << list.error().message;
    list->Add(std::move(findings));
    return *std::move(list);
  }
  std::string IdOf(const node::Finding& finding) const {
    const auto json = nlohmann::json::parse(
        FindingsAsJson({{"./a.out"}, {0}, {}, 87, "0.0"}, List({}, {finding}).Listed()));
    return json["findings"][0]["id"].get<std::string>();
  }

  fs::path folder;
};

TEST_F(Findings, IdsFollowTheTextOfTheirLines) {
  const std::string id = IdOf(At(2));
  EXPECT_EQ(id.size(), 8u);
  EXPECT_NE(id, IdOf(At(3)));
  Write("kernel.cu", "// a line\n// another one\nflag[0] = 1;\nsum += *p;\n");
  EXPECT_EQ(IdOf(At(3)), id) << "the line has moved and was formatted";
  Write("kernel.cu", "// a line\n// another one\nflag[1] = 1;\nsum += *p;\n");
  EXPECT_NE(IdOf(At(3)), id);
}

TEST_F(Findings, IdsOfHostCallsDoNotDependOnAddresses) {
  const auto copy = [](const char* function) {
    node::Finding finding;
    finding.text = "something";
    node::FindingAccess& access = finding.accesses.emplace_back();
    access.what = "copy";
    access.site = {"cudaMemcpyAsync", {{"", 0, function}}};
    return finding;
  };
  EXPECT_EQ(IdOf(copy("Send(int*)+0x1c")), IdOf(copy("Send(int*)+0x2b0")));
  EXPECT_EQ(IdOf(copy("program+0x1234")), IdOf(copy("program+0x4321")));
  EXPECT_NE(IdOf(copy("Send(int*)+0x1c")), IdOf(copy("Take(int*)+0x1c")));
  const std::string text = List({}, {copy("Send(int*)+0x1c")}).Text("");
  EXPECT_NE(text.find("cudaMemcpyAsync at Send(int*)+0x1c"), std::string::npos) << text;
  EXPECT_NE(text.find("compile it with -g"), std::string::npos) << text;
}

TEST_F(Findings, TheLineThatIsPrintedSuppresses) {
  const std::string text = List({}, {At(2), At(3)}).Text("1 kernel");
  const auto begin = text.find("suppress: ") + 10;
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  Write("known", "# known\n\n" + line + "\n");
  FindingOptions options;
  options.suppress = folder / "known";
  const FindingList list = List(options, {At(2), At(3)});
  EXPECT_EQ(list.counted(), 1u);
  EXPECT_NE(list.Text("").find("1 finding: 1 race, 1 suppressed"), std::string::npos)
      << list.Text("");
}

TEST_F(Findings, PatternsSuppressKernelsAndFiles) {
  for (const char* pattern : {"race kernel:AllReduce*", "* file:*/kernel.cu"}) {
    Write("known", pattern);
    FindingOptions options;
    options.suppress = folder / "known";
    EXPECT_EQ(List(options, {At(2)}).counted(), 0u) << pattern;
  }
  Write("known", "scope kernel:AllReduce*");
  FindingOptions options;
  options.suppress = folder / "known";
  EXPECT_EQ(List(options, {At(2)}).counted(), 1u);
}

TEST_F(Findings, WrongSuppressionsNameTheirLine) {
  Write("known", "race 12345678\nnothing 12345678\n");
  FindingOptions options;
  options.suppress = folder / "known";
  const auto list = FindingList::Make(options);
  ASSERT_FALSE(list.has_value());
  EXPECT_NE(list.error().message.find("known:2"), std::string::npos) << list.error().message;
}

TEST_F(Findings, FiltersLeaveOutAndSaySo) {
  FindingOptions options;
  options.only = {"scope"};
  const FindingList list = List(options, {At(2), At(3, node::Finding::Kind::kScope)});
  EXPECT_EQ(list.counted(), 1u);
  EXPECT_NE(list.Text("").find("1 filtered out"), std::string::npos) << list.Text("");
  options = {};
  options.kernels = {"Reduce*"};
  EXPECT_EQ(List(options, {At(2)}).counted(), 0u);
  options = {};
  options.files = {"*kernel.cu"};
  EXPECT_EQ(List(options, {At(2)}).counted(), 1u);
}

TEST_F(Findings, PortabilityCountsWhereItIsAskedFor) {
  const node::Finding packed = At(2, node::Finding::Kind::kPortability);
  EXPECT_EQ(List({}, {packed}).counted(), 0u);
  FindingOptions options;
  options.also = {"portability"};
  EXPECT_EQ(List(options, {packed}).counted(), 1u);
}

TEST_F(Findings, NoMoreThanTheLimitArePrinted) {
  FindingOptions options;
  options.most = 1;
  const FindingList list = List(options, {At(2), At(3)});
  EXPECT_NE(list.Text("").find("and 1 more: --max-findings 2 prints them"), std::string::npos)
      << list.Text("");
  EXPECT_EQ(list.counted(), 2u);
}

TEST_F(Findings, MissingLinesAreHintedAtOnce) {
  node::Finding bare = At(2);
  bare.accesses[0].file.clear();
  const std::string text = List({}, {bare}).Text("");
  EXPECT_NE(text.find("-lineinfo"), std::string::npos) << text;
  EXPECT_EQ(List({}, {At(2)}).Text("").find("-lineinfo"), std::string::npos);
}

}  // namespace
}  // namespace allranks::cli
