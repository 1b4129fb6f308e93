// What the server tells a checker, and what it hands on of its findings: hosts meet around every
// call, and reports name both places.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "node/checking.h"
#include "node/findings.h"
#include "server/core.h"
#include "tests/server/client.h"
#include "tests/server/fake_machine.h"

namespace allranks::server {
namespace {

class CheckedMachine final : public FakeMachine, public node::Checking {
 public:
  node::Checking* checking() override { return this; }
  void SetChecking(bool) override {}
  void SetSchedule(const node::Schedule&) override {}
  node::PlaceCounts Places() const override { return {}; }
  std::vector<node::Finding> TakeFindings() override { return std::exchange(found, {}); }
  void HostMeets(node::ProcessId process) override { met.push_back(process); }
  void HostsMeet() override {}
  void SetHostsSpeak(bool) override {}
  void HostAccess(node::ProcessId, node::Address, std::uint64_t, bool, HostOrder) override {}
  void HostTouches(node::ProcessId, node::Address, std::uint64_t, bool, node::SiteId) override {}
  bool HostBehind(node::ProcessId) const override { return false; }
  void SetSites(node::HostSites*) override {}
  void SetSeveral() override {}
  void SetCaller(node::SiteId) override {}
  void SetNodeSite(node::GraphId, std::uint32_t, node::SiteId) override {}

  std::vector<node::Finding> found;
  std::vector<node::ProcessId> met;
};

// A race between two lines of a file, seen `count` times.
node::Finding Race(const std::string& file, int line, std::uint64_t count) {
  node::Finding finding;
  finding.text = "a load of rank 1 and a store of rank 0 are not ordered";
  finding.missing = "nothing makes the store happen before the load";
  finding.advice = "make the store at " + file + ":41 a st.release.sys";
  finding.count = count;
  node::FindingAccess later, earlier;
  later.what = "load";
  later.form = "ld.relaxed.sys.u32";
  later.rank = later.device = 1;
  later.kernel = "_Z4waitPi";
  later.file = earlier.file = file;
  later.line = line;
  later.object = earlier.object = "device 0 allocation#7";
  later.offset = 16;
  later.bytes = earlier.bytes = 4;
  earlier.what = "store";
  earlier.rank = earlier.device = 0;
  earlier.kernel = "_Z4sendPi";
  earlier.line = 41;
  earlier.write = true;
  finding.accesses = {later, earlier};
  return finding;
}

class CheckingTest : public ::testing::Test {
 protected:
  CheckingTest() {
    auto made = std::make_unique<CheckedMachine>();
    machine = made.get();
    CoreOptions options;
    options.check = true;
    core = std::make_unique<Core>(std::move(made), std::move(options));
  }

  CheckedMachine* machine;
  std::unique_ptr<Core> core;
};

// As a person reads it.
std::string FindingsText(const RunReport& report) {
  std::string text;
  for (const node::Finding& finding : report.findings) text += node::Describe(finding);
  return text + node::Summary(report.findings);
}

TEST_F(CheckingTest, HostsMeetAroundEveryCall) {
  Client host(*core, 100);
  host.Call(wire::Hello{});
  EXPECT_TRUE(machine->met.empty()) << "it has used no device";
  host.Call(wire::Alloc{.device = 0, .size = 64});
  ASSERT_FALSE(machine->met.empty());
  const node::ProcessId process = machine->met.front();
  machine->met.clear();
  // What it has waited for is known to others when it is answered, what others know to it when it
  // asks.
  host.Call(wire::DeviceSync{});
  EXPECT_EQ(machine->met, (std::vector<node::ProcessId>{process, process}));
  machine->met.clear();
  host.Call(wire::Yield{});
  EXPECT_EQ(machine->met, (std::vector<node::ProcessId>{process, process}));
  machine->met.clear();
  host.Gone();
  core->Run();
  EXPECT_EQ(machine->met, std::vector<node::ProcessId>{process}) << "its end is heard of";
}

TEST(FindingsTest, WhatAWeakFlagDoesNotOrderCountsToTheFlag) {
  node::Finding flag = Race("a.cu", 50, 3), data = Race("a.cu", 60, 2), other = Race("a.cu", 70, 1),
                barrier = Race("a.cu", 80, 1);
  flag.edits.resize(1);
  flag.edits[0].from = "weak";
  flag.edits[0].at = {{"a.cu", 50, 1, "wait"}};
  data.edits.clear();
  other.edits.clear();
  other.accesses[0].kernel = "another";
  barrier.kind = node::Finding::Kind::kBarrier;
  std::vector<node::Finding> all = {data, other, flag, barrier};
  node::FoldConsequences(&all);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].kind, node::Finding::Kind::kBarrier) << "races behind it may follow from it";
  EXPECT_EQ(all[1].accesses[0].kernel, "another");
  EXPECT_EQ(all[2].count, 5u);
  EXPECT_EQ(all[2].pairs, 2u);
  ASSERT_EQ(all[2].also.size(), 1u);
}

