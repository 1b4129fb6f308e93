// What the launches of two racing accesses tell of a remedy by the host. Part of RemedySearch.
#include <algorithm>
#include <set>
#include <utility>

#include "node/check/checker.h"
#include "node/check/remedy.h"

namespace allranks::node::check {
namespace {

bool StoresFlags(const Code& code) {
  return std::any_of(code.memory.begin(), code.memory.end(), [](const MemoryOp& op) {
    return op.kind != MemoryOpKind::kLoad && op.Strong();
  });
}

bool LoadsFlags(const Code& code) {
  return std::any_of(code.memory.begin(), code.memory.end(), [](const MemoryOp& op) {
    return op.kind == MemoryOpKind::kLoad && op.Strong();
  });
}

}  // namespace

bool RemedySearch::ResetsForOthers() const {
  if (!IsThread(e_) || !IsThread(l_) || e_.write() || !e_.strong() || l_.strong() ||
      e_.agent == l_.agent || &CodeOf(e_.agent) != &CodeOf(l_.agent) ||
      !InWait(CodeOf(e_.agent), e_.pc)) {
    return false;
  }
  const auto& events = EventsOf(l_.agent);
  return std::any_of(events.begin(), events.end(), [&](const Event& read) {
    return read.kind == Event::Kind::kRead && read.pc == e_.pc;
  });
}

// Launches of its kernel that its stream has had before.
std::size_t RemedySearch::RoundOf(Agent agent) const {
  const ChainPlace& mine = checker_.places_.of[agent];
  const Code* const code = checker_.agents_[agent].info->code.get();
  std::set<std::uint32_t> earlier;
  const LaunchInfo* last = nullptr;  // blocks of one launch follow each other
  for (Agent other = 1; other < checker_.agents_.size(); ++other) {
    const LaunchInfo* const info = checker_.agents_[other].info.get();
    if (info == std::exchange(last, info)) continue;
    const ChainPlace& at = checker_.places_.of[other];
    if (at.chain == mine.chain && at.number < mine.number && info != nullptr &&
        info->code.get() == code) {
      earlier.insert(at.number);
    }
  }
  return earlier.size();
}

bool RemedySearch::OfDifferentRounds() const { return RoundOf(e_.agent) != RoundOf(l_.agent); }

// Neither waits for the other: the earlier kernel uses no flags, and was launched first.
const LaunchInfo* RemedySearch::Announcer() const {
  const LaunchInfo& before = *checker_.agents_[e_.agent].info;
  if (!IsThread(e_) || StoresFlags(*before.code) || LoadsFlags(*before.code)) return nullptr;
  const auto& events = EventsOf(l_.agent);
  for (auto read = events.rbegin(); read != events.rend(); ++read) {
    if (read->kind != Event::Kind::kRead || read->writer.agent == 0 ||
        read->writer.agent == l_.agent || !IsBlock(read->writer.agent)) {
      continue;
    }
    const LaunchInfo& writer = *checker_.agents_[read->writer.agent].info;
    if (&writer != &before && writer.process == before.process && before.op < writer.op)
      return &writer;
  }
  return nullptr;
}

}  // namespace allranks::node::check
