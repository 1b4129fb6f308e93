// Which loops could be waits (SpinLoop in flow.h), and their bodies.
//
// The head a branch jumps back to is usually the loop's entry, but compilers also lay a loop out
// with its entry in the middle; the body is then that of the natural loop around the branch.
// Everything here may give up: a loop that is not listed is executed, which is right and only
// slower. Hence the bounds on bodies and steps, which keep hostile functions cheap.
#include <algorithm>
#include <tuple>

#include "node/decode/flow_internal.h"

namespace allranks::node::flow_internal {
namespace {

constexpr std::uint32_t kMaxBodyInstructions = 4096;
constexpr int kMaxHeaderTries = 8;
constexpr int kMaxClimb = 256;
constexpr std::uint64_t kStepsBase = 300'000;
constexpr std::uint64_t kStepsPerBlock = 4;

// Walks bodies of loops backwards.
class BodyWalker {
 public:
  BodyWalker(const ptx::Function& function, const Graph& graph, const DominatorTree& dominators)
      : graph_(graph),
        dominators_(dominators),
        budget_(kStepsBase + kStepsPerBlock * graph.blocks),
        mark_(graph.nodes, 0),
        changes_(graph.blocks, false),
        computes_(graph.blocks, false) {
    for (std::uint32_t i = 0; i < function.code.size(); ++i) {
      const Effect effect = graph.behaviour[i].effect;
      if (effect == Effect::kChange) changes_[graph.block_of[i]] = true;
      if (effect == Effect::kStore || effect == Effect::kExchange) {
        computes_[graph.block_of[i]] = true;
      }
    }
  }

  bool Seldom(const std::vector<std::uint32_t>& body) const {
    return std::any_of(body.begin(), body.end(),
                       [&](std::uint32_t block) { return computes_[block]; });
  }

  // The blocks from which `from` is reached without passing `head`, both included; false if they
  // are too many or one of them changes state.
  bool Walk(std::uint32_t head, std::vector<std::uint32_t> from, std::vector<std::uint32_t>& body) {
    body.clear();
    std::uint32_t instructions = 0;
    ++current_;
    const auto add = [&](std::uint32_t node) {
      if (mark_[node] == current_) return true;
      mark_[node] = current_;
      if (node >= graph_.blocks) {
        from.push_back(node);
        return true;
      }
      if (changes_[node]) return false;
      instructions += graph_.first[node + 1] - graph_.first[node];
      if (instructions > kMaxBodyInstructions) return false;
      body.push_back(node);
      if (node != head) from.push_back(node);
      return true;
    };
    std::vector<std::uint32_t> start;
    start.swap(from);
    if (!add(head)) return false;
    for (std::uint32_t node : start) {
      if (!add(node)) return false;
    }
    while (!from.empty()) {
      const std::uint32_t node = from.back();
      from.pop_back();
      for (std::uint32_t before : graph_.predecessors[node]) {
        if (budget_ == 0) return false;
        --budget_;
        if (dominators_.size[before] == 0) continue;  // never executed
        if (!add(before)) return false;
      }
    }
    std::sort(body.begin(), body.end());
    return true;
  }

  // The loop around a backward branch whose target does not dominate it.
  bool WalkAround(std::uint32_t branch, std::uint32_t target, std::vector<std::uint32_t>& body) {
    int tries = 0;
    std::uint32_t header = branch;
    for (int climbed = 0; header != kNone && climbed < kMaxClimb;
         ++climbed, header = dominators_.parent[header]) {
      if (!dominators_.Dominates(header, target) || header >= graph_.blocks) continue;
      std::vector<std::uint32_t> latches;
      for (std::uint32_t before : graph_.predecessors[header]) {
        if (budget_ == 0) return false;
        --budget_;
        if (dominators_.Dominates(header, before)) latches.push_back(before);
      }
      if (latches.empty()) continue;
      if (++tries > kMaxHeaderTries) return false;
      if (!Walk(header, std::move(latches), body)) return false;  // outer ones are larger still
      if (mark_[branch] == current_ && mark_[target] == current_) return true;
    }
    return false;
  }

 private:
  const Graph& graph_;
  const DominatorTree& dominators_;
  std::uint64_t budget_;
  std::vector<std::uint32_t> mark_;
  std::uint32_t current_ = 0;
  std::vector<bool> changes_, computes_;
};

}  // namespace

std::vector<SpinCandidate> FindSpinCandidates(const ptx::Function& function, const Graph& graph,
                                              const DominatorTree& dominators) {
  BodyWalker walker(function, graph, dominators);
  struct Found {
    std::uint32_t head, branch;
    std::vector<std::uint32_t> body;
    bool seldom = false;
  };
  std::vector<Found> found;
  for (std::uint32_t block = 0; block < graph.blocks; ++block) {
    const std::uint32_t last = graph.Last(block);
    if (graph.behaviour[last].effect != Effect::kBranch || dominators.size[block] == 0) continue;
    const std::uint32_t target = graph.successors[block][0];
    if (target > block) continue;
    Found loop{target, last, {}, false};
    const bool ok = dominators.Dominates(target, block)
                        ? walker.Walk(target, {block}, loop.body)
                        : walker.WalkAround(block, target, loop.body);
    if (!ok) continue;
    loop.seldom = walker.Seldom(loop.body);
    found.push_back(std::move(loop));
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return std::tie(a.head, a.seldom, a.branch) < std::tie(b.head, b.seldom, b.branch);
  });
  const Found* last = nullptr;
  std::vector<SpinCandidate> candidates;
  for (Found& loop : found) {
    const bool same_kind =
        last != nullptr && last->head == loop.head && last->seldom == loop.seldom;
    last = &loop;
    if (!same_kind) {
      candidates.push_back({loop.head, {loop.branch}, std::move(loop.body)});
      continue;
    }
    SpinCandidate& same = candidates.back();
    same.branches.push_back(loop.branch);
    same.body.insert(same.body.end(), loop.body.begin(), loop.body.end());
  }
  for (SpinCandidate& candidate : candidates) {
    std::sort(candidate.body.begin(), candidate.body.end());
    candidate.body.erase(std::unique(candidate.body.begin(), candidate.body.end()),
                         candidate.body.end());
  }
  return candidates;
}

}  // namespace allranks::node::flow_internal