TEST(FindingsTest, WhatAWeakFlagOfAHostDoesNotOrderCountsToTheFlag) {
  node::Finding flag = Race("a.cu", 50, 3), copy = Race("a.cu", 60, 2), other = Race("a.cu", 70, 1);
  flag.edits.resize(1);
  flag.edits[0].from = "weak";
  flag.edits[0].at = {{"a.cu", 50, 1, "wait"}};
  flag.accesses[1].kernel = copy.accesses[1].kernel = other.accesses[1].kernel = "";
  flag.accesses[1].what = "host store";
  copy.accesses[1].what = "copy";
  other.accesses[0].kernel = "another";
  std::vector<node::Finding> all = {copy, other, flag};
  node::FoldConsequences(&all);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].accesses[0].kernel, "another");
  EXPECT_EQ(all[1].pairs, 2u);
  EXPECT_EQ(all[1].edits.size(), 1u);
}

// An event before the call of one line for that of another.
node::Finding Unordered(int at, int to, const char* later, const char* earlier) {
  node::Finding finding = Race("a.cu", at, 1);
  finding.accesses[0].stream = later;
  finding.accesses[1].stream = earlier;
  finding.edits.resize(1);
  finding.edits[0].by = node::Edit::By::kHost;
  finding.edits[0].at = {{"a.cu", at, 0, "main"}};
  finding.edits[0].to = {{"a.cu", to, 0, "main"}};
  finding.edits[0].text = "cudaStreamWaitEvent($at.stream, order_, 0);";
  return finding;
}

TEST(FindingsTest, AMissingOrderOfStreamsIsOneFinding) {
  // Both directions between two streams, and what else follows the same operation.
  std::vector<node::Finding> all = {
      Unordered(10, 20, "stream 1", "stream 2"), Unordered(20, 10, "stream 2", "stream 1"),
      Unordered(30, 20, "stream 3", "stream 2"), Unordered(40, 50, "stream 3", "stream 4")};
  node::FoldOrders(&all);
  ASSERT_EQ(all.size(), 2u);
  ASSERT_EQ(all[0].edits.size(), 3u);
  EXPECT_NE(all[0].advice.find("likewise before a.cu:20; likewise before a.cu:30"),
            std::string::npos);
  EXPECT_EQ(all[0].pairs, 3u);
  EXPECT_EQ(all[1].edits.size(), 1u);
  // In both directions, of streams that a loop makes.
  std::vector<node::Finding> loop = {Unordered(10, 20, "stream 1", "stream 2"),
                                     Unordered(20, 10, "stream 3", "stream 5")};
  node::FoldOrders(&loop);
  EXPECT_EQ(loop.size(), 1u);
  // Seen again under another schedule.
  node::Fold({Unordered(20, 10, "stream 2", "stream 1")}, &all);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].edits.size(), 3u);
}

TEST_F(CheckingTest, WhatLacksTheSameBetweenTheSameKernelsIsOneFinding) {
  node::Finding elsewhere = Race("reduce.cu", 60, 1);
  elsewhere.accesses[1].kernel = "another";
  node::Finding unknown = Race("", 0, 1);
  machine->found = {Race("reduce.cu", 50, 3), Race("reduce.cu", 51, 1), elsewhere, unknown};
  const RunReport report = core->Report();
  ASSERT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.findings[0].pairs, 2u);
  EXPECT_EQ(report.findings[0].count, 4u);
  EXPECT_EQ(report.findings[0].also.size(), 1u);
}

