#include "made_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/files.h"

namespace allranks::report {
namespace {

using campaign::CaseFigures;
using campaign::Round;
using campaign::Sample;

class Draw {  // splitmix64
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  int Below(int n) { return static_cast<int>(Next() % static_cast<std::uint64_t>(n)); }

 private:
  std::uint64_t state_;
};

struct ModelKind {
  const char* name;
  double skill, speed;  // of passing, of the roofline
  bool open;
  double price;  // of output; input costs a fifth
};
constexpr ModelKind kModels[] = {
    {"atlas-5", 0.86, 0.93, false, 25},   {"birch-large", 0.80, 0.84, false, 15},
    {"cedar-r2", 0.70, 0.88, true, 2.2},  {"dune-coder-480b", 0.58, 0.70, true, 1.6},
    {"ember-mini", 0.40, 0.62, false, 2}, {"fjord-32b", 0.22, 0.55, true, 0},
};

struct ProblemKind {
  const char* slug;
  const char* title;
  const char* category;
  const char* level;
  const char* library;
  const char* family;
  std::vector<std::string> parallelism;
};
// The first ten have all categories, levels and libraries.
const ProblemKind kProblems[] = {
    {"allreduce_one_shot",
     "One-shot all-reduce through peer memory",
     "collective",
     "easy",
     "cuda",
     "allreduce",
     {"tp"}},
    {"flag_pingpong", "Flag ping-pong", "p2p", "easy", "cuda", "signal", {"pp"}},
    {"moe_dispatch_combine",
     "Mixture of experts: dispatch and combine",
     "ep",
     "hard",
     "cuda",
     "moe",
     {"ep"}},
    {"ag_gemm", "All-gather fused with GEMM", "fusion", "hard", "cuda", "gemm", {"tp"}},
    {"fifo_gpu_to_cpu", "A FIFO from GPU to CPU", "utilities", "medium", "cuda", "fifo", {"pp"}},
    {"broadcast_tree", "Broadcast along a tree", "collective", "easy", "nccl", "broadcast", {"dp"}},
    {"put_with_signal", "Put with signal", "p2p", "medium", "nvshmem", "signal", {"pp"}},
    {"gemm_ar", "GEMM fused with all-reduce", "fusion", "hard", "nccl-device", "gemm", {"tp"}},
    {"allreduce_two_shot",
     "Two-shot all-reduce",
     "collective",
     "medium",
     "cuda",
     "allreduce",
     {"tp", "dp"}},
    {"barrier_grid", "A barrier over all GPUs", "utilities", "easy", "nvshmem", "barrier", {"tp"}},
    {"allreduce_multimem",
     "All-reduce in the switch by multimem",
     "collective",
     "medium",
     "cuda",
     "allreduce",
     {"tp", "dp"}},
    {"alltoall_v", "All-to-all of ragged rows", "collective", "hard", "cuda", "alltoall", {"ep"}},
    {"allgather_ring", "Ring all-gather", "collective", "easy", "cuda", "allgather", {"tp", "sp"}},
    {"reducescatter_push",
     "Reduce-scatter by pushing",
     "collective",
     "medium",
     "cuda",
     "reducescatter",
     {"fsdp"}},
    {"ipc_handshake",
     "Buffers exchanged by IPC handles",
     "p2p",
     "medium",
     "cuda",
     "memory",
     {"pp"}},
    {"pipeline_stage", "A stage of a pipeline", "p2p", "hard", "cuda", "pipeline", {"pp"}},
    {"moe_dispatch_fp8", "Dispatch with FP8 rows", "ep", "hard", "nvshmem", "moe", {"ep"}},
    {"moe_counts", "Counts before a dispatch", "ep", "medium", "cuda", "moe", {"ep"}},
    {"gemm_rs", "GEMM fused with reduce-scatter", "fusion", "hard", "cuda", "gemm", {"tp"}},
    {"topology_rings", "Rings from a topology", "utilities", "easy", "cuda", "topology", {"dp"}},
};

constexpr const char* kFailures[] = {
    "wrong_result",  "race",       "deadlock",       "compile_error",
    "memory_error",  "timeout",    "crash",          "wrong_result",
    "forbidden_api", "no_answer",  "edit_violation", "no_communication",
    "unsupported",   "impossible", "tampering",      "internal_error"};

std::string TextOf(const std::string& verdict) {
  if (verdict == "compile_error")
    return "nvcc did not compile it: candidate.cu(31): error: identifier \"flags\" is undefined";
  if (verdict == "race")
    return "race in case timed.w8.n262144: rank 3 reads scratch[4096..4223] of rank 5 in "
           "candidate.cu:27; rank 5 wrote it in candidate.cu:19 and nothing orders the two: the "
           "flag is stored with .relaxed and needs .release at system scope";
  if (verdict == "deadlock")
    return "deadlock in case visible.w4.n4097: rank 2, block 0 waits in candidate.cu:24 for a flag "
           "that nobody will write any more";
  if (verdict == "wrong_result")
    return "wrong result in case drawn.2: call 4, rank 1: out[8191] is 3.5, expected 4.25; 1,204 "
           "of 40,960 elements differ, first at call 2";
  if (verdict == "no_answer") return "The reply has no code block.";
  return "The judge says: " + verdict + ".";
}

std::string SourceOf(Draw& draw, const std::string& name, int lines) {
  std::string text = "// " + name +
                     "\n#include \"problem.h\"\n\n// >>> edit\n__global__ void Exchange(Args args, "
                     "std::uint64_t epoch) {\n  const int rank = args.rank, world = args.world;\n";
  for (int i = 0; i < lines; ++i) {
    switch (draw.Below(6)) {
      case 0:
        text += fmt::format(
            "  for (int i = threadIdx.x; i < args.n; i += {}) {{\n    "
            "args.out[i] = Load(args.peer[(rank + {}) % world] + i);\n  }}\n",
            32 << draw.Below(5), 1 + draw.Below(7));
        break;
      case 1:
        text += fmt::format("  // Peers must see the data before the flag of step {}.\n", i);
        break;
      case 2:
        text += fmt::format("  if (threadIdx.x == 0) StoreReleaseSys(args.flag + {}, epoch);\n", i);
        break;
      case 3:
        text += fmt::format("  while (LoadAcquireSys(args.flag + {}) < epoch) {{}}\n", i);
        break;
      case 4:
        text += "  __syncthreads();\n";
        break;
      default:
        text +=
            fmt::format("  const float scale_{} = {:.3f}f * \"<b>&amp;\"[0];\n", i, draw.Unit());
    }
  }
  return text +
         "}\n\nextern \"C\" void launch(const Args& args, cudaStream_t stream) {\n  "
         "Exchange<<<8, 512, 0, stream>>>(args, 1);\n}\n// <<< edit\n";
}

constexpr char kTemplate[] =
    "// Complete the region between the markers.\n#include \"problem.h\"\n\n// >>> edit\nextern "
    "\"C\" void launch(const Args& args, cudaStream_t stream) {}\n// <<< edit\n";

std::vector<CaseFigures> CasesOf(Draw& draw, const std::string& verdict, double fraction) {
  std::vector<CaseFigures> cases;
  const auto add = [&](std::string name, const char* kind, int world, std::int64_t n) {
    CaseFigures one;
    one.name = std::move(name);
    one.kind = kind;
    one.world = world;
    one.params["n"] = n;
    one.verdict = verdict == "pass" || cases.size() < 2 ? "pass" : verdict;
    if (cases.size() > 2 && verdict != "pass") one.verdict.clear();
    one.bytes = 4.0 * static_cast<double>(n);
    one.roofline_ns = 2400 + one.bytes / 380;
    one.reference_ns = one.roofline_ns * 1.12;
    one.baseline_ns = one.roofline_ns * 2.6 + 6000;
    if (one.verdict == "pass") {
      one.call_ns = one.roofline_ns / (fraction * (0.97 + 0.03 * draw.Unit()));
      one.isolated_ns = one.call_ns * 1.15 + 1500;
      one.moved["sm"] = static_cast<std::uint64_t>(one.bytes * 8);
      if (draw.Below(4) == 0) one.moved["tma"] = static_cast<std::uint64_t>(one.bytes * 3);
      if (draw.Below(9) == 0) one.moved["multicast"] = static_cast<std::uint64_t>(one.bytes * 2);
      if (draw.Below(9) == 0) one.moved["copy_engine"] = static_cast<std::uint64_t>(one.bytes);
    }
    cases.push_back(std::move(one));
  };
  if (verdict == "compile_error" || verdict == "no_answer" || verdict == "edit_violation")
    return cases;
  for (const int n : {1, 4097}) add(fmt::format("visible.w4.n{}", n), "visible", 4, n);
  for (const int n : {4096, 65536, 262144, 1048576, 4194304})
    add(fmt::format("timed.w8.n{}", n), "timed", 8, n);
  for (const int n : {0, 1}) add(fmt::format("drawn.{}", n), "drawn", 3 + n, 77'777 + 1000 * n);
  return cases;
}

std::string VerdictOf(Draw& draw, double chance) {
  if (draw.Unit() < chance) return "pass";
  const int at = std::min(draw.Below(16), draw.Below(16));
  return kFailures[at];
}

void Write(bool really, const std::filesystem::path& path, const std::string& text) {
  if (!really) return;
  // Without the flush to the disk of WriteWhole: there are thousands.
  std::filesystem::create_directories(path.parent_path());
  std::FILE* file = std::fopen(path.c_str(), "w");
  CHECK(file != nullptr, "{}", path.string());
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

Round MakeRound(Draw& draw, const ModelKind& kind, double chance, int number, const Round* before) {
  Round round;
  round.round = number;
  round.verdict = VerdictOf(draw, chance);
  round.kind = before == nullptr ? "first" : before->strict ? "improve" : "repair";
  round.finish = "stop";
  round.answer = round.verdict == "no_answer" ? "none" : "source";
  round.usage = {.input = 4000u * static_cast<unsigned>(number),
                 .cached_input = 1000,
                 .output = 2000 + draw.Next() % 9000,
                 .reasoning = 1500};
  round.usage_known = true;
  round.dollars = static_cast<double>(round.usage.output) * kind.price * 1e-6;
  round.strict = round.verdict == "pass";
  round.lenient = round.strict || round.verdict == "race";
  const double fraction =
      std::clamp(kind.speed * (0.55 + 0.5 * draw.Unit()) + 0.05 * (number - 1), 0.05, 0.99);
  round.cases = CasesOf(draw, round.verdict, fraction);
  if (round.strict) {
    round.score = fraction;
    round.speedup_vs_reference = fraction * 1.12;
    round.speedup_vs_baseline = fraction * 2.8;
    for (int i = 0; i < 4; ++i)
      round.band.push_back(*round.speedup_vs_reference * (0.97 + 0.02 * i));
  } else {
    round.text = TextOf(round.verdict);
  }
  return round;
}

}  // namespace

campaign::Run MakeRun(const std::filesystem::path& folder, const Shape& shape) {
  Draw draw(shape.seed);
  campaign::Run run;
  run.folder = folder;
  campaign::Settings& settings = run.settings;
  settings.version = "0.0";
  settings.name = folder.filename().string();
  settings.profile = "h100x8";
  settings.profile_version = 3;
  settings.prompt = "default";
  settings.samples = shape.samples;
  settings.rounds = shape.rounds;
  settings.band = 4;
  for (int i = 0; i < shape.models; ++i) {
    const ModelKind& kind = kModels[static_cast<std::size_t>(i) % std::size(kModels)];
    campaign::ModelFacts facts;
    facts.name = kind.name;
    if (i >= static_cast<int>(std::size(kModels))) facts.name += fmt::format("-v{}", i);
    facts.protocol = "openai-chat";
    facts.model = facts.name;
    facts.open_weights = kind.open;
    facts.price_known = kind.price > 0;
    facts.input_price = kind.price / 5;
    facts.output_price = kind.price;
    settings.models.push_back(facts);
  }
  for (int i = 0; i < shape.problems; ++i) {
    const ProblemKind& kind = kProblems[static_cast<std::size_t>(i) % std::size(kProblems)];
    campaign::ProblemFacts facts{kind.slug,  kind.title,       kind.category,
                                 kind.level, kind.library,     kind.family,
                                 "public",   kind.parallelism, "0"};
    if (i >= static_cast<int>(std::size(kProblems))) {
      facts.slug += fmt::format("_{}", i);
      facts.family += fmt::format("_{}", i / 40);
    }
    const std::filesystem::path own = folder / "problems" / facts.slug;
    Write(shape.files, own / "statement.md",
          fmt::format("# {}\n\nEvery rank has `n` elements in `in`. After the call `out` of "
                      "**every** rank has their sum.\n\n## Obligations\n\n- A peer's output may be "
                      "written only after that peer entered the call.\n- Calls follow each other "
                      "without a barrier.\n\n| name | type |\n|---|---|\n| `in` | `T[n]` |\n| "
                      "`out` | `T[n]` |\n\n```cuda\nextern \"C\" void launch(const Args& args, "
                      "cudaStream_t stream);\n```\n",
                      facts.title));
    Write(shape.files, own / "template.cu", kTemplate);
    settings.problems.push_back(facts);
  }
  Write(shape.files, folder / "log.txt",
        "2026-11-18T23:04:05Z begun: 6 models\n2026-11-19T01:02:03Z finished\nin full\n");
  for (int m = 0; m < shape.models; ++m)
    for (const campaign::ProblemFacts& problem : settings.problems) {
      const ModelKind& kind = kModels[static_cast<std::size_t>(m) % std::size(kModels)];
      const double hard = problem.level == "easy" ? 0.15 : problem.level == "hard" ? -0.25 : 0;
      const double chance =
          std::clamp(kind.skill + hard + 0.5 * (draw.Unit() - 0.5) - 0.05, 0.0, 0.97);
      for (int k = 0; k < shape.samples; ++k) {
        Sample sample;
        sample.model = settings.models[static_cast<std::size_t>(m)].name;
        sample.problem = problem.slug;
        sample.sample = k;
        sample.stopped = "rounds";
        for (int r = 1; r <= shape.rounds; ++r) {
          const Round* before = sample.rounds.empty() ? nullptr : &sample.rounds.back();
          if (before != nullptr && before->score >= settings.target) {
            sample.stopped = "fast";
            break;
          }
          Round round = MakeRound(draw, kind, chance + 0.12 * (r - 1), r, before);
          const std::filesystem::path own =
              folder / campaign::RoundFolder(sample.model, sample.problem, k, r);
          if (r == 1)
            Write(shape.files, own / "prompt.json",
                  R"([{"role":"system","text":"You write CUDA."},{"role":"user","text":"Solve )" +
                      problem.slug + R"(."}])");
          std::string reply = "I need more time.";
          if (round.answer == "source") {
            round.source_hash = fmt::format("{:016x}", draw.Next());
            const std::string source =
                SourceOf(draw, problem.title,
                         shape.source_lines / 2 + draw.Below(std::max(1, shape.source_lines)));
            Write(shape.files, own / "source.cu", source);
            reply = "Each rank reads its peers directly.\n\n```cuda\n" + source +
                    "```\n\nThe flag orders the loads.\n";
          }
          Write(shape.files, own / "reply.txt", reply);
          if (round.verdict == "compile_error")
            Write(shape.files, own / "compiler.log",
                  "candidate.cu(31): error: identifier \"flags\" is undefined\n      while "
                  "(ld_acquire(flags + p) < epoch) {\n                        ^\n\n1 error "
                  "detected in the compilation of \"candidate.cu\".\n");
          if (r < shape.rounds)
            Write(shape.files, own / "feedback.md",
                  "Your solution was judged: " + round.verdict + ".\n\n" + round.text +
                      "\n\nWrite the whole file again.\n");
          run.dollars += round.dollars;
          sample.rounds.push_back(std::move(round));
        }
        run.samples.push_back(std::move(sample));
      }
    }
  return run;
}

}  // namespace allranks::report
