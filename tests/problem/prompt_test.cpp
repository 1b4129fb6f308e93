// Prompts: every shipped template for every problem and profile, what they say, and what is wrong
// with templates of users.
#include "problem/prompt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <tuple>

#include "problem/facts.h"
#include "problem/machine.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

namespace fs = std::filesystem;
using ::testing::TempDir;

const fs::path kRoot = ALLRANKS_SOURCE_DIR;
const fs::path kPrompts = kRoot / "share/prompts";

const std::vector<Problem>& Problems() {
  static const std::vector<Problem> problems = [] {
    std::vector<Problem> all;
    for (const fs::path& folder : Find(kRoot / "problems")) all.push_back(Load(folder).value());
    return all;
  }();
  return problems;
}

Problem Named(const std::string& slug) {
  for (const Problem& problem : Problems())
    if (problem.slug == slug) return problem;
  ADD_FAILURE() << "no problem " << slug;
  return {};
}

std::vector<node::Profile> Profiles() {
  std::vector<node::Profile> all;
  for (const auto& entry : fs::directory_iterator(kRoot / "profiles"))
    if (entry.path().extension() == ".toml")
      all.push_back(node::LoadProfile(entry.path().string()).value());
  return all;
}

const node::Profile& H100() {
  static const node::Profile profile =
      node::LoadProfile((kRoot / "profiles/h100x8.toml").string()).value();
  return profile;
}

