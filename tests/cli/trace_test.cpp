// `allranks exec --trace` from the outside, with CUDA programs of tests/programs.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/trace_checks.h"

namespace allranks {
namespace {

namespace fs = std::filesystem;

class ExecTraceTest : public ::testing::Test {
 protected:
  ExecTraceTest() {
    std::string pattern = (fs::temp_directory_path() / "allranks-cli-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~ExecTraceTest() override { fs::remove_all(folder); }

  // The file that a run of the program makes; `code`: how it must end.
  std::string Trace(const std::string& program, int code = 0) const {
    const std::string path = folder + "/trace.json";
    const std::string command = ALLRANKS_COMMAND " exec --trace " + path +
                                " -- " ALLRANKS_BINARY_DIR "/programs/" + program + " >" + folder +
                                "/output 2>&1";
    const int status = std::system(command.c_str());
    EXPECT_EQ(WEXITSTATUS(status), code) << program;
    std::ifstream file(path);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }

  std::string folder;
};

TEST_F(ExecTraceTest, KernelsCopiesCallsAndLinks) {
  const CheckedTrace trace = CheckTrace(Trace("communication/allreduce_one_shot 8"));
  for (int device = 0; device < 8; ++device) {
    const std::string name = "gpu" + std::to_string(device);
    const std::size_t waits = trace.Count(name + "/rank 0 stream 1: waits", "AllReduce");
    EXPECT_GT(waits, 0u);
    EXPECT_EQ(trace.Count(name + "/rank 0 stream", "AllReduce"), 5u + waits);
    EXPECT_EQ(trace.Count(name + "/copy engine", "copy " + name + " > host"), 1u);
    EXPECT_TRUE(trace.counters.contains(name + " > nvswitch GB/s"));
    EXPECT_TRUE(trace.counters.contains("nvswitch > " + name + " GB/s"));
  }
  EXPECT_EQ(trace.Count("rank 0/thread", "cudaLaunchKernel"), 40u);
  EXPECT_GE(trace.Count("rank 0/thread", "cudaStreamSynchronize"), 8u);
}

TEST_F(ExecTraceTest, CallsHaveTheirNamesArgumentsAndKernels) {
  const CheckedTrace trace = CheckTrace(Trace("communication/allreduce_one_shot 8"));
  std::size_t launches = 0, allocations = 0;
  for (const auto& [track, list] : trace.slices) {
    if (track.find("rank 0/thread") == std::string::npos) continue;
    for (const auto& call : list) {
      const std::string name = call["name"];
      // Nothing of how the node is asked: "device_sync", "copy_in".
      EXPECT_TRUE(name.starts_with("cuda") || name.starts_with("cu") || name == "pthread_create" ||
                  name == "pthread_join" || name.find(' ') != std::string::npos ||
                  name.starts_with("sched_"))
          << name;
      if (name == "cudaMalloc") {
        ++allocations;
        EXPECT_GT(call["args"]["bytes"], 0) << call;
      }
      if (name != "cudaLaunchKernel") continue;
      ++launches;
      EXPECT_EQ(call["args"]["block"].get<std::string>().find("x1x1"), 3u) << call;
      EXPECT_NE(call["args"]["starts"].get<std::string>().find("AllReduce"), std::string::npos);
    }
  }
  EXPECT_EQ(launches, 40u);
  EXPECT_GT(allocations, 0u);
  std::size_t arrows = 0;
  for (const auto& flow : trace.flows) {
    if (flow.name != "launch" || flow.from["name"] != "cudaLaunchKernel") continue;
    ++arrows;
    EXPECT_NE(flow.to["name"].get<std::string>().find("AllReduce"), std::string::npos);
    EXPECT_LE(flow.start["ts"].get<double>(), flow.end["ts"].get<double>());
  }
  EXPECT_EQ(arrows, 40u);
}

TEST_F(ExecTraceTest, WaitsOfTwoProcesses) {
  const std::string text = Trace("communication/pingpong_ipc");
  const CheckedTrace trace = CheckTrace(text);
  // 200 rounds: each side waits once a round, or finds its flag there already.
  for (const char* waits :
       {"gpu0/rank 0 default stream: waits", "gpu1/rank 1 default stream: waits"}) {
    EXPECT_LE(trace.Count(waits, "PingPong"), 200u);
    EXPECT_GE(trace.Count(waits, "PingPong"), 100u);
  }
  for (const auto& wait : trace.slices.at("gpu1/rank 1 default stream: waits")) {
    EXPECT_NE(wait["args"]["at"].get<std::string>().find(".h:"), std::string::npos) << wait;
  }
  // Each wait is ended by the other side's store of its flag.
  std::size_t ended = 0;
  for (const auto& flow : trace.flows) {
    if (flow.name != "write") continue;
    ++ended;
    const bool first = flow.to_track.starts_with("gpu0");
    EXPECT_TRUE(flow.from_track.starts_with(first ? "gpu1/rank 1" : "gpu0/rank 0")) << flow.from;
    EXPECT_NE(flow.to_track.find(": waits"), std::string::npos);
    EXPECT_LE(flow.start["ts"].get<double>(), flow.end["ts"].get<double>());
    EXPECT_NE(flow.to["args"]["ended_by"].get<std::string>().find(".h:"), std::string::npos);
  }
  EXPECT_EQ(ended, trace.Count(": waits", "PingPong"));
  EXPECT_EQ(text, Trace("communication/pingpong_ipc")) << "the same twice";
}

TEST_F(ExecTraceTest, EventsAndPeerCopies) {
  const CheckedTrace trace = CheckTrace(Trace("communication/peer_copy_events"));
  EXPECT_GT(trace.instants.size(), 0u);
  EXPECT_GT(trace.Count("gpu1/copy engine", "copy gpu0 > gpu1"), 0u);
}

TEST_F(ExecTraceTest, ADeadlockShowsWhoWaits) {
  const CheckedTrace trace = CheckTrace(Trace("deadlock/missing_signal", 86));
  ASSERT_EQ(trace.Count("gpu1/rank 0 default stream: waits", "Consumer"), 1u);
  const auto& wait = trace.slices.at("gpu1/rank 0 default stream: waits").at(0);
  EXPECT_NE(wait["args"]["at"].get<std::string>().find("missing_signal.cu:19"), std::string::npos);
}

TEST_F(ExecTraceTest, AFileThatCannotBeWrittenIsToldBeforeTheRun) {
  const std::string command =
      ALLRANKS_COMMAND " exec --trace /nonexistent/x -- touch " + folder + "/ran 2>/dev/null";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_FALSE(fs::exists(folder + "/ran"));
}

}  // namespace
}  // namespace allranks
