// tools/mutants: which bugs are sown where, that nothing outside of the region is touched, that
// those written by hand still fit their originals, which kept verdicts count, and what the table
// says.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "mutants/corpus.h"
#include "mutants/seed.h"
#include "mutants/store.h"
#include "mutants/table.h"

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

// Solutions are regions; a whole file has markers around its own.
TEST(SeedTest, AFileWithoutMarkersIsARegion) {
  const std::string code = "__global__ void A(Args args) {\n  __syncthreads();\n}\n";
  const std::vector<Seeded> alone = Seed(code), marked = Seed(InRegion(code));
  ASSERT_FALSE(alone.empty());
  ASSERT_EQ(alone.size(), marked.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(alone[i].op, marked[i].op);
    EXPECT_EQ(InRegion(alone[i].text), marked[i].text);
  }
  EXPECT_TRUE(Seed("").empty());
}

// Weaker forms that the file of the region defines before it.
TEST(SeedTest, CallsOfHelpersTakeWeakerOnes) {
  const std::string code = "__global__ void A(Args args) {\n  StoreReleaseSys(args.flag, 1);\n}\n";
  const auto relaxed = [&](const std::string& before) {
    const std::vector<Seeded> all = Seed(code, before);
    return std::any_of(all.begin(), all.end(), [](const Seeded& seeded) {
      return seeded.op == "relax" && seeded.text.find("StoreRelaxedSys(args") != std::string::npos;
    });
  };
  EXPECT_FALSE(relaxed(""));
  EXPECT_TRUE(relaxed("__device__ void StoreRelaxedSys(int* flag, int value) {}\n"));
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

namespace fs = std::filesystem;

fs::path EmptyFolder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

// Whoever changes a solution or a program carries the bugs of it along.
TEST(ByHandTest, EveryBugStillFitsItsOriginal) {
  const fs::path source = ALLRANKS_SOURCE_DIR;
  const fs::path blind = source / "tests/mutants/blind";
  const auto all = ReadByHand(blind, source / "problems", source / "tests/programs");
  ASSERT_TRUE(all.has_value()) << all.error().message;
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(blind))
    files += entry.path().extension() == ".patch" || entry.path().extension() == ".cu";
  EXPECT_EQ(all->size(), files);
  for (const Mutant& mutant : *all) {
    EXPECT_FALSE(mutant.expected.empty()) << mutant.id;
    EXPECT_EQ(IsProgram(mutant), !mutant.arguments.empty()) << mutant.id;
    const auto original = OriginalOf(mutant);
    ASSERT_TRUE(original.has_value()) << mutant.id;
    EXPECT_NE(original->text, mutant.text) << mutant.id;
  }
}

TEST(ByHandTest, AStalePatchIsNamed) {
  const fs::path folder = EmptyFolder("stale");
  for (const char* name : {"blind/programs", "problems", "programs/p2p"})
    fs::create_directories(folder / name);
  std::ofstream(folder / "programs/p2p/a.cu") << "int a;\nint b;\n";
  const auto patch = [&](const std::string& name, const std::string& line) {
    std::ofstream(folder / "blind/programs" / name)
        << "// expect: race|deadlock\n// run: 2 threads\n--- a/p2p/a.cu\n+++ b/p2p/a.cu\n"
        << "@@ -1,2 +1,2 @@\n-" << line << "\n+int c;\n int b;\n";
  };
  const auto read = [&] {
    return ReadByHand(folder / "blind", folder / "problems", folder / "programs");
  };
  patch("fits.patch", "int a;");
  const auto good = read();
  ASSERT_TRUE(good.has_value()) << good.error().message;
  ASSERT_EQ(good->size(), 1u);
  EXPECT_EQ(good->at(0).text, "int c;\nint b;\n");
  EXPECT_EQ(good->at(0).arguments, (std::vector<std::string>{"2", "threads"}));
  EXPECT_EQ(good->at(0).expected, (std::vector<std::string>{"race", "deadlock"}));
  patch("stale.patch", "int x;");
  patch("stale_too.patch", "int y;");
  const auto bad = read();
  ASSERT_FALSE(bad.has_value());
  EXPECT_NE(bad.error().message.find("programs/stale.patch"), std::string::npos);
  EXPECT_NE(bad.error().message.find("programs/stale_too.patch"), std::string::npos);
  EXPECT_EQ(bad.error().message.find("fits"), std::string::npos);
}