PromptContext ContextOf(const Problem& problem, const node::Profile& profile = H100()) {
  return {&problem, &profile, kPrompts, "13.0", {"-std=c++17", "-O3"}};
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

fs::path Written(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(TempDir()) / name;
  std::ofstream(path) << text;
  return path;
}

Feedback SomeFeedback(bool improve) {
  Feedback feedback;
  feedback.improve = improve;
  feedback.verdict = improve ? "pass" : "wrong_result";
  feedback.text = "rank 1: out[3] is 0";
  feedback.log = "a log";
  feedback.times = {{"timed.w8.n4096", 10, 5, 1.5}};
  feedback.fraction = 0.5;
  feedback.round = 1;
  feedback.rounds = 3;
  return feedback;
}

// Every template with every profile, and with every problem: the profiles take turns.
TEST(PromptTest, EveryTemplateRendersForEveryProblemAndProfile) {
  const std::vector<std::string> names = PromptNames(kPrompts);
  EXPECT_EQ(names, (std::vector<std::string>{"apis", "default", "pytorch", "terse"}));
  const std::vector<node::Profile> profiles = Profiles();
  ASSERT_GE(Problems().size(), profiles.size());
  std::size_t count = 0;
  for (const std::string& name : names) {
    const auto form = LoadPrompt(name, kPrompts);
    ASSERT_TRUE(form) << form.error().message;
    EXPECT_EQ(form->parts.size(), 4u);
    for (std::size_t i = 0; i < Problems().size(); ++i) {
      const Problem& problem = Problems()[i];
      std::size_t turn = i;
      while (!On(problem, profiles[turn % profiles.size()]) && turn < i + profiles.size()) ++turn;
      ASSERT_LT(turn, i + profiles.size()) << problem.slug << " fits no profile";
      const node::Profile& profile = profiles[turn % profiles.size()];
      const Region region = SplitTemplate(TemplateOf(problem).value()).value();
      SCOPED_TRACE(name + " " + problem.slug + " " + profile.name);
      const PromptContext context = ContextOf(problem, profile);
      const auto prompt = MakePrompt(*form, context);
      ASSERT_TRUE(prompt) << prompt.error().message;
      ++count;
      EXPECT_FALSE(prompt->system.empty());
      for (const std::string& text :
           {prompt->system, prompt->task, MakeFeedback(*form, context, SomeFeedback(false)).value(),
            MakeFeedback(*form, context, SomeFeedback(true)).value()}) {
        EXPECT_FALSE(Has(text, "{{")) << text;
        EXPECT_FALSE(Has(text, "}}")) << text;
        EXPECT_FALSE(Has(text, "&quot;")) << text;
        EXPECT_FALSE(Has(text, "&lt;")) << text;
        EXPECT_FALSE(Has(text, "\n\n\n\n")) << text;
      }
      // Whole and unescaped.
      EXPECT_TRUE(Has(prompt->task, region.before));
      EXPECT_TRUE(Has(prompt->task, region.inside));
      const std::string statement = ReadFile(problem.folder / "statement.md").value();
      EXPECT_TRUE(Has(prompt->task, statement.substr(0, statement.find_last_not_of('\n') + 1)));
      // Facts.
      EXPECT_TRUE(Has(prompt->task, "CUDA 13.0"));
      EXPECT_TRUE(Has(prompt->task, "nvcc -std=c++17 -O3"));
      EXPECT_TRUE(Has(prompt->task, profile.device.name));
      EXPECT_TRUE(Has(prompt->task, std::to_string(problem.burst) + " in a series"));
      // Without a bound there is nothing to say.
      EXPECT_EQ(Has(prompt->task, std::to_string(problem.max_ctas) + " blocks"),
                problem.max_ctas > 0 && Allows(problem, "kernel"));
      for (const Case& one : problem.cases) {
        std::string params = "world = " + std::to_string(one.world);
        for (std::size_t k = 0; k < problem.params.size(); ++k)
          params += ", " + problem.params[k] + " = " + std::to_string(one.params[k]);
        EXPECT_TRUE(Has(prompt->task, params)) << params;
      }
      for (const std::string& call : problem.calls)
        EXPECT_TRUE(Has(prompt->task, "`" + call + "`")) << call;
      const Problem there = On(problem, profile).value();
      for (const std::string& link : there.links)
        EXPECT_TRUE(Has(prompt->task, "`" + link + "` may carry payload")) << link;
      EXPECT_TRUE(Has(prompt->task, "drawn in secret"));
      EXPECT_TRUE(Has(prompt->task, "one fenced code block"));
      EXPECT_TRUE(Has(prompt->task, "geometric mean"));
    }
  }
  EXPECT_EQ(count, names.size() * Problems().size());
}

TEST(PromptTest, FactsOfProblems) {
  const auto facts = [](const std::string& slug) {
    const Problem problem = Named(slug);
    return MakeFacts(ContextOf(problem)).value();
  };
  const Facts moe = facts("moe_dispatch_combine");
  EXPECT_EQ(moe.words.at("entry_points"), "`dispatch` and `combine`");
  EXPECT_TRUE(Has(moe.lists.at("define")[0],
                  "extern \"C\" void dispatch(const Args& args, cudaStream_t stream)"));
  EXPECT_TRUE(Has(moe.lists.at("define")[2], "`dispatch` and `combine`, in this order"));
  EXPECT_EQ(moe.words.at("drawn"),
            "4 further cases are drawn in secret: world from 2 to 8, tokens from 1 to 100, quads "
            "from 1 to 40, experts from 4 to 32, topk from 1 to 4.");
  const Facts fifo = facts("fifo_gpu_to_cpu");
  EXPECT_EQ(fifo.words.at("entry_points"), "`launch` and `host`");
  EXPECT_TRUE(Has(fifo.lists.at("define")[1], "runs on 1 host thread for each call"));
  EXPECT_EQ(fifo.tables.at("timed")[0].at("params"), "world = 1, producers = 16, items = 8");
  EXPECT_EQ(fifo.tables.at("timed")[0].at("sizes"), "`values` 512 bytes, `out` 1024 bytes");
  const auto all = [](const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& one : list) text += one + "\n";
    return text;
  };
  const Facts multimem = facts("allreduce_multimem");
  EXPECT_TRUE(Has(all(multimem.lists.at("allowed")), "multimem"));
  EXPECT_FALSE(Has(all(multimem.lists.at("forbidden")), "multimem"));
  EXPECT_TRUE(Has(all(multimem.lists.at("forbidden")), "cudaMemcpyAsync"));
  EXPECT_TRUE(Has(all(facts("ag_gemm").lists.at("forbidden")), "multimem"));
  EXPECT_TRUE(Has(all(facts("ag_gemm").lists.at("calls")), "captured into a CUDA graph"));
  EXPECT_FALSE(Has(all(fifo.lists.at("calls")), "captured"));
}

