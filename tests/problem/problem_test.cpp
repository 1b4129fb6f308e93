// problem.toml: what a good one means, and that each kind of mistake is named with its line.
#include "problem/problem.h"

#include <gtest/gtest.h>

#include "problem/args.h"

namespace allranks::problem {
namespace {

constexpr const char* kGood = R"toml(schema = 1
title = "One-shot all-reduce"
category = "collective"
level = "easy"
library = "cuda"
parallelism = ["tp"]
family = "allreduce"
[run]
window = "graph"
links = ["nvlink"]
allow = ["kernel", "multicast"]
max_ctas = 64
[tensors]
values = { dir = "in", type = "T", shape = ["n", "k"], draw = "mixed" }
counts = { dir = "in", type = "i32", shape = ["world"], changes = true, draw = { kind = "counts", limit = "n" } }
out = { dir = "out", type = "T", shape = ["n"], peers = true }
area = { dir = "symmetric", bytes = "2*n*sizeof(T) + 64", multicast = true }
[vary]
T = ["bf16", "f32"]
[cases]
timed = { world = [8], n = [4096, 1], k = [3, 5] }
visible = { world = [2, 4], n = 7, k = [1] }
drawn = { world = "2..6", n = "128..1024 step 128", k = 2, count = 3 }
[floor]
ingress = "n*sizeof(T)"
hops = 1
[mutants]
publish = ["relax:race:needs_checker", "drop:deadlock"]
"one_buffer.patch" = "wrong_result"
)toml";

const std::filesystem::path kFolder = "problems/collective/allreduce";

Problem Good() {
  auto problem = Parse(kGood, kFolder);
  EXPECT_TRUE(problem) << problem.error().message;
  return problem.value_or(Problem());
}

// kGood with `from` replaced.
std::string Refusal(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const auto problem = Parse(text, kFolder);
  return problem ? "" : problem.error().message;
}

// All combinations of the values, named by those that are not the first of their list.
TEST(ProblemTest, VariantsAreProblemsOfTheirOwn) {
  std::string text = kGood;
  const std::string types = "T = [\"bf16\", \"f32\"]\n";
  text.replace(text.find(types), types.size(), types + "Width = [16, 64]\n");
  const std::string bytes = "2*n*sizeof(T) + 64";
  text.replace(text.find(bytes), bytes.size(), "Width*n*sizeof(T) + 64");
  const auto first = Parse(text, kFolder);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->variants, (std::vector<std::string>{"", "width64", "f32", "f32.width64"}));
  EXPECT_EQ(first->slug, "allreduce");
  EXPECT_EQ(first->vary.at("T"), Type::kBf16);
  EXPECT_EQ(first->constants.at("Width"), 16);
  const auto last = Parse(text, kFolder, "f32.width64");
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->slug, "allreduce.f32.width64");
  EXPECT_EQ(last->title, "One-shot all-reduce (f32.width64)");
  EXPECT_EQ(last->vary.at("T"), Type::kF32);
  EXPECT_EQ(last->tensors[0].type, Type::kF32);
  EXPECT_EQ(BytesOf(*last, last->tensors[3], last->cases[0]), 64u * 4096 * 4 + 64);
  EXPECT_NE(RenderHeader(*last).find("using T = float;\nconstexpr std::int64_t Width = 64;\n"),
            std::string::npos)
      << RenderHeader(*last);
  const auto none = Parse(text, kFolder, "f16");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("there is no variant 'f16'; there are width64, f32"),
            std::string::npos)
      << none.error().message;
}

TEST(ProblemTest, LargeCasesAreTimed) {
  std::string text = kGood;
  text.replace(text.find("visible = {"), 0, "large = { world = 8, n = [100000, 200000], k = 5 }\n");
  const auto problem = Parse(text, kFolder);
  ASSERT_TRUE(problem) << problem.error().message;
  std::vector<std::string> names;
  for (const Case& one : problem->cases) {
    EXPECT_EQ(one.large, one.name.starts_with("large.")) << one.name;
    if (!one.large) continue;
    EXPECT_EQ(one.kind, Case::Kind::kTimed);
    names.push_back(one.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"large.w8.n100000.k5", "large.w8.n200000.k5"}));
  // Where ranks live between calls, they could tell these from others.
  constexpr std::string_view kGraph = "window = \"graph\"";
  text.replace(text.find(kGraph), kGraph.size(), "window = \"stream\"");
  const auto refused = Parse(text, kFolder);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("only problems of the window 'graph'"), std::string::npos)
      << refused.error().message;
}