TEST(StoreTest, AnotherBuildOrSourceIsJudgedAgainUnlessVerdictsAreReused) {
  const fs::path folder = EmptyFolder("store"), command = folder / "bin/allranks";
  fs::create_directories(command.parent_path());
  Mutant mutant{"programs/a.patch", kPrograms, kByHand, "text", "a.cu", {"2"}, {}};
  const auto open = [&](const char* bytes, bool outputs, bool all) {
    std::ofstream(command) << bytes;
    return std::make_unique<Store>(folder / "kept", command, outputs, all);
  };
  const auto first = open("one", false, false);
  EXPECT_EQ(first->Find(mutant, Kind::kChecked).word, "");
  EXPECT_TRUE(first->Keep(mutant, Kind::kChecked, R"({"verdict": "race"})"));
  EXPECT_TRUE(first->Keep(mutant, Kind::kOutputs, R"({"verdict": "pass"})"));
  EXPECT_EQ(open("one", false, false)->Find(mutant, Kind::kChecked).word, "race");
  EXPECT_FALSE(open("one", true, true)->Find(mutant, Kind::kChecked).other_build);
  EXPECT_EQ(first->Find(mutant, Kind::kOriginal).word, "");

  EXPECT_EQ(open("two", false, false)->Find(mutant, Kind::kOutputs).word, "");
  EXPECT_EQ(open("two", true, false)->Find(mutant, Kind::kOutputs).word, "pass");
  EXPECT_EQ(open("two", true, false)->Find(mutant, Kind::kChecked).word, "");
  EXPECT_EQ(open("two", false, true)->Find(mutant, Kind::kChecked).word, "race");
  EXPECT_TRUE(open("two", false, true)->Find(mutant, Kind::kChecked).other_build);

  fs::last_write_time(command, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_FALSE(first->Keep(mutant, Kind::kOriginal, R"({"verdict": "pass"})"));
  EXPECT_EQ(first->Find(mutant, Kind::kOriginal).word, "");

  mutant.arguments = {"3"};
  EXPECT_EQ(open("one", true, true)->Find(mutant, Kind::kChecked).word, "");
  mutant.arguments = {"2"};
  mutant.text = "other";
  EXPECT_EQ(open("one", true, true)->Find(mutant, Kind::kChecked).word, "");
}

Case Judged(const std::string& op, const std::string& outputs, const std::string& checked) {
  Case one;
  one.mutant.id = op + "/" + outputs + "/" + checked;
  one.mutant.op = op;
  one.outputs.word = outputs;
  one.checked.word = checked;
  return one;
}

TEST(TableTest, CountsWhatIsCaughtAndSaysWhatIsNot) {
  std::vector<Case> cases = {Judged("relax", "pass", "race"),
                             Judged("relax", "pass", "pass"),
                             Judged("relax", "wrong_result", "race"),
                             Judged("relax", "pass", ""),
                             Judged("relax", "compile_error", "compile_error"),
                             Judged(kByHand, "tampering", "deadlock")};
  cases.push_back(Judged("relax", "pass", "pass"));
  cases.back().equivalent = "nobody reads it";
  const std::string table = Table(cases, {3, {"a.cu"}}, "abc", "2026-01-02");
  const auto has = [&](const std::string& text) { return table.find(text) != std::string::npos; };
  EXPECT_TRUE(has("| `relax` | 5 | 1 | 1 (25.0 %) | 2 (66.7 %) of 3 |")) << table;
  EXPECT_TRUE(has("| **all by hand** | 1 | 0 | - | 1 (100.0 %) |")) << table;
  EXPECT_TRUE(has("Not judged: 1 by outputs alone, 1 with the checker;")) << table;
  EXPECT_TRUE(has("Of 3 originals these do not pass under the same checker: `a.cu`.")) << table;
  EXPECT_TRUE(has("These survive the checker:\n`relax/pass/pass`.")) << table;
  EXPECT_FALSE(has("earlier build")) << table;
  cases[0].checked.other_build = true;
  EXPECT_NE(Table(cases, {}, "abc", "2026-01-02").find("earlier build: 0 by outputs alone, 1 with"),
            std::string::npos);
}

TEST(TableTest, NothingLeftOutNothingSaid) {
  const std::string table = Table({Judged("relax", "pass", "race")}, {1, {}}, "abc", "2026-01-02");
  EXPECT_EQ(table.find("Not judged"), std::string::npos) << table;
  EXPECT_EQ(table.find("not judged"), std::string::npos) << table;
  EXPECT_NE(table.find("None survives the checker."), std::string::npos) << table;
  EXPECT_NE(table.find("All 1 originals pass"), std::string::npos) << table;
}

}  // namespace
}  // namespace allranks::mutants