// From profiles/*.toml: 450 GB/s and two hops of 380 ns; a mesh of 150 GB/s and 300 ns.
TEST(PromptTest, FactsOfLinks) {
  const Problem one_shot = Named("allreduce_one_shot");
  EXPECT_EQ(LinkFacts(one_shot, H100())[0],
            "`nvlink` may carry payload: 450 GB/s in each direction of a device.");
  EXPECT_EQ(LinkFacts(one_shot, H100())[1],
            "One way between two devices by these links takes 0.76 µs.");
  const auto mesh = node::LoadProfile((kRoot / "profiles/h100x4-mesh.toml").string()).value();
  EXPECT_EQ(LinkFacts(one_shot, mesh)[0],
            "`nvlink` may carry payload: 150 GB/s in each direction between two devices.");
  EXPECT_EQ(LinkFacts(one_shot, mesh)[1],
            "One way between two devices by these links takes 0.30 µs.");
  const Result<Facts> too_small = MakeFacts(ContextOf(one_shot, mesh));
  ASSERT_FALSE(too_small);
  EXPECT_TRUE(Has(too_small.error().message, "h100x4-mesh has 4 devices"));
  const auto pcie = node::LoadProfile((kRoot / "profiles/l40s-pcie8.toml").string()).value();
  const Problem there = On(one_shot, pcie).value();
  EXPECT_TRUE(Has(LinkFacts(there, pcie)[0], "`pcie` may carry payload"));
  EXPECT_TRUE(Has(LinkFacts(Named("fifo_gpu_to_cpu"), H100())[1], "host's memory"));
}

// Two of the templates are the default with a section more: a change to one is a change to all.
TEST(PromptTest, TemplatesDoNotDrift) {
  const std::string task = LoadPrompt("default", kPrompts)->parts.at("task");
  for (const auto& [name, from, to] :
       {std::tuple{"apis", "## Reference\n", "## Your answer\n"},
        std::tuple{"pytorch", "## The operation in PyTorch\n", "## The file to complete\n"}}) {
    std::string other = LoadPrompt(name, kPrompts)->parts.at("task");
    const std::size_t begin = other.find(from), end = other.find(to);
    ASSERT_LT(begin, end) << name;
    other.erase(begin, end - begin);
    EXPECT_EQ(other, task) << name;
  }
}

TEST(PromptTest, PagesFitTheProblem) {
  using Pages = std::vector<std::string>;
  EXPECT_EQ(ApiPages(Named("allreduce_multimem")),
            (Pages{"memory_order", "barriers", "graph", "multimem"}));
  EXPECT_EQ(ApiPages(Named("ag_gemm")), (Pages{"memory_order", "barriers", "graph", "tile_mma"}));
  EXPECT_EQ(ApiPages(Named("fifo_gpu_to_cpu")), (Pages{"memory_order", "barriers", "host"}));
  Problem other = Named("flag_pingpong");
  other.setup = true;
  other.allow = {"kernel", "memcpy"};
  EXPECT_EQ(ApiPages(other), (Pages{"memory_order", "barriers", "graph", "stream", "boot"}));
  const auto prompt = MakePrompt(LoadPrompt("apis", kPrompts).value(), ContextOf(other)).value();
  EXPECT_TRUE(Has(prompt.task, "boot.AllGather"));
  EXPECT_TRUE(Has(prompt.task, "runs once per rank and case"));
  // No page is there for nothing.
  int pages = 0;
  for (const auto& entry : fs::directory_iterator(kPrompts / "apis")) {
    ++pages;
    EXPECT_TRUE((std::set<std::string>{"memory_order", "barriers", "graph", "host", "multimem",
                                       "stream", "tile_mma", "boot"})
                    .contains(entry.path().stem().string()));
  }
  EXPECT_EQ(pages, 8);
}

TEST(PromptTest, PyTorchNeedsAnOperation) {
  const auto form = LoadPrompt("pytorch", kPrompts).value();
  const Problem problem = Named("ag_gemm");
  EXPECT_TRUE(Has(MakePrompt(form, ContextOf(problem))->task, "dist.all_gather_into_tensor"));
  Problem bare = problem;
  bare.folder = fs::path(TempDir()) / "bare_problem";
  fs::create_directories(bare.folder);
  for (const char* file : {"statement.md", "template.cu"})
    fs::copy_file(problem.folder / file, bare.folder / file, fs::copy_options::overwrite_existing);
  const auto prompt = MakePrompt(form, ContextOf(bare));
  ASSERT_FALSE(prompt);
  EXPECT_TRUE(Has(prompt.error().message, "operation.py")) << prompt.error().message;
  EXPECT_TRUE(Has(prompt.error().message, "--prompt")) << prompt.error().message;
  EXPECT_TRUE(MakePrompt(LoadPrompt("default", kPrompts).value(), ContextOf(bare)));
  // A template may ask first.
  const fs::path own = Written("asks.md", "{{#has_operation}}{{operation}}{{/has_operation}}x");
  EXPECT_EQ(MakePrompt(LoadPrompt(own, kPrompts).value(), ContextOf(bare))->task, "x\n");
}

