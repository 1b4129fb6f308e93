// tools/mutants: which bugs are sown where, and that nothing outside of the region is touched.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "mutants/corpus.h"
#include "mutants/seed.h"

namespace allranks::mutants {
namespace {

std::string InRegion(const std::string& code) {
  return "#include \"problem.h\"\n// >>> edit\n" + code + "// <<< edit\n";
}

// The line that an operator has changed at `place`; empty: it has not.
std::string Changed(const std::string& code, const std::string& op, const std::string& place) {
  const std::string source = InRegion(code);
  for (const Seeded& seeded : Seed(source)) {
    if (seeded.op != op || seeded.place != place) continue;
    std::istringstream before(source), after(seeded.text);
    for (std::string a, b; std::getline(before, a) && std::getline(after, b);)
      if (a != b) return b;
  }
  return "";
}

TEST(SeedTest, OrdersAreRelaxedAndScopesNarrowed) {
  const std::string code =
      "__device__ void F(int* p) {\n"
      "  asm volatile(\"st.release.sys.global.u32 [%0], 1;\" ::\"l\"(p) : \"memory\");\n"
      "}\n";
  EXPECT_EQ(Changed(code, "relax", "4"),
            "  asm volatile(\"st.relaxed.sys.global.u32 [%0], 1;\" ::\"l\"(p) : \"memory\");");
  EXPECT_EQ(Changed(code, "narrow", "4"),
            "  asm volatile(\"st.release.gpu.global.u32 [%0], 1;\" ::\"l\"(p) : \"memory\");");
  EXPECT_EQ(Changed(code, "weaken", "4"),
            "  asm volatile(\"st.global.u32 [%0], 1;\" ::\"l\"(p) : \"memory\");");
}

TEST(SeedTest, FencesAndBarriersGoAway) {
  const std::string code =
      "__global__ void F(Args args) {\n"
      "  args.out[0] = 1;\n"
      "  __threadfence_system();\n"
      "  __syncthreads();\n"
      "  args.out[1] = 1;\n"
      "}\n";
  EXPECT_EQ(Changed(code, "drop_fence", "5"), "  ;");
  EXPECT_EQ(Changed(code, "narrow", "5"), "  __threadfence();");
  EXPECT_EQ(Changed(code, "drop_barrier", "6"), "  ;");
  EXPECT_EQ(Changed(code, "partial_barrier", "6"), "  if (threadIdx.x != 1) __syncthreads();");
  EXPECT_EQ(Changed(code, "late_barrier", "6"), "  args.out[1] = 1;");
  EXPECT_EQ(Changed(code, "early_fence", "5"), "  __threadfence_system();");
}

TEST(SeedTest, WaitsAreForLess) {
  const std::string code =
      "__global__ void F(Args args) {\n"
      "  if (threadIdx.x < args.world) {\n"
      "    while (LoadAcquireSys(&mine->done[threadIdx.x]) < call) {\n"
      "    }\n"
      "  }\n"
      "}\n";
  EXPECT_EQ(Changed(code, "equal", "5"),
            "    while (LoadAcquireSys(&mine->done[threadIdx.x]) != call) {");
  EXPECT_EQ(Changed(code, "early_wait", "5"),
            "    while (LoadAcquireSys(&mine->done[threadIdx.x]) < call - 1) {");
  EXPECT_EQ(Changed(code, "wait_once", "5"),
            "    if (LoadAcquireSys(&mine->done[threadIdx.x]) < call) {");
  EXPECT_EQ(Changed(code, "skip_peer", "5"),
            "    while (threadIdx.x != 1 && LoadAcquireSys(&mine->done[threadIdx.x]) < call) {");
}

TEST(SeedTest, AFunctionOfTwoCallsIsAlsoWrongForOneOfThem) {
  const std::string code =
      "__device__ void Meet(const Args& args) {\n"
      "  __syncthreads();\n"
      "}\n"
      "__global__ void F(Args args) {\n"
      "  Meet(args);\n"
      "  Meet(args);\n"
      "}\n";
  for (const Seeded& seeded : Seed(InRegion(code))) {
    if (seeded.op != "drop_barrier" || seeded.place != "4@8") continue;
    EXPECT_NE(seeded.text.find("__device__ void MeetHere(const Args& args) {\n  ;\n}\n"),
              std::string::npos);
    EXPECT_NE(seeded.text.find("  Meet(args);\n  MeetHere(args);\n"), std::string::npos)
        << seeded.text;
    return;
  }
  FAIL() << "not sown";
}

TEST(SeedTest, OnlyTheRegionIsTouchedAndNoMutantIsMadeTwice) {
  const std::string source = "void A() { __syncthreads(); }\n" +
                             InRegion("void B() {\n  __syncthreads();\n}\n") +
                             "void C() { __syncthreads(); }\n";
  std::vector<std::string> texts;
  for (const Seeded& seeded : Seed(source)) {
    EXPECT_TRUE(seeded.text.starts_with("void A() { __syncthreads(); }\n")) << seeded.text;
    EXPECT_TRUE(seeded.text.ends_with("void C() { __syncthreads(); }\n")) << seeded.text;
    EXPECT_NE(seeded.text, source);
    texts.push_back(seeded.text);
  }
  EXPECT_GE(texts.size(), 2u);
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end());
}

TEST(SeedTest, WithoutARegionThereIsNothingToSow) {
  EXPECT_TRUE(Seed("void A() { __syncthreads(); }\n").empty());
  EXPECT_TRUE(Seed("").empty());
}

TEST(EquivalentTest, EveryLineNeedsAReason) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "equivalent.tsv";
  std::ofstream(file) << "# why\na:1:relax\tnobody reads it\n";
  const auto good = ReadEquivalent(file);
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->at("a:1:relax"), "nobody reads it");
  std::ofstream(file) << "a:1:relax\n";
  EXPECT_FALSE(ReadEquivalent(file).has_value());
  std::ofstream(file) << "a\tx\na\ty\n";
  EXPECT_FALSE(ReadEquivalent(file).has_value());
}

}  // namespace
}  // namespace allranks::mutants
