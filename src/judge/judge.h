// The judge: a problem and a candidate's text in, a judgement out. Everything untrusted (compiler,
// ranks, node) runs in sandboxes; this process draws inputs, owns the answers and decides.
//
//   assemble ─▶ build (build.h) ─▶ per world a session (session.h): node + ranks, capture, kill
//   ranks
//            ─▶ per case and seed: draw, run, verify, floors, roofline ─▶ Judgement (report.h
//            prints)
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "judge/findings.h"
#include "judge/verdict.h"
#include "node/checking.h"
#include "problem/problem.h"

namespace allranks::judge {

// Where the parts of this program lie. Paths outside of any sandbox.
struct Tools {
  std::string allranks;  // this program: the node is a command of it
  std::string shim;      // folder of libcudart.so.13, libcuda.so.1, liballranks_host.so, driver
  std::string include;   // folder with allranks/*.h
  std::string cuda;      // the CUDA toolkit: CUDA/bin/nvcc
  std::string nccl;      // libnccl.so.2, for problems that need it; empty: there is none
  std::string cache;     // built candidates and oracles by content hash; empty: nothing is kept
  // Compiler, ranks and node run without sandboxes (trusted.h): for code of the user's own. Such a
  // verdict is not valid as a result for others; no campaign asks for one.
  bool trusted = false;
  // For so long nobody may do anything while ranks are waited for.
  int idle_ms = 60'000;
  // Thread-instructions of all windows of a judgement: whoever executes more is `timeout`, the same
  // on every machine. About a minute of one core; the heaviest references of this repository need a
  // quarter of it.
  std::uint64_t work = 24'000'000'000;
  // What a judgement may take altogether, compiler included (20 s at most). It ends who keeps the
  // node busy with something else than kernels.
  int cpu_ms = 120'000;
};

struct CaseResult;

// What becomes known while a judgement is under way. Called from any of its threads.
struct Listener {
  virtual ~Listener() = default;
  virtual void OnCases(int /*cases*/) {}                // the candidate is compiled; so many follow
  virtual void OnCase(const CaseResult& /*result*/) {}  // its windows under schedule 0 have ended
  virtual void OnSchedule(int /*number*/, int /*count*/) {}  // of a session's further windows
};

struct Request {
  const problem::Problem* problem = nullptr;
  Listener* listener = nullptr;
  std::string source;         // the candidate: a whole file or an edit region
  std::string profile;        // path
  std::string seed;           // any text; the same text gives the same judgement
  std::string only_case;      // empty: all of them
  std::string trace;          // file for a trace of the last session; empty: none
  bool drain = false;         // a test mode: every call begins when all ranks are at rest
  bool keep_going = false;    // wrong results do not end it: how many calls are wrong is counted
  bool visible_only = false;  // neither timed nor drawn cases
  bool drawn_last = false;    // all that is not drawn comes first, in all worlds
  bool times_only = false;    // the undisturbed bursts of timed cases with the first seed: call_ns
  bool check = true;          // look for races and the like, and run further schedules
  // After schedule 0 only this one (and those of the usual ones before it), however much a case
  // takes; to see a failure again.
  std::optional<std::uint64_t> schedule;
  // So many schedules instead of the usual number, however much a case takes; 0: the usual number.
  std::uint64_t schedules = 0;
  int band = 0;  // on so many perturbed profiles, too (band.h)
  int jobs = 1;  // so many windows side by side; the judgement is the same, but for its cost
};

struct CaseResult {
  problem::Case what;
  bool ran = false;
  Verdict verdict = Verdict::kPass;
  std::string text;        // why not pass
  double isolated_ns = 0;  // latency of one call alone; the worse of the seeds
  double call_ns = 0;      // (last close - first open) / calls of the burst; likewise
  double roofline_ns = 0;  // least time of a call on this profile
  // call_ns of the reference, the baseline and NCCL by reference.lock; 0: none
  double reference_ns = 0, baseline_ns = 0, nccl_ns = 0;
  double bytes = 0;                  // payload that must reach a rank per call (floor.ingress)
  std::vector<std::uint64_t> moved;  // payload of one burst by mover, in the order of node::Mover
  std::uint64_t thread_instructions = 0;     // of the burst, first seed
  std::uint64_t calls = 0, wrong_calls = 0;  // over all bursts: verified, and wrong
  std::vector<node::Finding> findings;       // of all its windows that were checked
  std::uint64_t schedule = 0;                // under which the verdict came about
  int schedules = 0;                         // beside schedule 0 under which it was run
  node::PlaceCounts places{};                // that directed schedules are chosen from
};

// CPU seconds by part, and wall seconds of the whole. Not part of what must repeat.
struct Cost {
  double compile = 0, ranks = 0, node = 0, judge = 0, wall = 0;
  std::uint64_t work = 0;                 // thread-instructions of all windows
  double band = 0;                        // all parts of what was run on perturbed profiles
  std::map<std::string, double> windows;  // of `node`, by kind of window
  bool cached_build = false;
  // Of sessions that helped (-j): their start, and windows that were discarded. It does not count
  // against the candidate, whose limit must not depend on -j.
  double aside = 0;
  // Without the compiler.
  double RunSeconds() const { return ranks + node + judge; }
};

struct Judgement {
  Verdict verdict = Verdict::kPass;
  std::string text;  // one paragraph: what went wrong, where (source line), how to see it
  std::string log;   // the compiler's words, a deadlock's waiters: longer, bounded
  std::vector<CaseResult> cases;
  // Outputs match in all cases under schedule 0 and no rule was broken, whatever was found.
  bool lenient = false;
  bool checked = false;
  bool trusted = false;  // as in Tools
  // In which kind of window it first showed that this is no pass: "plain", "replay", "drawn" or
  // "directed"; empty: in none.
  std::string shown_by;
  std::vector<CaseFinding> findings;
  double score = 0;  // pass: geometric mean over timed cases of min(1, roofline / call_ns)
  // Speed-up over the reference on each perturbed profile, 0 where this candidate does not pass; of
  // a pass only, and where there are a reference and timed cases.
  std::optional<std::vector<double>> band;
  std::string seed, profile;
  std::int64_t profile_version = 0;
  std::string source_hash, problem_hash;  // SHA-256
  Cost cost;

  double cpu_seconds() const {
    return cost.compile + cost.ranks + cost.node + cost.judge + cost.band;
  }
};

// Never fails: what goes wrong on our side is the verdict internal_error with the reason.
Judgement Judge(const Tools& tools, const Request& request);

}  // namespace allranks::judge
