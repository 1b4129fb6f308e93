// An oracle from its source to its words: compiled, kept, loaded, called; and how it fails.
#include "judge/verify.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace allranks::judge {
namespace {

namespace fs = std::filesystem;

constexpr char kToml[] = R"(
schema = 1
title = "A problem for tests"
category = "collective"
level = "easy"
library = "cuda"
parallelism = ["tp"]
family = "test"
origin = "none"
split = "public"
[run]
window = "graph"
links = ["nvlink"]
allow = ["kernel"]
[tensors]
in = { dir = "in", type = "f32", shape = ["n"], draw = "mixed" }
out = { dir = "out", type = "f32", shape = ["n"] }
scratch = { dir = "symmetric", bytes = "n*4" }
[cases]
timed = { world = [2], n = [4] }
[floor]
ingress = "n*4"
hops = "1"
)";

// Its floor is twice the file's for rank 1. With n = 5 it looks at rank 0 only.
constexpr char kOracle[] = R"(
#include <allranks/oracle.h>
using namespace allranks::oracle;
extern "C" void Verify(const Call& call, Check& check) {
  std::vector<Piece> in, out;
  for (int r = 0; r < call.world(); ++r) {
    in.push_back({r, "in"});
    if (r == 0 || call.Param("n") != 5) out.push_back({r, "out"});
  }
  check.Sum(in, out, call.Param("n"));
}
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  if (rank == 1) floor.ingress = 2 * floor.ingress + call.In<float>(1, "in")[0];
}
)";

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest()
      : folder_(fs::temp_directory_path() / ("allranks_verify." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    problem_ = problem::Parse(kToml, folder_ / "collective" / "test").value();
    fs::create_directories(problem_.folder);
    tools_.include = ALLRANKS_SOURCE_DIR "/include";
    tools_.cache = (folder_ / "cache").string();
    one_ = problem_.cases[0];
  }
  ~VerifyTest() override { fs::remove_all(folder_); }
  void Write(const char* text) { std::ofstream(problem_.folder / "oracle.cpp") << text; }
  std::size_t Kept() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(tools_.cache)) ++count;
    return count;
  }
  static std::span<const std::byte> Bytes(const std::vector<float>& values) {
    return std::as_bytes(std::span(values));
  }

  fs::path folder_;
  problem::Problem problem_;
  problem::Case one_;
  Tools tools_;
};

TEST_F(VerifyTest, FromSourceToVerdict) {
  Write(kOracle);
  const auto oracle = Oracle::Load(tools_, problem_);
  ASSERT_TRUE(oracle) << oracle.error().message;
  EXPECT_EQ(Kept(), 1u);
  ASSERT_TRUE(Oracle::Load(tools_, problem_));  // from the cache
  EXPECT_EQ(Kept(), 1u);

  const std::vector<float> a = {1, 2, 3, 4}, b = {10, 20, 30, 40}, sum = {11, 22, 33, 44};
  CallView view;
  view.poison = 0x7ff9ffc5;
  view.by_rank = {{Bytes(a), Bytes(sum), {}}, {Bytes(b), Bytes(sum), {}}};
  Verified verified = oracle->Verify(problem_, one_, view);
  EXPECT_EQ(verified.failure, "");
  EXPECT_EQ(verified.wrong, 0u);
  EXPECT_EQ(verified.text, "");

  std::vector<float> bad = {11, 0, 33, 0};
  std::memcpy(&bad[3], &view.poison, sizeof(float));
  view.by_rank[1][1] = Bytes(bad);
  verified = oracle->Verify(problem_, one_, view);
  EXPECT_EQ(verified.failure, "");
  EXPECT_EQ(verified.wrong, 2u);
  EXPECT_TRUE(verified.text.starts_with("rank 1, out[1]: 22 +- ")) << verified.text;
  EXPECT_TRUE(verified.text.ends_with("expected, got never written")) << verified.text;

  view.by_rank[0][1] = view.by_rank[1][1] = {};
  const auto floors = oracle->Floors(problem_, one_, view);
  ASSERT_TRUE(floors) << floors.error().message;
  EXPECT_EQ((*floors)[0].ingress, 16);
  EXPECT_EQ((*floors)[1].ingress, 42);
  EXPECT_EQ((*floors)[1].hops, 1);

  // Views that do not fit and an oracle that forgets a rank are our faults.
  EXPECT_NE(oracle->Verify(problem_, one_, view).failure, "");
  const std::vector<float> five(5);
  one_.params = {5};
  view.by_rank = {{Bytes(five), Bytes(five), {}}, {Bytes(five), Bytes(five), {}}};
  EXPECT_EQ(oracle->Verify(problem_, one_, view).failure,
            "the oracle of test: only 0 of 5 elements of rank 1's 'out' were compared");
}

TEST_F(VerifyTest, FailuresSayWhy) {
  const auto why = [&] {
    const auto oracle = Oracle::Load(tools_, problem_);
    return oracle ? "it loaded" : oracle.error().message;
  };
  EXPECT_NE(why().find("oracle.cpp"), std::string::npos) << why();
  Write("int x = nothing;\n");
  EXPECT_NE(why().find("does not compile"), std::string::npos) << why();
  EXPECT_NE(why().find("was not declared in this scope"), std::string::npos) << why();
  Write("int x;\n");
  EXPECT_NE(why().find("does not include"), std::string::npos) << why();
  Write("void f(); int x = (f(), 1);\n");
  EXPECT_NE(why().find("does not load"), std::string::npos) << why();
  EXPECT_EQ(Kept(), 1u);  // the empty one: it was compiled and loaded
}

}  // namespace
}  // namespace allranks::judge