TEST_F(CheckingTest, ReportsNameBothPlacesAndFoldWhatIsEqual) {
  const std::string file = (std::filesystem::current_path() / "kernels" / "reduce.cu").string();
  node::Finding other = Race(file, 51, 1);
  other.advice = "another remedy: of another cause";
  machine->found = {Race(file, 50, 3), other};
  core->Report();
  machine->found = {Race(file, 50, 4)};
  node::Finding packed = Race(file, 60, 1);
  packed.kind = node::Finding::Kind::kPortability;
  machine->found.push_back(packed);
  const RunReport report = core->Report();
  ASSERT_EQ(report.findings.size(), 3u);
  EXPECT_EQ(report.findings[0].count, 7u);
  EXPECT_EQ(node::CountedOf(report.findings), 2u);

  const std::string text = FindingsText(report);
  EXPECT_NE(text.find("wait(int*), block (0,0,0), thread 0, kernels/reduce.cu:50"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("remedy:  make the store at kernels/reduce.cu:41 a st.release.sys"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("3 findings: 2 races, 1 portability")) << text;

  const auto json = nlohmann::json::parse(ToJson(report));
  ASSERT_EQ(json["findings"].size(), 3u);
  const auto& first = json["findings"][0];
  EXPECT_EQ(first["kind"], "race");
  EXPECT_EQ(first["class"], "race");
  EXPECT_EQ(first["count"], 7);
  EXPECT_EQ(first["schedule"], 0);
  EXPECT_EQ(first["missing"], "nothing makes the store happen before the load");
  ASSERT_EQ(first["accesses"].size(), 2u);
  const auto& load = first["accesses"][0];
  EXPECT_EQ(load["file"], "kernels/reduce.cu");
  EXPECT_EQ(load["line"], 50);
  EXPECT_EQ(load["rank"], 1);
  EXPECT_EQ(load["kernel"], "wait(int*)");
  EXPECT_EQ(load["offset"], 16);
  EXPECT_EQ(load["write"], false);
  EXPECT_EQ(first["accesses"][1]["write"], true);
  EXPECT_EQ(first["accesses"][1]["form"], nullptr);
}

TEST_F(CheckingTest, FindingsOfOneCauseAreOneWithTheWidestRemedy) {
  const std::string file = (std::filesystem::current_path() / "kernels" / "reduce.cu").string();
  const auto fenced = [&](int line, const char* fence) {
    node::Finding finding = Race(file, line, 2);
    node::Edit edit;
    edit.at = {{"/usr/include/flags.h", 7, 3, "_Z4tellPi"}, {file, 41, 3, "_Z4sendPi"}};
    edit.text = fence;
    finding.edits = {edit};
    return finding;
  };
  machine->found = {fenced(50, "__threadfence();"), fenced(51, "__threadfence_system();")};
  machine->found.push_back(Race(file, 52, 1));  // no remedy: a cause of its own
  const RunReport report = core->Report();
  ASSERT_EQ(report.findings.size(), 2u);
  const node::Finding& first = report.findings[0];
  EXPECT_EQ(first.count, 4u);
  EXPECT_EQ(first.pairs, 2u);
  EXPECT_EQ(first.edits[0].text, "__threadfence_system();");
  ASSERT_EQ(first.also.size(), 1u);
  EXPECT_EQ(first.also[0].later, "load at kernels/reduce.cu:51");
  EXPECT_NE(FindingsText(report).find("also between 1 other pair of places: load at "
                                      "kernels/reduce.cu:51 and store at kernels/reduce.cu:41"),
            std::string::npos)
      << FindingsText(report);
  const auto json = nlohmann::json::parse(ToJson(report))["findings"][0];
  EXPECT_EQ(json["pairs"], 2);
  EXPECT_EQ(json["edits"][0]["action"], "insert_before");
  EXPECT_EQ(json["edits"][0]["by"], "thread");
  EXPECT_EQ(json["edits"][0]["at"][0]["function"], "tell(int*)");
  EXPECT_EQ(json["edits"][0]["at"][1]["file"], "kernels/reduce.cu");
}

TEST_F(CheckingTest, NothingFoundIsSaid) {
  const RunReport report = core->Report();
  EXPECT_EQ(node::Summary(report.findings), "no findings");
  EXPECT_EQ(nlohmann::json::parse(ToJson(report))["findings"], nlohmann::json::array());
}

TEST_F(CheckingTest, JsonHasAllOfAFinding) {
  machine->found = {Race("a.cu", 50, 3), Race("b.cu", 7, 1)};
  machine->found[1].kind = node::Finding::Kind::kMbarrier;
  machine->found[1].schedule = 1'000'012;
  const RunReport report = core->Report();
  const std::string json = node::ToJson(report.findings);
  EXPECT_EQ(node::ToJson(node::FindingsFromJson(json)), json);
  EXPECT_TRUE(node::FindingsFromJson("[{\"kind\": \"nothing\"}, 3]").empty());
  EXPECT_TRUE(node::FindingsFromJson("no JSON").empty());
}

TEST(Unchecked, ReportsHaveNoFindings) {
  Core core(std::make_unique<CheckedMachine>(), CoreOptions{});
  EXPECT_FALSE(nlohmann::json::parse(ToJson(core.Report())).contains("findings"));
}

TEST(Paths, OnlyWholePathsAreReplaced) {
  node::Finding finding = Race("/tmp/candidate.cu", 3, 1);
  finding.text = "see /tmp/candidate.cu:3 and /home/tmp/candidate.cu:3";
  node::ReplacePaths("/tmp/", "", &finding);
  EXPECT_EQ(finding.text, "see candidate.cu:3 and /home/tmp/candidate.cu:3");
  EXPECT_EQ(finding.accesses[0].file, "candidate.cu");
}

}  // namespace
}  // namespace allranks::server
