// nvcc against this folder: sources of many kinds (tests/ptx/nvcc) are compiled for every target,
// and all that comes out must be read; cubins are held against the report of ptxas. Built only with
// CUDA.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ptx/cubin.h"
#include "ptx/fatbin.h"
#include "ptx/parser.h"
#include "ptx/ptxas_report.h"
#include "ptx/read_file.h"

namespace allranks::ptx {
namespace {

namespace fs = std::filesystem;

const std::string kSources = std::string(ALLRANKS_SOURCE_DIR "/tests/ptx/nvcc/");

class NvccTest : public testing::TestWithParam<std::string> {
 protected:
  NvccTest() {
    std::string folder = (fs::temp_directory_path() / "allranks-nvcc-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  ~NvccTest() override { fs::remove_all(folder_); }

  // False, with nvcc's output as the failure, if it does not compile. 20054: libcu++'s barriers in
  // shared memory have constructors.
  bool Compile(const std::string& options, const fs::path& output) {
    const fs::path log = folder_ / "log";
    const std::string command = std::string(ALLRANKS_NVCC) + " -diag-suppress 20054 " + options +
                                " " + kSources + GetParam() + ".cu -o " + output.string() + " >" +
                                log.string() + " 2>&1";
    const int result = std::system(command.c_str());
    log_ = ReadFile(log);
    EXPECT_EQ(result, 0) << command << "\n" << log_;
    return result == 0;
  }

  // Whether the source includes libcu++ or CUB, which nvcc reads for seconds per target. Small
  // sources see every target, large ones the ends of the range.
  static bool Large() { return GetParam() == "collectives" || GetParam() == "async_copies"; }

  fs::path folder_;
  std::string log_;
};

TEST_P(NvccTest, PtxForEveryTarget) {
  std::string options = "-fatbin -lineinfo";
  std::size_t count = 0;
  const std::vector<std::string> all = {"75",  "80",   "86",   "89",  "90",   "90a",
                                        "100", "100a", "100f", "103", "103a", "103f"};
  for (const std::string& arch : Large() ? std::vector<std::string>{"75", "90a", "103f"} : all) {
    options += " -gencode arch=compute_" + arch + ",code=compute_" + arch;
    ++count;
  }
  ASSERT_TRUE(Compile(options, folder_ / "out.fatbin"));
  const std::string bytes = ReadFile(folder_ / "out.fatbin");
  const Result<Fatbin> fatbin = Fatbin::Open(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(fatbin.has_value()) << fatbin.error().message;
  EXPECT_EQ(fatbin->images().size(), count);
  for (std::size_t i = 0; i < fatbin->images().size(); ++i) {
    const Result<std::string> text = fatbin->Extract(i);
    ASSERT_TRUE(text.has_value()) << text.error().message;
    const Result<Module> module = Parse(*text);
    ASSERT_TRUE(module.has_value()) << fatbin->images()[i].arch << ": " << module.error().message;
    EXPECT_TRUE(module->target.starts_with("sm_" + std::to_string(fatbin->images()[i].arch)));
  }
}

TEST_P(NvccTest, DebugAndRelocatablePtx) {
  const std::vector<std::string> all = {"-ptx -G -arch=compute_90a", "-ptx -G -arch=compute_100a",
                                        "-ptx -rdc=true -lineinfo -arch=compute_90a"};
  const std::vector<std::string> both = {"-ptx -G -rdc=true -arch=compute_90a"};
  for (const std::string& options : Large() ? both : all) {
    ASSERT_TRUE(Compile(options, folder_ / "out.ptx"));
    const Result<Module> module = Parse(ReadFile(folder_ / "out.ptx"));
    EXPECT_TRUE(module.has_value()) << options << ": " << module.error().message;
  }
}

TEST_P(NvccTest, CubinAsPtxasReports) {
  const std::vector<std::string> all = {"75", "90a", "100a"};
  for (const std::string& arch : Large() ? std::vector<std::string>{"90a"} : all) {
    ASSERT_TRUE(Compile("-cubin -Xptxas -v -arch=sm_" + arch, folder_ / "out.cubin"));
    const std::string bytes = ReadFile(folder_ / "out.cubin");
    const auto kernels = ReadCubin(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(kernels.has_value()) << kernels.error().message;
    SCOPED_TRACE("sm_" + arch);
    ExpectSameResources(*kernels, ParsePtxasReport(log_));
  }
}

INSTANTIATE_TEST_SUITE_P(Ptx, NvccTest,
                         testing::Values("control_flow", "collectives", "tensor_cores",
                                         "async_copies", "resources"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace allranks::ptx
