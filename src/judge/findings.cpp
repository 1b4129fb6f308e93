#include "judge/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "judge/trusted.h"
#include "node/findings.h"

namespace allranks::judge {
namespace {

using node::FindingClass;

// Where the compiler's sandbox has candidate.cu and problem.h.
constexpr const char* kBuildFolder = "/tmp/";
constexpr const char* kGivenFolder = "/allranks/include/";

Verdict VerdictOf(FindingClass of) {
  return of == FindingClass::kMemory ? Verdict::kMemoryError : Verdict::kRace;
}

// The order in which classes decide.
int RankOf(const node::Finding& finding) {
  switch (node::ClassOf(finding.kind)) {
    case FindingClass::kRace:
      return 0;
    case FindingClass::kSynchronisation:
      return 1;
    case FindingClass::kMemory:
      return 2;
    case FindingClass::kApi:  // judged runs have none
    case FindingClass::kPortability:
    case FindingClass::kLeak:
      break;
  }
  return 3;
}

}  // namespace

std::vector<node::Finding> FindingsOf(const wire::JudgeRunReply& reply) {
  std::vector<node::Finding> findings;
  for (const wire::JudgeFinding& told : reply.findings) {
    if (told.kind > static_cast<std::uint8_t>(node::Finding::Kind::kWeakSpin)) continue;
    node::Finding& finding = findings.emplace_back();
    finding.kind = static_cast<node::Finding::Kind>(told.kind);
    finding.text = told.text;
    finding.missing = told.missing;
    finding.advice = told.advice;
    finding.count = told.count;
    finding.schedule = told.schedule;
    finding.pairs = told.pairs;
    for (const wire::JudgePair& pair : told.also)
      finding.also.push_back({pair.later, pair.earlier});
    const auto places = [](const std::vector<wire::JudgePlace>& from) {
      std::vector<node::Edit::Place> to;
      for (const wire::JudgePlace& place : from)
        to.push_back({place.file, place.line, place.column, place.function});
      return to;
    };
    for (const wire::JudgeEdit& edit : told.edits) {
      if (edit.action > static_cast<std::uint8_t>(node::Edit::Action::kHoist) ||
          edit.by > static_cast<std::uint8_t>(node::Edit::By::kHost))
        continue;
      node::Edit& made = finding.edits.emplace_back();
      made.action = static_cast<node::Edit::Action>(edit.action);
      made.by = static_cast<node::Edit::By>(edit.by);
      made.at = places(edit.at);
      made.text = edit.text;
      made.from = edit.from;
      made.form = edit.form;
      made.to = places(edit.to);
    }
    for (const wire::JudgeAccess& access : told.accesses) {
      node::FindingAccess& made = finding.accesses.emplace_back();
      made.what = access.what;
      made.form = access.form;
      made.rank = access.rank;
      made.device = access.device;
      made.kernel = access.kernel;
      made.block = {access.block[0], access.block[1], access.block[2]};
      made.thread = access.thread;
      made.file = access.file;
      made.line = access.line;
      made.inlined_at = access.inlined_at;
      made.object = access.object;
      made.offset = access.offset;
      made.bytes = access.bytes;
      made.write = access.write;
      made.time = access.time_ps;
    }
    for (const node::FindingAccess& access : finding.accesses) {
      // Without a sandbox.
      const std::string folder = BuildFolderIn(access.file);
      if (folder.empty()) continue;
      node::ReplacePaths(folder, kBuildFolder, &finding);
      break;
    }
    node::ReplacePaths(kBuildFolder, "", &finding);
    node::ReplacePaths(kGivenFolder, "", &finding);
  }
  return findings;
}

void Fold(const std::vector<node::Finding>& more, const std::string& in_case,
          std::vector<CaseFinding>* all) {
  for (const node::Finding& finding : more) {
    auto known = std::find_if(all->begin(), all->end(), [&](const CaseFinding& one) {
      return node::SamePlaces(one.finding, finding) || node::SameCause(one.finding, finding);
    });
    if (known == all->end()) {
      known = all->insert(all->end(), {finding, {}});
    } else {
      node::Merge(finding, &known->finding);
    }
    if (known->cases.empty() || known->cases.back() != in_case) known->cases.push_back(in_case);
  }
}

std::optional<Verdict> VerdictOf(const std::vector<node::Finding>& findings) {
  const node::Finding* first = nullptr;
  for (const node::Finding& finding : findings)
    if (node::Counts(finding) && (first == nullptr || RankOf(finding) < RankOf(*first)))
      first = &finding;
  if (first == nullptr) return std::nullopt;
  return VerdictOf(node::ClassOf(first->kind));
}

std::string TextOf(const std::vector<node::Finding>& findings) {
  std::vector<const node::Finding*> counted;
  for (const node::Finding& finding : findings)
    if (node::Counts(finding)) counted.push_back(&finding);
  // By rank, else in their order. Not stable_sort: clang refuses that of libstdc++ 12.
  std::sort(counted.begin(), counted.end(), [](const auto* a, const auto* b) {
    return std::pair(RankOf(*a), a) < std::pair(RankOf(*b), b);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(counted.size(), kMostDescribed); ++i) {
    text += node::Describe(*counted[i]);
    if (counted[i]->schedule != 0)
      text += fmt::format("  under schedule {}\n", counted[i]->schedule);
  }
  if (counted.size() > kMostDescribed)
    text += fmt::format("and {} more\n", counted.size() - kMostDescribed);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace allranks::judge
