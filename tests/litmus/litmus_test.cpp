// All litmus tests, one GoogleTest case per file, and what the collection promises as a whole.
//   litmus_test [--seeds N] [--only PART] [--show] [--bare]
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "litmus_file.h"
#include "node/hardware/profile.h"
#include "ptx_text.h"
#include "verdict.h"

namespace allranks::litmus {
namespace {

constexpr const char* kRoot = ALLRANKS_SOURCE_DIR "/tests/litmus";

struct Options {
  std::uint64_t seeds = 200;
  std::string only;
  bool show = false, bare = false;
};
Options g_options;

struct Total {
  std::uint64_t tests = 0, inter_device = 0, sections = 0, runs = 0, outcomes = 0, reached = 0;
};
Total g_total;

const node::Profile& TheProfile() {
  static const node::Profile profile = [] {
    auto loaded = node::LoadProfile(ALLRANKS_SOURCE_DIR "/profiles/h100x8.toml");
    if (!loaded) {
      std::cerr << loaded.error().message << "\n";
      std::exit(1);
    }
    return *loaded;
  }();
  return profile;
}

std::vector<std::string> Paths() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot))
    if (entry.path().extension() == ".litmus")
      paths.push_back(std::filesystem::relative(entry.path(), kRoot).string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class FileTest : public ::testing::Test {
 public:
  explicit FileTest(std::string path) : path_(std::move(path)) {}
  void TestBody() override {
    const auto test = ReadTest(kRoot, path_);
    ASSERT_TRUE(test) << test.error().message;
    ++g_total.tests;
    g_total.inter_device += test->Devices().size() >= 2;
    for (const Section& section : test->sections) {
      if (g_options.show) Show(*test, section);
      const Verdict verdict = Judge(TheProfile(), *test, section, g_options.seeds, !g_options.bare);
      EXPECT_TRUE(verdict.failure.empty()) << verdict.failure;
      ++g_total.sections;
      g_total.runs += verdict.runs;
      g_total.outcomes += verdict.outcomes;
      g_total.reached += verdict.reached;
    }
  }

 private:
  static void Show(const litmus::Test& test, const Section& section) {
    const auto kernels = MakeKernels(test, section);
    ASSERT_TRUE(kernels) << kernels.error().message;
    for (const KernelText& kernel : *kernels)
      std::cout << "// " << test.path << " [" << section.title << "] on gpu" << kernel.device
                << ", " << kernel.blocks << " blocks of " << kernel.threads << "\n"
                << kernel.ptx;
  }

  std::string path_;
};

}  // namespace
}  // namespace allranks::litmus

int main(int argc, char** argv) {
  using namespace allranks::litmus;
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--show") {
      g_options.show = true;
    } else if (word == "--bare") {
      g_options.bare = true;
    } else if (word == "--only" && i + 1 < argc) {
      g_options.only = argv[++i];
    } else if (const auto seeds =
                   word == "--seeds" && i + 1 < argc ? Number(argv[i + 1]) : std::nullopt) {
      g_options.seeds = *seeds;
      ++i;
    } else {
      std::cerr << "litmus_test [--seeds N] [--only PART] [--show] [--bare]\n";
      return 2;
    }
  }
  for (const std::string& path : Paths()) {
    if (path.find(g_options.only) == std::string::npos) continue;
    std::string name = path.substr(0, path.size() - std::string(".litmus").size());
    std::replace(name.begin(), name.end(), '/', '.');
    ::testing::RegisterTest("Litmus", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [path]() -> ::testing::Test* { return new FileTest(path); });
  }
  const auto begin = std::chrono::steady_clock::now();
  const int failed = RUN_ALL_TESTS();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%llu litmus tests, %llu of them inter-device, %llu sections; %llu runs, %llu seeds or more "
      "each; %llu distinct outcomes, %llu allowed ones reached; %.1f s\n",
      static_cast<unsigned long long>(g_total.tests),
      static_cast<unsigned long long>(g_total.inter_device),
      static_cast<unsigned long long>(g_total.sections),
      static_cast<unsigned long long>(g_total.runs),
      static_cast<unsigned long long>(g_options.seeds),
      static_cast<unsigned long long>(g_total.outcomes),
      static_cast<unsigned long long>(g_total.reached), took.count());
  return failed;
}
