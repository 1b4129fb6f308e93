// Verdicts on sections; see verdict.h.
#include "verdict.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "section_run.h"

namespace allranks::litmus {
namespace {

using Kind = Expectation::Kind;
using FindingKind = node::Finding::Kind;

// A machine that has hung or failed is made anew, which takes time: fewer seeds must do.
constexpr std::uint64_t kSeedsOfEnds = 12;

// One expectation and what the runs so far say of it.
struct Claim {
  const Expectation* expectation = nullptr;
  std::vector<std::pair<std::size_t, std::uint64_t>> terms;  // place and value
  std::uint64_t held = 0;                                    // runs in which it was so
  std::optional<std::uint64_t> against;                      // first seed that is
};

class Judging {
 public:
  Judging(const node::Profile& profile, const Test& test, const Section& section, bool checked)
      : test_(test), section_(section), checked_(checked), run_(profile, test, section, checked) {
    for (const Expectation& expectation : section.expectations) {
      Claim claim{&expectation, {}, 0, std::nullopt};
      for (const Term& term : expectation.terms) {
        std::size_t place = 0;
        while (run_.places()[place].text != term.place.text) ++place;
        claim.terms.push_back({place, term.value});
      }
      claims_.push_back(std::move(claim));
      if (expectation.kind == Kind::kFinding) named_.insert(expectation.finding);
      hang_ |= expectation.kind == Kind::kHang;
      fault_ |= expectation.kind == Kind::kFault;
    }
  }

  Verdict Judge(std::uint64_t seeds) {
    if (auto status = run_.Prepare(); !status) return Failed(status.error().message);
    if (hang_ || fault_) seeds = std::min(seeds, kSeedsOfEnds);
    for (std::uint64_t seed = 0; seed < seeds || (seed < kMostSeeds && Open()); ++seed) {
      auto ending = run_.Run(seed);
      if (!ending) return Failed(ending.error().message);
      ++verdict_.runs;
      Note(seed, *ending);
      if (!verdict_.failure.empty()) return Closed();
      if (ending->hang.empty() && ending->fault.empty()) continue;
      if (auto status = run_.Prepare(); !status) return Failed(status.error().message);
    }
    for (const Claim& claim : claims_) {
      const Expectation& expectation = *claim.expectation;
      if (!checked_ && expectation.kind != Kind::kForbid) continue;
      if (expectation.kind == Kind::kAllow) {
        verdict_.reached += claim.held > 0;
        if (claim.held == 0) Say("no seed reaches it", expectation);
      } else if (expectation.kind >= Kind::kFinding) {
        if (expectation.sometimes ? claim.held == 0 : claim.against.has_value())
          Say(expectation.sometimes ? "no seed shows it"
                                    : fmt::format("seed {} does not show it, {} of {} do",
                                                  *claim.against, claim.held, verdict_.runs),
              expectation);
      }
    }
    return Closed();
  }

 private:
  // Whether some seed has yet to show something.
  bool Open() const {
    return checked_ && std::any_of(claims_.begin(), claims_.end(), [](const Claim& claim) {
             return claim.held == 0 &&
                    (claim.expectation->kind == Kind::kAllow || claim.expectation->sometimes);
           });
  }

  void Note(std::uint64_t seed, const Ending& ending) {
    const bool ended = ending.hang.empty() && ending.fault.empty();
    if (ended) ++outcomes_[ending.values];
    for (const node::Finding& finding : ending.findings) {
      findings_.insert({finding.kind, Describe(finding)});
      if (finding.kind != FindingKind::kPortability && !named_.contains(finding.kind))
        return Blame(seed, "a finding that is not expected:\n" + Describe(finding));
    }
    if (!ending.hang.empty() && !hang_)
      return Blame(seed, "threads wait for ever:\n" + ending.hang);
    if (!ending.fault.empty() && !fault_) return Blame(seed, "a kernel failed: " + ending.fault);
    for (Claim& claim : claims_) {
      const bool so = Holds(claim, ending);
      claim.held += so;
      if (!so && !claim.against) claim.against = seed;
      if (so && claim.expectation->kind == Kind::kForbid)
        return Blame(seed, "'" + claim.expectation->text + "' does not hold");
    }
  }

  bool Holds(const Claim& claim, const Ending& ending) const {
    const Expectation& expectation = *claim.expectation;
    switch (expectation.kind) {
      case Kind::kForbid:
      case Kind::kAllow:
        return !ending.values.empty() &&
               std::all_of(claim.terms.begin(), claim.terms.end(), [&](const auto& term) {
                 return ending.values[term.first] == term.second;
               });
      case Kind::kHang:
        return !ending.hang.empty();
      case Kind::kFault:
        return !ending.fault.empty();
      case Kind::kFinding:
        return std::any_of(
            ending.findings.begin(), ending.findings.end(), [&](const node::Finding& finding) {
              return finding.kind == expectation.finding &&
                     (expectation.on < 0 || run_.MemoryOf(finding.accesses[0]) == expectation.on);
            });
      case Kind::kClean:
        return true;
    }
    return false;
  }

  void Say(const std::string& what, const Expectation& expectation) {
    verdict_.failure += fmt::format("'{}': {}\n", expectation.text, what);
  }
  void Blame(std::uint64_t seed, const std::string& what) {
    verdict_.failure += fmt::format("seed {}: {}\n", seed, what);
  }
  Verdict Failed(const std::string& message) {
    verdict_.failure = message;
    return Closed();
  }

  Verdict Closed() {
    verdict_.outcomes = outcomes_.size();
    if (verdict_.failure.empty()) return verdict_;
    std::string text = fmt::format("{} [{}]: {}", test_.path, section_.title, verdict_.failure);
    text += fmt::format("outcomes of {} runs:\n", verdict_.runs);
    for (const auto& [values, count] : outcomes_) {
      text += fmt::format("  {:6}", count);
      for (std::size_t i = 0; i < values.size(); ++i)
        text += fmt::format(" {}={}", run_.places()[i].text, values[i]);
      text += "\n";
    }
    if (!findings_.empty()) text += "findings:\n";
    for (const auto& [kind, finding] : findings_) text += finding;
    verdict_.failure = text;
    return verdict_;
  }

  const Test& test_;
  const Section& section_;
  const bool checked_;
  SectionRun run_;
  std::vector<Claim> claims_;
  std::set<FindingKind> named_;
  bool hang_ = false, fault_ = false;
  std::map<std::vector<std::uint64_t>, std::uint64_t> outcomes_;
  std::set<std::pair<FindingKind, std::string>> findings_;
  Verdict verdict_;
};

}  // namespace

Verdict Judge(const node::Profile& profile, const Test& test, const Section& section,
              std::uint64_t seeds, bool checked) {
  return Judging(profile, test, section, checked).Judge(seeds);
}

}  // namespace allranks::litmus
