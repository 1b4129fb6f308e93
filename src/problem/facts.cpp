// Facts of a prompt. Each is derived from problem.toml, the profile or the judge's rules, so that
// none can be false of the judgement that follows; facts_machine.cpp has those of the hardware.
#include "problem/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "problem/args.h"
#include "problem/machine.h"
#include "problem/source.h"

namespace allranks::problem {
namespace {

constexpr std::size_t kMaxOperation = 64 << 10;

bool AnyTensor(const Problem& problem, bool Tensor::* property) {
  return std::any_of(problem.tensors.begin(), problem.tensors.end(),
                     [&](const Tensor& tensor) { return tensor.*property; });
}

// "`a`", "`a` and `b`", "`a`, `b` and `c`"
std::string Quoted(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}`{}`", i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  return text;
}

std::vector<std::string> EntryPoints(const Problem& problem) {
  std::vector<std::string> names;
  for (const std::string& line : Declarations(problem)) {
    const std::size_t open = line.find('('), blank = line.rfind(' ', open);
    names.push_back(line.substr(blank + 1, open - blank - 1));
  }
  return names;
}

std::vector<std::string> DefineFacts(const Problem& problem) {
  std::vector<std::string> facts;
  const std::vector<std::string> names = EntryPoints(problem);
  const std::vector<std::string> declarations = Declarations(problem);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string what;
    if (names[i] == "setup") {
      what =
          "runs once per rank and case before anything else; it may allocate memory and exchange "
          "handles with other ranks through `boot`";
    } else if (names[i] == "host" && problem.window == Window::kHost) {
      what = fmt::format(
          "runs on {} host thread{} for each call, while the kernels of the call run, and returns "
          "when the call's work on the host is done",
          problem.host_threads, problem.host_threads == 1 ? "" : "s");
    } else if (problem.window == Window::kQuery) {
      what = "writes its answer to `out`, at most `capacity` bytes, and returns their number";
    } else {
      what = problem.calls.size() == 1 ? "enqueues the work of one call on `stream` and returns"
                                       : "enqueues its part of one call on `stream` and returns";
    }
    facts.push_back(fmt::format("`{}` {}.", declarations[i], what));
  }
  if (problem.window != Window::kQuery && problem.calls.size() > 1) {
    facts.push_back(
        fmt::format("One call is {}, in this order, on the same stream; outputs are looked at "
                    "after the last of them.",
                    Quoted(problem.calls)));
  }
  return facts;
}

// How tensors lie, and who may touch those of others.
std::string PeerFact(const Problem& problem) {
  std::string text = "All tensors, symmetric memory among them, are aligned to 256 bytes.";
  const auto any = [&](bool symmetric) {
    return std::any_of(problem.tensors.begin(), problem.tensors.end(), [&](const Tensor& tensor) {
      return tensor.peers && (tensor.dir == Tensor::Dir::kSymmetric) == symmetric;
    });
  };
  if (any(false) || any(true))
    text +=
        " `NAME_peers[r]` is rank r's NAME as this rank addresses it, its own with r = rank, too; "
        "entries from `world` on are null.";
  if (any(false))
    text +=
        " A peer's input or output may be accessed only while that peer is inside the same call: "
        "after its first kernel of the call has begun, and so that its last one cannot end before "
        "the access is done. What the peer's call finds there is ordered before the peer's own "
        "kernels only: others need a release by that peer inside the call, and an acquire.";
  if (any(true))
    text += " A peer's symmetric memory may be accessed at any time, outside of its calls, too.";
  return text;
}