TEST(PromptTest, TemplatesOfUsers) {
  const Problem problem = Named("flag_pingpong");
  const auto task = [&](const std::string& text) {
    const auto form = LoadPrompt(Written("own.md", text), kPrompts);
    if (!form) return "load: " + form.error().message;
    const auto prompt = MakePrompt(*form, ContextOf(problem));
    return prompt ? prompt->task : "make: " + prompt.error().message;
  };
  EXPECT_EQ(task("Solve {{title}}, {{slug}}."),
            "Solve Ping-pong of a token by flags in peer memory, flag_pingpong.\n");
  EXPECT_EQ(task("For people.\n=== task\n{{! a remark }}{{&level}} {{{level}}}\n"), "easy easy\n");
  EXPECT_EQ(task("=== task\r\nA\r\n=== system\r\nB\r\n"), "A\n");
  EXPECT_EQ(task("{{#timed}}\n{{params}}\n{{/timed}}\n"),
            "world = 2, rounds = 16\nworld = 2, rounds = 256\n");
  // Mistakes, each with what is wrong.
  EXPECT_TRUE(Has(task("{{titel}}"), "'titel'"));
  EXPECT_TRUE(Has(task("{{titel}}"), "did you mean 'title'"));
  EXPECT_TRUE(Has(task("{{^timed}}{{never_rendered}}{{/timed}}"), "'never_rendered'"));
  EXPECT_TRUE(Has(task("{{verdict}}"), "only repair and improve"));
  EXPECT_TRUE(Has(task("{{params}}"), "'params' is valid only inside its list"));
  EXPECT_TRUE(Has(task("=== task\nx\n=== repare\n"), "'repare' is not a part"));
  EXPECT_TRUE(Has(task("=== task\nx\n=== task\ny\n"), "twice"));
  EXPECT_TRUE(Has(task("=== task\n\n"), "empty"));
  EXPECT_TRUE(Has(task("{{title"), "no '}}'"));
  EXPECT_TRUE(Has(task("{{>title}}"), "partials"));
  EXPECT_TRUE(Has(task("{{=<% %>=}}"), "delimiters"));
  EXPECT_TRUE(Has(task("{{#timed}}x"), "part task: Unclosed section \"timed\""));
  EXPECT_TRUE(Has(task("{{#timed}}x{{/visible}}"), "part task: "));
  const auto none = LoadPrompt("defualt", kPrompts);
  ASSERT_FALSE(none);
  EXPECT_TRUE(Has(none.error().message, "did you mean 'default'")) << none.error().message;
  EXPECT_TRUE(Has(none.error().message, "apis, default, pytorch, terse"));
}

TEST(PromptTest, PartsThatAreMissingAreTheDefaults) {
  const auto standard = LoadPrompt("default", kPrompts).value();
  const auto own = LoadPrompt(Written("mine.md", "=== task\nDo {{slug}}.\n"), kPrompts).value();
  EXPECT_EQ(own.name, "mine");
  EXPECT_EQ(own.parts.at("task"), "Do {{slug}}.\n");
  for (const char* part : {"system", "repair", "improve"})
    EXPECT_EQ(own.parts.at(part), standard.parts.at(part));
  const auto silent = LoadPrompt(Written("s.md", "=== system\n\n=== task\nx\n"), kPrompts).value();
  EXPECT_EQ(MakePrompt(silent, ContextOf(Named("ag_gemm")))->system, "");
}

TEST(PromptTest, EveryNameIsThereAndDocumented) {
  const std::string docs = ReadFile(kRoot / "docs/prompts.md").value();
  Facts facts = MakeFacts(ContextOf(Named("ag_gemm"))).value();
  AddFeedback(SomeFeedback(true), &facts);
  std::set<std::string> made;
  for (const auto& [name, value] : facts.words) made.insert(name);
  for (const auto& [name, value] : facts.flags) made.insert(name);
  for (const auto& [name, value] : facts.lists) made.insert(name);
  for (const auto& [name, rows] : facts.tables) {
    made.insert(name);
    ASSERT_FALSE(rows.empty()) << name;
    for (const auto& [column, value] : rows[0]) made.insert(column);
  }
  std::set<std::string> named(FactNames().begin(), FactNames().end());
  named.insert(FeedbackNames().begin(), FeedbackNames().end());
  EXPECT_EQ(made, named);
  for (const std::string& name : named)
    EXPECT_TRUE(Has(docs, "`" + name + "`")) << name << " is not in docs/prompts.md";
}