TEST(ProblemTest, AGoodOne) {
  const Problem problem = Good();
  EXPECT_EQ(problem.slug, "allreduce");
  EXPECT_EQ(problem.burst, 6);
  EXPECT_EQ(problem.params, (std::vector<std::string>{"n", "k"}));
  ASSERT_EQ(problem.tensors.size(), 4u);
  EXPECT_EQ(problem.tensors[0].name, "values");  // the file's order, not the alphabet's
  EXPECT_EQ(problem.tensors[0].type, Type::kBf16);
  EXPECT_EQ(problem.tensors[3].name, "area");
  EXPECT_TRUE(problem.tensors[3].peers);
  ASSERT_EQ(problem.cases.size(), 6u);
  EXPECT_EQ(problem.cases[0].name, "timed.w8.n4096.k3");
  EXPECT_EQ(problem.cases[1].name, "timed.w8.n4096.k5");
  EXPECT_EQ(problem.cases[5].name, "visible.w4.n7.k1");
  EXPECT_EQ(BytesOf(problem, problem.tensors[0], problem.cases[0]), 4096u * 3 * 2);
  EXPECT_EQ(BytesOf(problem, problem.tensors[3], problem.cases[0]), 4096u * 4 + 64);
  EXPECT_EQ(problem.floor.ingress.Evaluate(ValuesOf(problem, problem.cases[0])).value(), 8192);
  ASSERT_EQ(problem.mutants.size(), 3u);
  EXPECT_EQ(problem.mutants[0].name, "publish.relax");
  EXPECT_TRUE(problem.mutants[0].needs_checker);
  EXPECT_EQ(problem.mutants[2].name, "one_buffer");
  EXPECT_EQ(problem.mutants[2].verdict, "wrong_result");
}

TEST(ProblemTest, DrawnCasesStayInTheirRanges) {
  const Problem problem = Good();
  for (std::uint64_t draw = 0; draw < 8; ++draw) {
    const Case one = DrawCase(problem, 1, 3, [&](std::uint64_t n) { return draw % n; });
    EXPECT_EQ(one.name, "drawn.1");
    EXPECT_EQ(one.params, (std::vector<std::int64_t>{128 + 128 * static_cast<int>(draw), 2}));
    EXPECT_TRUE(one.skew);
  }
}

TEST(ProblemTest, TheLayoutIsThatOfAPlainStruct) {
  const ArgsLayout layout = LayOut(Good());
  // rank, world, n, k, values, counts, out, out_peers[8], area, area_peers[8], area_multicast
  EXPECT_EQ(layout.bytes, 8u + 16 + 8 + 8 + 8 + 64 + 8 + 64 + 8);
  const std::string header = RenderHeader(Good());
  for (const char* line :
       {"using T = __nv_bfloat16;", "struct __nv_bfloat16;  // <cuda_bf16.h> has it",
        "constexpr int kMaxRanks = 8;", "  const T* values;", "  std::int32_t* counts;",
        "  T* out_peers[kMaxRanks];", "  std::uint8_t* area_multicast;",
        "static_assert(sizeof(Args) == 192);", "static_assert(offsetof(Args, out_peers) == 48);",
        "extern \"C\" void launch(const Args& args, cudaStream_t stream);"}) {
    EXPECT_NE(header.find(std::string(line) + "\n"), std::string::npos) << line << "\n" << header;
  }
}

struct Mistake {
  const char *from, *to, *message;
};