std::vector<std::string> CallFacts(const Problem& problem) {
  const std::string entries = Quoted(problem.calls);
  const char* run = problem.calls.size() == 1 ? "runs" : "run";
  std::vector<std::string> facts;
  facts.push_back("One process per rank, one device per process; rank r has device r.");
  switch (problem.window) {
    case Window::kGraph:
      facts.push_back(fmt::format(
          "{} {} once per case while `stream` is captured into a CUDA graph. Then the process of "
          "the rank ends, and the graph is launched once per call: host code never runs again, "
          "arguments of kernels are frozen, and what changes from call to call (an epoch, say) "
          "must "
          "live in device memory.",
          entries, run));
      break;
    case Window::kStream:
      facts.push_back(fmt::format(
          "{} {} on the host for every call; processes live through all calls.", entries, run));
      break;
    case Window::kHost:
      facts.push_back(fmt::format(
          "{} {} on the host for every call, and `host` right after; processes live through all "
          "calls. Time of `host` is charged.",
          entries, run));
      break;
    case Window::kQuery:
      facts.push_back("The question is asked in every case.");
      break;
  }
  if (problem.window == Window::kQuery) return facts;
  facts.push_back(fmt::format(
      "Calls come back to back, {} in a series, without a barrier or a drain between them: a rank "
      "may be in its next call while others still work on this one or have not entered it. A "
      "solution must be right for any number of calls. Kernels of a call begin after all those of "
      "the rank's previous call have ended, and are ordered after them.",
      problem.burst));
  if (problem.window == Window::kGraph || problem.window == Window::kStream) {
    facts.push_back(
        "When a rank enters a call, its inputs have been drawn anew and its outputs are filled "
        "with "
        "garbage.");
  }
  facts.push_back(PeerFact(problem));
  const bool symmetric =
      std::any_of(problem.tensors.begin(), problem.tensors.end(),
                  [](const Tensor& tensor) { return tensor.dir == Tensor::Dir::kSymmetric; });
  if (symmetric) {
    std::vector<std::string> sizes;
    for (const Tensor& tensor : problem.tensors) {
      if (tensor.dir == Tensor::Dir::kSymmetric)
        sizes.push_back(fmt::format("`{}` has {} bytes", tensor.name, tensor.bytes.text()));
    }
    facts.push_back(
        fmt::format("Symmetric memory ({}) is zero before the first call of a case, and nobody "
                    "clears it afterwards. Each case has its own; `__device__` variables, in "
                    "contrast, are shared by all cases.",
                    fmt::join(sizes, ", ")));
  }
  return facts;
}

std::vector<std::string> AllowFacts(const Problem& problem, bool allowed) {
  std::vector<std::string> facts;
  if (problem.window == Window::kQuery) return facts;
  const auto add = [&](const char* key, std::string text) {
    if (Allows(problem, key) == allowed) facts.push_back(std::move(text));
  };
  std::string kernels = "Kernels on the rank's own device";
  if (allowed && problem.max_ctas > 0) {
    kernels += fmt::format(", with at most {} blocks in a grid", problem.max_ctas);
    if (problem.window == Window::kGraph) kernels += ", and in all grids that can run side by side";
    kernels += ". All of these blocks are resident at once and may wait for each other";
  }
  add("kernel", kernels + ".");
  add("memcpy",
      "Copies and memsets between device memories (`cudaMemcpyAsync`, "
      "`cudaMemsetAsync` and their kin).");
  add("values",
      "Stream memory operations (`cuStreamWriteValue64`, `cuStreamWaitValue64` and their "
      "kin).");
  add("multicast", "`multimem` instructions on multicast addresses.");
  if (!allowed) {
    facts.push_back("Host functions in streams.");
    facts.push_back(
        "Libraries beside CUDA's runtime and driver: no NCCL, NVSHMEM or MPI is linked. Headers "
        "of the toolkit (`<cuda/atomic>`, `<cooperative_groups.h>`) are there.");
  }
  return facts;
}