TEST(PromptTest, RepairAndImprove) {
  const Problem problem = Named("allreduce_one_shot");
  const auto form = LoadPrompt("default", kPrompts).value();
  const auto made = [&](const Feedback& feedback) {
    return MakeFeedback(form, ContextOf(problem), feedback).value();
  };
  Feedback feedback = SomeFeedback(false);
  std::string text = made(feedback);
  EXPECT_TRUE(Has(text, "Attempt 1 of 3"));
  EXPECT_TRUE(Has(text, "`wrong_result`: an output element is wrong"));
  EXPECT_TRUE(Has(text, "rank 1: out[3] is 0"));
  EXPECT_TRUE(Has(text, "```\na log\n```"));
  EXPECT_FALSE(Has(text, "the last one"));
  EXPECT_FALSE(Has(text, "timed.w8"));
  feedback.round = 2;
  EXPECT_TRUE(Has(made(feedback), "the last one"));
  // Words of a compiler or a program are quoted whatever they are.
  feedback.log = "a ``` b {{title}} <&> \x1b[31m \xff\r\nnext";
  text = made(feedback);
  EXPECT_TRUE(Has(text, "````\na ``` b {{title}} <&> \uFFFD[31m \uFFFD\nnext\n````")) << text;
  feedback.text = feedback.log = "";
  text = made(feedback);
  EXPECT_FALSE(Has(text, "```"));
  EXPECT_FALSE(Has(text, "\n\n\n"));
  // Neither is longer than the bound, and both ends are there.
  feedback.text = "first\n" + std::string(100000, 'x') + "\nlast";
  feedback.log = feedback.text;
  text = made(feedback);
  EXPECT_LT(text.size(), 2 * kFeedbackLimit + 1500);
  EXPECT_TRUE(Has(text, "first\n") && Has(text, "\nlast") && Has(text, "bytes left out"));

  text = made(SomeFeedback(true));
  EXPECT_TRUE(Has(text, "50.0 % of the roofline"));
  EXPECT_TRUE(Has(text, "| timed.w8.n4096 | 10.00 µs | 5.00 µs | 50 % | 1.50 |")) << text;
  Feedback unknown = SomeFeedback(true);
  unknown.times[0].reference_ratio = 0;
  text = made(unknown);
  EXPECT_TRUE(Has(text, "| timed.w8.n4096 | 10.00 µs | 5.00 µs | 50 % |\n")) << text;
  EXPECT_FALSE(Has(text, "reference"));
}

TEST(PromptTest, EveryVerdictIsExplained) {
  for (const std::string& verdict : Verdicts()) EXPECT_NE(MeaningOf(verdict), "") << verdict;
  EXPECT_NE(MeaningOf("no_answer"), "");
  EXPECT_EQ(MeaningOf("nonsense"), "");
}

TEST(ShortenedTest, KeepsBothEndsAndTheBound) {
  EXPECT_EQ(Shortened("short", 100), "short");
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "line " + std::to_string(i) + "\n";
  for (const std::size_t limit : {0u, 1u, 50u, 96u, 200u, 1000u, 8000u}) {
    const std::string text = Shortened(lines, limit);
    EXPECT_LE(text.size(), limit);
    if (limit < 200) continue;
    EXPECT_TRUE(text.starts_with("line 0\nline 1\n")) << text;
    EXPECT_TRUE(text.ends_with("line 998\nline 999\n")) << text;
    // Whole lines on both sides of the note, which counts what is missing.
    const std::size_t note = text.find("\n... ");
    ASSERT_NE(note, std::string::npos) << text;
    const std::size_t behind = text.find(" bytes left out ...\n");
    const std::size_t missing = std::stoul(text.substr(note + 5));
    const std::size_t note_end = behind + 20;
    EXPECT_EQ(lines.size() - missing, note + 1 + text.size() - note_end);
    EXPECT_TRUE(text.substr(note_end).starts_with("line ")) << text;
  }
  // Characters stay whole.
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "\u20ac";
  for (std::size_t limit = 90; limit < 200; ++limit) {
    const std::string text = Shortened(euros, limit);
    EXPECT_LE(text.size(), limit);
    EXPECT_EQ(Printable(text), text);
  }
}

}  // namespace
}  // namespace allranks::problem