TEST(ProblemTest, MistakesAreNamedWithTheirLines) {
  const Mistake mistakes[] = {
      {"schema = 1", "schema = 2", "problem.toml:1: schema is 2: expected an integer from 1 to 1"},
      {"level = \"easy\"", "level = \"esay\"",
       "toml:4: level is 'esay': expected one of easy, medium, hard (did you mean 'easy'?)"},
      {"title = \"One-shot all-reduce\"", "", "title is missing"},
      {"category = \"collective\"", "category = \"p2p\"", "is in 'collective'"},
      {"max_ctas = 64", "max_cta = 64",
       "toml:12: [run] max_cta is not a key of this section (did you mean 'max_ctas'?)"},
      {"links = [\"nvlink\"]", "links = [\"nvlnk\"]", "toml:10: [run] links has 'nvlnk'"},
      {"window = \"graph\"", "window = \"host\"", "host_threads is missing"},
      {"window = \"graph\"", "window = \"graph\"\ncalls = [\"setup\"]",
       "'setup' cannot be the name of an entry point"},
      {"dir = \"in\"", "dir = \"inn\"", "toml:14: [tensors.values] dir is 'inn'"},
      {"type = \"T\"", "type = \"U\"", "toml:14: [tensors.values] type is 'U'"},
      {"draw = \"mixed\"", "draw = \"bits\"", "is not valid for the type bf16"},
      {"draw = \"mixed\"", "draw = \"integers\"", "needs a limit"},
      {"limit = \"n\"", "limit = \"n - 1\"", "case timed.w8.n1.k3: the limit of draw is 0"},
      {"shape = [\"n\"]", "shape = []", "[tensors.out] shape is []"},
      {"shape = [\"n\"]", "shape = [\"m\"]", "'m' is unknown; known are k, n, sizeof(T), world"},
      {"shape = [\"n\"]", "shape = [\"n-2\"]", "\"n-2\" is -1"},
      {"shape = [\"n\"]", "shape = [\"n\"], bytes = 4", "bytes is not a key of this section"},
      {"out = {", "rank = {", "'rank' cannot be the name of a tensor"},
      {"out = {", "values_peers = {", "cannot be the name of a tensor"},
      {"\"kernel\", \"multicast\"", "\"kernel\"", "[run] allow lacks \"multicast\""},
      {"[\"bf16\", \"f32\"]", "[\"bf17\"]", "no type 'bf17'"},
      {"n = 7, ", "", "[cases.visible] n is missing"},
      {"n = 7, ", "n = 7, m = 2, ", "[cases.visible] m is not a key"},
      {"n = 7, ", "n = [7, 7], ", "has visible.w2.n7.k1 twice"},
      {"world = [2, 4]", "world = [2, 9]", "expected a list of integers from 1 to 8"},
      {"\"2..6\"", "\"6..2\"", "expected a range"},
      {"1024 step 128", "1024 by 128", "expected a range"},
      {"count = 3", "count = 0", "[cases.drawn] count is 0"},
      {R"(world = "2..6")", R"(world = "2..6 step 2")", "world takes no step"},
      {"visible = {", "large = { world = 8, n = 9 }\nvisible = {", "[cases.large] k is missing"},
      {"hops = 1", "hop = 1", "did you mean 'hops'?"},
      {"ingress = \"n*sizeof(T)\"", "ingress = \"n - 2\"",
       "[floor] ingress in case timed.w8.n1.k3: -1 is negative"},
      {"relax:race", "relaks:race", "no operator 'relaks' (did you mean 'relax'?)"},
      {"drop:deadlock", "drop:deadlok", "did you mean 'deadlock'?"},
      {"drop:deadlock", "drop:pass", "expected a verdict"},
      {"drop:deadlock", "relax:race", "has publish.relax twice"},
      {"\"one_buffer.patch\" = \"wrong_result\"",
       "one = { replace = \"a\", with = \"a\", gets = \"wrong_result\" }",
       "[mutants.one] replace is"},
      {"\"one_buffer.patch\" = \"wrong_result\"", "one = { replace = \"a\", gets = \"deadlok\" }",
       "[mutants.one] with is missing"},
      {"[floor]", "[flor]", "flor is not a key of this section (did you mean 'floor'?)"},
      {"schema = 1", "schema = = 1", "problem.toml:1: "},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string refusal = Refusal(mistake.from, mistake.to);
    EXPECT_NE(refusal.find(mistake.message), std::string::npos)
        << mistake.to << "\n  wanted: " << mistake.message << "\n  was: " << refusal;
  }
}

TEST(ProblemTest, AllMistakesAreToldAtOnce) {
  const std::string refusal =
      Refusal("level = \"easy\"\nlibrary = \"cuda\"", "level = 7\nlibrry = \"cuda\"");
  EXPECT_NE(refusal.find("level is 7"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("library is missing"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("librry is not a key"), std::string::npos) << refusal;
}

TEST(ProblemTest, NothingMakesItFall) {
  // Every prefix, and every place with one character changed.
  const std::string good = kGood;
  for (std::size_t i = 0; i < good.size(); i += 3) {
    (void)Parse(good.substr(0, i), kFolder);
    for (const char c : {'"', '9', '{', '-'}) {
      std::string text = good;
      text[i] = c;
      (void)Parse(text, kFolder);
    }
  }
}

}  // namespace
}  // namespace allranks::problem
