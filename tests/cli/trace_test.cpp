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
  EXPECT_EQ(trace.Count("rank 0/thread", "launch"), 40u);
  EXPECT_GE(trace.Count("rank 0/thread", "stream_sync"), 8u);
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