std::vector<std::string> CheckFacts(const Problem& problem) {
  std::vector<std::string> facts;
  if (problem.window == Window::kQuery) return {"Every answer is compared."};
  facts.push_back(
      "Every element of every output of every rank in every call is compared, in the runs that are "
      "timed, too.");
  std::string same;
  for (const Tensor& tensor : problem.tensors)
    if (tensor.same) same += (same.empty() ? "`" : ", `") + tensor.name + "`";
  if (!same.empty()) facts.push_back("The same on all ranks in a call: " + same + ".");
  std::string keep;
  for (const Tensor& tensor : problem.tensors)
    if (tensor.dir == Tensor::Dir::kIn && tensor.changes) keep += " `" + tensor.name + "`";
  facts.push_back(keep.empty() ? "Inputs must be unchanged when a call ends."
                               : "Inputs but" + keep + " must be unchanged when a call ends.");
  facts.push_back(
      "In disturbed runs of every case ranks enter calls at different times, and warps are held up "
      "at random.");
  facts.push_back(
      "Accesses out of bounds, reads of memory that nobody has written, waiting for ever and "
      "kernels "
      "that never end are found.");
  facts.push_back(
      "Order that PTX's memory model does not guarantee (a missing release, acquire or fence, or "
      "too narrow a scope) is found even where outputs happen to be right, and reported as "
      "`race`.");
  facts.push_back(
      "Right results with fewer bytes over the links than any algorithm needs are refused "
      "(`no_communication`).");
  return facts;
}

std::vector<std::string> ScoreFacts(const Problem& problem, const node::Profile& profile) {
  if (problem.window == Window::kQuery) return {"The score is 0 unless all cases pass."};
  return {
      "The score is 0 unless all cases pass: timed, visible and drawn.",
      "Then it is the geometric mean over the timed cases of min(1, roofline / time). Time is that "
      "of one call in a series; the roofline is the least that links, latencies, memory and "
      "arithmetic of the machine allow.",
      fmt::format("Times are modelled, on the profile `{}`.", profile.name),
  };
}

std::string ParamsOf(const Problem& problem, const Case& one) {
  std::string text = fmt::format("world = {}", one.world);
  for (std::size_t i = 0; i < problem.params.size(); ++i)
    text += fmt::format(", {} = {}", problem.params[i], one.params[i]);
  return text;
}

std::vector<Facts::Row> CaseRows(const Problem& problem, Case::Kind kind) {
  std::vector<Facts::Row> rows;
  for (const Case& one : problem.cases) {
    if (one.kind != kind) continue;
    std::string sizes;
    for (const Tensor& tensor : problem.tensors) {
      if (tensor.dir == Tensor::Dir::kSymmetric) continue;
      sizes += fmt::format("{}`{}` {} bytes", sizes.empty() ? "" : ", ", tensor.name,
                           BytesOf(problem, tensor, one));
    }
    rows.push_back({{"name", one.name}, {"params", ParamsOf(problem, one)}, {"sizes", sizes}});
  }
  return rows;
}

std::string DrawnFact(const Problem& problem) {
  const DrawnCases& drawn = problem.drawn;
  if (drawn.count == 0) return "There are no further cases.";
  std::string text =
      fmt::format("{} further case{} drawn in secret: world from {} to {}", drawn.count,
                  drawn.count == 1 ? " is" : "s are", drawn.world_low, drawn.world_high);
  for (std::size_t i = 0; i < problem.params.size(); ++i) {
    text += fmt::format(", {} from {} to {}", problem.params[i], drawn.low[i], drawn.high[i]);
    if (drawn.step[i] > 1) text += fmt::format(" in steps of {}", drawn.step[i]);
  }
  return text + ".";
}

std::string Lines(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}

}  // namespace

std::string HeaderOf(const Problem& problem) {
  std::istringstream lines(RenderHeader(problem));
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("static_assert(")) text += line + "\n";
  return text;
}

const std::vector<std::string>& FactNames() {
  static const std::vector<std::string> kNames = {
      // words
      "slug", "title", "category", "level", "library", "statement", "template", "header",
      "operation", "profile", "device", "compute_capability", "arch", "sms", "devices", "cuda",
      "flags", "window", "burst", "max_ctas", "entry_points", "drawn",
      // flags
      "has_operation",
      // lists
      "machine", "links", "define", "calls", "allowed", "forbidden", "checked", "scored", "apis",
      // tables and their columns
      "timed", "visible", "name", "params", "sizes"};
  return kNames;
}

