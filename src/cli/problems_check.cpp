// `allranks problems check`: whether a problem keeps its word. Its reference, baseline and
// alternates must pass, what is wrong on purpose must get its verdict, and the same run twice must
// be the same. Items are judged side by side on as many threads as asked for; a line per item is
// printed in their order as soon as it and all before it have ended.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "cli/check_items.h"
#include "cli/check_record.h"
#include "cli/exec.h"
#include "cli/judge_tools.h"
#include "cli/meter.h"
#include "cli/places.h"
#include "cli/problems.h"
#include "judge/score.h"
#include "problem/lock.h"
#include "problem/source.h"

namespace allranks::cli {
namespace {

using judge::CaseResult;
using judge::Judgement;
using problem::Problem;
using Kind = CheckItem::Kind;

constexpr double kFaster = 1.03;        // an alternate may be so much faster than the reference
constexpr const char* kSeed = "check";  // reference.lock holds the times of this seed

struct CheckedProblem {
  Problem problem, with_nccl;
  std::vector<CheckItem> items;
  std::vector<std::string> faults;  // of the folder, and of items compared with each other
  std::string lock;                 // what became of reference.lock
  std::size_t ended = 0, printed = 0;
  bool whole = true;  // all its items are judged

  const CheckItem* Ran(Kind kind) const {
    for (const CheckItem& item : items) {
      if (item.kind == kind && item.ran) return &item;
    }
    return nullptr;
  }
  bool good() const {
    return faults.empty() &&
           std::all_of(items.begin(), items.end(), [](const CheckItem& item) { return item.good; });
  }
};

// Mutants by what became of them.
struct MutantCounts {
  std::size_t written = 0, caught = 0;
  std::size_t by_outputs = 0;  // of those caught: without the checker, too
};
MutantCounts CountMutants(const CheckedProblem& checked) {
  MutantCounts counts;
  for (const CheckItem& item : checked.items) {
    if (item.kind != Kind::kMutant) continue;
    ++counts.written;
    counts.caught += item.good;
    counts.by_outputs += item.good && !item.judgement.lenient;
  }
  return counts;
}

std::string LineOf(const CheckItem& item) {
  const char* mark = item.good ? "ok  " : "FAIL";
  std::string text = fmt::format("  {}  {:<34} ", mark, item.name);
  if (!item.good) return text + item.because;
  text += judge::NameOf(item.judgement.verdict);
  if (item.judgement.lenient && item.expected != "pass") text += " (outputs match)";
  if (item.expected == "pass" && item.kind != Kind::kRepeat)
    text += fmt::format(", {:.0f} % of the roofline", item.judgement.score * 100);
  return text;
}

// What reference.lock is made of.
bool IsLocked(const CheckItem& item) {
  return item.kind == Kind::kReference || item.kind == Kind::kBaseline || item.kind == Kind::kNccl;
}

// Judges those items of all problems that have not run and that `wanted` picks; `done` is called
// under a lock.
void JudgeAll(const judge::Tools& tools, const std::string& profile, int workers,
              std::vector<CheckedProblem>* all, bool (*wanted)(const CheckItem&), Meter* meter,
              const std::function<void(CheckedProblem&)>& done) {
  std::vector<std::pair<CheckedProblem*, CheckItem*>> work;
  for (CheckedProblem& checked : *all) {
    for (CheckItem& item : checked.items) {
      if (!item.ran && wanted(item)) work.emplace_back(&checked, &item);
    }
  }
  meter->AddTotal(static_cast<int>(work.size()));
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  const auto run = [&] {
    for (std::size_t i = next++; i < work.size(); i = next++) {
      auto& [checked, item] = work[i];
      if (item->error.empty()) {
        judge::Request request;
        request.problem = item->kind == Kind::kNccl ? &checked->with_nccl : &checked->problem;
        request.source = item->source;
        request.profile = profile;
        request.seed = kSeed;
        item->judgement = judge::Judge(tools, request);
        Decide(checked->problem, item);
      } else {
        item->because = item->error;
      }
      const std::lock_guard lock(mutex);
      item->ran = true;
      ++checked->ended;
      meter->Done(item->good ? "ok" : "FAIL");
      meter->Print([&checked, &done] { done(*checked); });
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < workers; ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
}

// What only items together tell.
void CompareItems(CheckedProblem* checked) {
  const CheckItem* reference = checked->Ran(Kind::kReference);
  const CheckItem* repeat = checked->Ran(Kind::kRepeat);
  const CheckItem* baseline = checked->Ran(Kind::kBaseline);
  if (reference == nullptr || !reference->good) return;
  if (repeat != nullptr && repeat->good) {
    const std::string difference = Difference(reference->judgement, repeat->judgement);
    if (!difference.empty())
      checked->faults.push_back("a second run of the reference differs: " + difference);
  }
  for (const CaseResult& one : reference->judgement.cases) {
    if (one.what.kind != problem::Case::Kind::kTimed) continue;
    if (!(one.roofline_ns > 0))
      checked->faults.push_back(
          fmt::format("[floor] has no value for {}: the case has no roofline", one.what.name));
  }
  for (const CheckItem& item : checked->items) {
    if (item.kind != Kind::kAlternate || !item.ran || !item.good) continue;
    if (item.judgement.score > kFaster * reference->judgement.score)
      checked->faults.push_back(fmt::format(
          "the {} ({:.1f} % of the roofline) is faster than the reference ({:.1f} %): the "
          "best known solution must be the reference",
          item.name, item.judgement.score * 100, reference->judgement.score * 100));
  }
  if (baseline == nullptr || !baseline->good) return;
  if (baseline->judgement.score > reference->judgement.score)
    checked->faults.push_back(
        fmt::format("the baseline ({:.1f} % of the roofline) is faster than "
                    "the reference ({:.1f} %)",
                    baseline->judgement.score * 100, reference->judgement.score * 100));
}

problem::LockedTimes TimesOf(const CaseResult& one) {
  const auto exact = [](double ns) { return std::round(ns * 1000) / 1000; };
  return {exact(one.isolated_ns), exact(one.call_ns), one.thread_instructions};
}

// The lock as these runs would write it. `nccl`: null if there is none.
problem::Lock LockOf(const Problem& problem, const Judgement& reference, const Judgement& baseline,
                     const Judgement* nccl) {
  problem::Lock lock;
  const auto hash = [&](const char* file) {
    return problem::HashOf(problem::ReadFile(problem.folder / file).value_or(""));
  };
  lock.reference = hash("reference.cu");
  lock.baseline = hash("baseline.cu");
  if (nccl != nullptr) lock.nccl = hash("nccl.cu");
  lock.problem = problem::HashOf(
      problem::Deciding(problem::ReadFile(problem.folder / "problem.toml").value_or("")));
  for (std::size_t i = 0; i < std::min(reference.cases.size(), baseline.cases.size()); ++i) {
    const CaseResult& one = reference.cases[i];
    // Which cases are drawn is nobody's to know.
    if (one.what.kind == problem::Case::Kind::kDrawn) continue;
    problem::LockEntry& entry = lock.profiles[reference.profile][one.what.name];
    entry = {TimesOf(one), TimesOf(baseline.cases[i]), std::nullopt};
    if (nccl != nullptr && i < nccl->cases.size()) entry.nccl = TimesOf(nccl->cases[i]);
  }
  return lock;
}

// The lock as the judged items would write it; nothing, and why, if one of them has not passed.
std::optional<problem::Lock> FreshLock(CheckedProblem* checked) {
  const CheckItem* reference = checked->Ran(Kind::kReference);
  const CheckItem* baseline = checked->Ran(Kind::kBaseline);
  const CheckItem* nccl = checked->Ran(Kind::kNccl);
  if (reference != nullptr && baseline != nullptr && reference->good && baseline->good &&
      (nccl == nullptr || nccl->good))
    return LockOf(checked->problem, reference->judgement, baseline->judgement,
                  nccl == nullptr ? nullptr : &nccl->judgement);
  checked->lock = "not compared: reference, baseline and NCCL have not passed";
  return std::nullopt;
}

void LockFault(CheckedProblem* checked, const std::string& text) {
  checked->lock = text;
  checked->faults.push_back("reference.lock: " + text);
}

void WriteLock(CheckedProblem* checked) {
  auto fresh = FreshLock(checked);
  if (!fresh) return;
  const std::string& profile = checked->Ran(Kind::kReference)->judgement.profile;
  const Problem& problem = checked->problem;
  const auto old = problem::LoadLock(problem);
  if (old && problem::StaleBecause(*old, problem.folder).empty()) {
    // Times of other profiles stay.
    for (const auto& [name, cases] : old->profiles) {
      if (name != profile) fresh->profiles[name] = cases;
    }
  }
  std::ofstream stream(problem::LockPath(problem), std::ios::binary);
  stream << problem::Render(*fresh);
  checked->lock = "written";
  if (!stream.flush()) LockFault(checked, "cannot be written");
}

void CompareLock(CheckedProblem* checked) {
  auto fresh = FreshLock(checked);
  if (!fresh) return;
  const std::string& profile = checked->Ran(Kind::kReference)->judgement.profile;
  const auto fault = [&](const std::string& text) { LockFault(checked, text); };
  const Problem& problem = checked->problem;
  const auto lock = problem::LoadLock(problem);
  if (!lock) return fault(lock.error().message);
  if (lock->empty()) return fault("is missing: run `allranks problems check --update`");
  if (const std::string why = problem::StaleBecause(*lock, problem.folder); !why.empty())
    return fault("is stale: " + why + ": run `allranks problems check --update`");
  const auto& times = fresh->profiles[profile];
  if (!lock->profiles.contains(profile)) return fault("has no entry for profile " + profile);
  for (const auto& [name, entry] : times) {
    const problem::LockEntry* locked = lock->Find(profile, name);
    if (locked == nullptr) return fault("lacks case " + name);
    problem::LockEntry known = *locked;
    if (checked->Ran(Kind::kNccl) == nullptr) known.nccl.reset();  // a machine without NCCL
    if (!(known == entry))
      return fault(fmt::format(
          "{}: the reference takes {:.3f} ns per call, {:.3f} in the lock; the "
          "baseline {:.3f}, {:.3f} in the lock; if this is intended, run `allranks problems "
          "check --update`",
          name, entry.reference.call_ns, locked->reference.call_ns, entry.baseline.call_ns,
          locked->baseline.call_ns));
  }
  if (checked->lock.empty()) checked->lock = "holds";  // or it has just been written
}

void PrintTimes(const CheckedProblem& checked) {
  const CheckItem* reference = checked.Ran(Kind::kReference);
  const CheckItem* baseline = checked.Ran(Kind::kBaseline);
  const CheckItem* nccl = checked.Ran(Kind::kNccl);
  if (reference == nullptr || !reference->good) return;
  fmt::print("  {:<28} {:>12} {:>12} {:>12} {:>9} {:>12} {:>12}\n", "modelled ns of the reference",
             "alone", "per call", "roofline", "reached", "baseline", "NCCL");
  for (std::size_t i = 0; i < reference->judgement.cases.size(); ++i) {
    const CaseResult& one = reference->judgement.cases[i];
    if (one.what.kind != problem::Case::Kind::kTimed) continue;
    const auto call_ns = [&](const CheckItem* item) {
      const bool known = item != nullptr && item->good && i < item->judgement.cases.size();
      return known ? fmt::format("{:.1f}", item->judgement.cases[i].call_ns) : "-";
    };
    fmt::print("  {:<28} {:>12.1f} {:>12.1f} {:>12.1f} {:>7.1f} % {:>12} {:>12}\n", one.what.name,
               one.isolated_ns, one.call_ns, one.roofline_ns,
               judge::RooflineFraction(one.roofline_ns, one.call_ns) * 100, call_ns(baseline),
               call_ns(nccl));
  }
}

nlohmann::json JsonOf(const CheckedProblem& checked) {
  const MutantCounts counts = CountMutants(checked);
  nlohmann::json json = {
      {"slug", checked.problem.slug},
      {"ok", checked.good()},
      {"faults", checked.faults},
      {"lock", checked.lock},
      {"mutants",
       {{"written", counts.written}, {"caught", counts.caught}, {"by_outputs", counts.by_outputs}}},
      {"items", nlohmann::json::array()},
      {"timed", nlohmann::json::array()}};
  for (const CheckItem& item : checked.items) {
    json["items"].push_back({{"name", item.name},
                             {"expected", item.expected},
                             {"needs_checker", item.needs_checker},
                             {"verdict", judge::NameOf(item.judgement.verdict)},
                             {"lenient", item.judgement.lenient},
                             {"findings", item.judgement.findings.size()},
                             {"ok", item.good},
                             {"text", item.because},
                             {"score", item.judgement.score},
                             {"cpu_s", item.judgement.cpu_seconds()}});
  }
  const CheckItem* reference = checked.Ran(Kind::kReference);
  if (reference == nullptr) return json;
  for (const CaseResult& one : reference->judgement.cases) {
    if (one.what.kind != problem::Case::Kind::kTimed) continue;
    json["timed"].push_back({{"case", one.what.name},
                             {"isolated_ns", one.isolated_ns},
                             {"call_ns", one.call_ns},
                             {"roofline_ns", one.roofline_ns}});
  }
  return json;
}

void PrintSummary(const std::vector<CheckedProblem>& all) {
  fmt::print("{:<24} {:>5} {:>6} {:>7} {:>7} {:>8} {:>9} {:>8}  lock\n", "problem", "items",
             "failed", "mutants", "caught", "outputs", "roofline", "CPU s");
  for (const CheckedProblem& checked : all) {
    const MutantCounts counts = CountMutants(checked);
    double cpu = 0;
    std::size_t failed = checked.faults.size();
    for (const CheckItem& item : checked.items) {
      cpu += item.judgement.cpu_seconds();
      failed += !item.good;
    }
    const CheckItem* reference = checked.Ran(Kind::kReference);
    fmt::print("{:<24} {:>5} {:>6} {:>7} {:>7} {:>8} {:>7.1f} % {:>8.1f}  {}\n",
               checked.problem.slug, checked.items.size(), failed, counts.written, counts.caught,
               counts.by_outputs, reference == nullptr ? 0.0 : reference->judgement.score * 100,
               cpu, checked.lock);
  }
}

// The value below which this share of them lies.
double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto place = share * static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(std::lround(place))];
}

// All problems together: what a reader asks of a benchmark.
void PrintTotals(const std::vector<CheckedProblem>& all) {
  MutantCounts counts;
  std::vector<double> shares, seconds;
  std::size_t failed = 0;
  for (const CheckedProblem& checked : all) {
    const MutantCounts own = CountMutants(checked);
    counts.written += own.written;
    counts.caught += own.caught;
    counts.by_outputs += own.by_outputs;
    failed += !checked.good();
    const CheckItem* reference = checked.Ran(Kind::kReference);
    if (reference == nullptr || !reference->good) continue;
    shares.push_back(reference->judgement.score * 100);
    seconds.push_back(reference->judgement.cpu_seconds());
  }
  fmt::print("{} problems, {} failed; {} of {} mutants caught, {} of them by outputs alone\n",
             all.size(), failed, counts.caught, counts.written, counts.by_outputs);
  if (shares.empty()) return;
  const auto low = std::count_if(shares.begin(), shares.end(), [](double s) { return s < 50; });
  fmt::print(
      "references: roofline median {:.1f} % (least {:.1f}, most {:.1f}; {} below 50 %); "
      "judgement CPU s p50 {:.1f}, p90 {:.1f}, worst {:.1f}\n",
      Quantile(shares, 0.5), Quantile(shares, 0), Quantile(shares, 1), low, Quantile(seconds, 0.5),
      Quantile(seconds, 0.9), Quantile(seconds, 1));
}

Result<std::vector<CheckedProblem>> Gather(const ProblemsOptions& options) {
  std::vector<CheckedProblem> all;
  std::vector<std::string> names = options.names;
  if (options.all) {
    for (const std::string& root : ProblemFolders(options.folder)) {
      for (const std::filesystem::path& folder : problem::Find(root)) {
        const auto variants = problem::LoadAll(folder);
        if (!variants) return Fail(variants.error());
        for (const Problem& one : *variants) names.push_back(one.slug);
      }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  if (names.empty()) return Fail("no problem to check: give each SLUG, or --all");
  std::set<std::string> slugs;
  for (const std::string& name : names) {
    auto problem = FindProblem(name, options.folder);
    if (!problem) return Fail(problem.error());
    if (!slugs.insert(problem->slug).second)
      return Fail("{} is given twice: name each problem once", problem->slug);
    CheckedProblem& checked = all.emplace_back();
    checked.problem = std::move(*problem);
    checked.with_nccl = problem::WithNccl(checked.problem);
    checked.items = ItemsOf(checked.problem, &checked.faults);
    if (options.every > 1) {
      int count = 0;
      std::erase_if(checked.items, [&](const CheckItem& item) {
        return item.kind == CheckItem::Kind::kMutant && count++ % options.every != 0;
      });
    }
    if (options.only.empty()) continue;
    std::erase_if(checked.items, [&](const CheckItem& item) {
      // TEXT, or one of several with commas between them.
      for (std::size_t at = 0; at <= options.only.size();) {
        const std::size_t end = std::min(options.only.find(',', at), options.only.size());
        if (item.name.find(options.only.substr(at, end - at)) != std::string::npos) return false;
        at = end + 1;
      }
      return true;
    });
    if (checked.items.empty())
      return Fail("{} has no item with '{}' in its name", checked.problem.slug, options.only);
  }
  return all;
}

// checked.json, in the folder that holds the categories of a problem.
std::filesystem::path RecordOf(const Problem& problem) {
  return problem.folder.parent_path().parent_path() / "checked.json";
}

// Of alternates and the solution by NCCL, which take most of the time, another one in each turn.
void LeaveOneInTurn(std::int64_t turn, std::vector<CheckItem>* items) {
  const auto alternate = [](const CheckItem& item) {
    return item.kind == Kind::kAlternate || item.kind == Kind::kNccl;
  };
  const auto count = std::count_if(items->begin(), items->end(), alternate);
  std::int64_t number = 0;
  std::erase_if(*items,
                [&](const CheckItem& item) { return alternate(item) && number++ != turn % count; });
}

// Of problems that have passed as they are only the reference is left, or nothing; names them.
Status LeaveOutUnchanged(const ProblemsOptions& options, std::vector<CheckedProblem>* all) {
  std::vector<CheckedProblem> left;
  for (CheckedProblem& checked : *all) {
    const std::string& slug = checked.problem.slug;
    const auto record = CheckRecord::Load(RecordOf(checked.problem));
    if (!record) return Fail(record.error());
    const auto key = KeyOfProblem(checked.problem.folder, options.profile);
    if (!key) return Fail(key.error());
    const CheckRecord::Standing standing = record->Of(slug, *key);
    const bool older = standing == CheckRecord::Standing::kOlder;
    const bool never = options.sample == 0;  // what is left out is left out whole
    if (!checked.faults.empty() || standing == CheckRecord::Standing::kNone || (older && never)) {
      left.push_back(std::move(checked));
      continue;
    }
    const bool sampled = InSample(slug, Today(), options.sample);
    if (!options.json) {
      fmt::print("{}: unchanged{}{}\n", slug, older ? " (the judge has changed)" : "",
                 sampled ? ", judged as a sample"
                 : never ? " since it passed, not judged"
                         : " since it passed: only its reference is judged");
    }
    if (never) continue;
    if (!sampled) {
      std::erase_if(checked.items,
                    [](const CheckItem& item) { return item.kind != Kind::kReference; });
      checked.whole = false;
    } else if (options.every > 1) {
      LeaveOneInTurn(Today() / options.sample, &checked.items);
    }
    left.push_back(std::move(checked));
  }
  *all = std::move(left);
  return Ok();
}

Status NotePassed(const ProblemsOptions& options, const CheckedProblem& checked) {
  const std::filesystem::path file = RecordOf(checked.problem);
  if (!checked.whole && checked.good()) return Ok();
  auto record = CheckRecord::Load(file);
  if (!record) return Fail(record.error());
  record->Forget(checked.problem.slug);
  if (checked.good()) {
    const auto key = KeyOfProblem(checked.problem.folder, options.profile);
    if (!key) return Fail(key.error());
    record->Passed(checked.problem.slug, *key);
  }
  return record->Store(file);
}

}  // namespace

int ProblemsCheck(const ProblemsOptions& options) {
  const auto fail = [](const std::string& message) {
    fmt::print(stderr, "allranks: {}\n", message);
    return kExitUsage;
  };
  if (options.record && (options.every > 1 || !options.only.empty()))
    return fail("--record needs all items: remove --every and --only");
  auto all = Gather(options);
  if (!all) return fail(all.error().message);
  if (options.changed) {
    if (const Status left = LeaveOutUnchanged(options, &*all); !left)
      return fail(left.error().message);
    if (all->empty() && !options.json) return 0;
  }
  const auto profile = FindProfile(options.profile);
  if (!profile) return fail(profile.error().message);
  auto tools = FindTools(true);
  if (!tools) return fail(tools.error().message);
  tools->cpu_ms = 300'000;  // a problem's own material may take its time
  const std::size_t skipped = std::erase_if(*all, [&](const CheckedProblem& checked) {
    return tools->nccl.empty() && problem::UsesNccl(checked.problem);
  });
  if (skipped != 0) fmt::print(stderr, "{} problems are skipped: no libnccl.so.2\n", skipped);
  if (tools->nccl.empty()) {
    if (options.update) return fail("--update needs libnccl.so.2: locks have its times, too");
    for (CheckedProblem& checked : *all)
      std::erase_if(checked.items, [](const CheckItem& item) { return item.kind == Kind::kNccl; });
  }
  int workers = options.workers;
  if (workers == 0) workers = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  // Lines come in order: of the first problem that has not ended, and of those behind it later.
  std::size_t current = 0;
  Status noted = Ok();  // the last one that was not
  const auto note = [&](const CheckedProblem& checked) {
    if (Status own = NotePassed(options, checked); !own) noted = std::move(own);
  };
  const auto done = [&](CheckedProblem& checked) {
    if (checked.ended == checked.items.size()) {
      CompareItems(&checked);
      CompareLock(&checked);
      // At once: a run that is cut off keeps what it has. But new locks of other variants of the
      // folder are part of the key.
      if (options.record && !options.update) note(checked);
    }
    for (; !options.json && current < all->size(); ++current) {
      CheckedProblem& one = (*all)[current];
      if (one.printed == 0 && one.items[0].ran) fmt::print("{}\n", one.problem.slug);
      for (; one.printed < one.items.size() && one.items[one.printed].ran; ++one.printed)
        fmt::print("{}\n", LineOf(one.items[one.printed]));
      std::fflush(stdout);
      if (one.printed < one.items.size()) return;
    }
  };
  std::optional<Meter> meter;
  meter.emplace(Meter::Form{.what = "checking", .unit = "items"});
  if (options.update) {
    // Then everything is judged by the new lock, as it will be from now on: it bounds instructions,
    // and sizes decide which windows a case has.
    JudgeAll(*tools, *profile, workers, &*all, IsLocked, &*meter, [](CheckedProblem&) {});
    for (CheckedProblem& checked : *all) {
      WriteLock(&checked);
      checked.ended = 0;
      for (CheckItem& item : checked.items) item.ran = false;
    }
  }
  JudgeAll(*tools, *profile, workers, &*all, [](const CheckItem&) { return true; }, &*meter, done);
  meter.reset();
  if (options.record && options.update) std::for_each(all->begin(), all->end(), note);
  bool good = true;
  nlohmann::json json = {{"version", 1}, {"problems", nlohmann::json::array()}};
  for (CheckedProblem& checked : *all) {
    good = good && checked.good();
    if (options.json) {
      json["problems"].push_back(JsonOf(checked));
      continue;
    }
    fmt::print("\n{}\n", checked.problem.slug);
    PrintTimes(checked);
    for (const std::string& fault : checked.faults) fmt::print("  FAIL  {}\n", fault);
  }
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("\n");
    PrintSummary(*all);
    if (all->size() > 1) PrintTotals(*all);
  }
  if (!noted) return fail(noted.error().message);
  return good ? 0 : 1;
}

}  // namespace allranks::cli