std::vector<std::string> ApiPages(const Problem& problem) {
  const auto given = [&](const char* header) {
    return std::find(problem.given.begin(), problem.given.end(), header) != problem.given.end();
  };
  std::vector<std::string> pages;
  if (problem.window != Window::kQuery) {
    pages.emplace_back("memory_order");
    pages.emplace_back("barriers");
  }
  if (problem.window == Window::kGraph) pages.emplace_back("graph");
  if (problem.window == Window::kHost || AnyTensor(problem, &Tensor::host))
    pages.emplace_back("host");
  if (Allows(problem, "multicast") || AnyTensor(problem, &Tensor::multicast))
    pages.emplace_back("multimem");
  if (Allows(problem, "memcpy") || Allows(problem, "values")) pages.emplace_back("stream");
  if (given("tile_mma.h")) pages.emplace_back("tile_mma");
  if (problem.setup) pages.emplace_back("boot");
  return pages;
}

Result<Facts> MakeFacts(const PromptContext& context) {
  const node::Profile& profile = *context.profile;
  const Result<Problem> there = On(*context.problem, profile);
  if (!there) return Fail(there.error());
  const Problem& problem = *there;
  Facts facts;
  auto& words = facts.words;
  const Result<std::string> statement = ReadFile(problem.folder / "statement.md");
  if (!statement) return Fail(statement.error());
  const Result<std::string> form = TemplateOf(problem);
  if (!form) return Fail(form.error());
  words["statement"] = Lines(*statement);
  words["template"] = Lines(*form);
  std::error_code error;
  const std::filesystem::path operation = problem.folder / "operation.py";
  facts.flags["has_operation"] = std::filesystem::exists(operation, error);
  if (facts.flags["has_operation"]) {
    const Result<std::string> text = ReadFile(operation, kMaxOperation);
    if (!text) return Fail(text.error());
    words["operation"] = Lines(*text);
  }
  words["slug"] = problem.slug;
  words["title"] = problem.title;
  words["category"] = problem.category;
  words["level"] = problem.level;
  words["library"] = problem.library;
  words["header"] = Lines(HeaderOf(problem));
  words["window"] = NameOf(problem.window);
  words["burst"] = std::to_string(problem.burst);
  words["max_ctas"] = std::to_string(problem.max_ctas);
  words["entry_points"] = Quoted(EntryPoints(problem));
  words["drawn"] = DrawnFact(problem);
  words["profile"] = profile.name;
  words["device"] = profile.device.name;
  words["compute_capability"] =
      fmt::format("{}.{}", profile.device.compute_major, profile.device.compute_minor);
  words["arch"] = ArchOf(problem, profile);
  words["sms"] = std::to_string(profile.device.sms);
  words["devices"] = std::to_string(profile.DeviceCount());
  words["cuda"] = context.cuda;
  words["flags"] = fmt::format("{}", fmt::join(context.flags, " "));

  facts.lists["machine"] = MachineFacts(problem, profile);
  facts.lists["links"] = LinkFacts(problem, profile);
  facts.lists["define"] = DefineFacts(problem);
  facts.lists["calls"] = CallFacts(problem);
  facts.lists["allowed"] = AllowFacts(problem, true);
  facts.lists["forbidden"] = AllowFacts(problem, false);
  facts.lists["checked"] = CheckFacts(problem);
  facts.lists["scored"] = ScoreFacts(problem, profile);
  for (const std::string& page : ApiPages(problem)) {
    const Result<std::string> text = ReadFile(context.folder / "apis" / (page + ".md"));
    if (!text) return Fail(text.error());
    facts.lists["apis"].push_back(Lines(*text));
  }
  facts.lists["apis"];  // a query has none
  facts.tables["timed"] = CaseRows(problem, Case::Kind::kTimed);
  facts.tables["visible"] = CaseRows(problem, Case::Kind::kVisible);
  return facts;
}

}  // namespace allranks::problem
