// What an mbarrier's word says of a wait.
#include "node/state/mbarrier_word.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/code/code.h"
#include "node/state/spin_state.h"

namespace allranks::node {

std::int64_t MbarrierWaitedFor(const Path& path) {
  const Code& code = *path.warp->cta->launch->code;
  const auto waits = [&](std::uint32_t pc) {
    if (code.ops[pc].kind != OpKind::kAsync) return false;
    const AsyncOpKind kind = code.async[code.ops[pc].aux].kind;
    return kind == AsyncOpKind::kTryWait || kind == AsyncOpKind::kTestWait;
  };
  if (path.parked != nullptr) {
    const auto& reads = path.parked->reads;
    const bool all = std::all_of(reads.begin(), reads.end(),
                                 [&](const SpinRead& read) { return waits(read.pc); });
    if (reads.empty() || !all) return -1;
    return static_cast<std::int64_t>(reads.front().offset) - Mbarrier::kPhaseByte;
  }
  if (!waits(path.pc)) return -1;
  for (const auto& [offset, note] : path.warp->cta->mbarriers) {
    if (std::find(note.waiting.begin(), note.waiting.end(), &path) != note.waiting.end())
      return offset;
  }
  return -1;
}

std::string DescribePhase(const Cta& cta, std::uint32_t offset) {
  const auto note = cta.mbarriers.find(offset);
  if (note == cta.mbarriers.end()) return "an mbarrier that no longer exists";
  const Mbarrier m = Mbarrier::Unpack(LoadMbarrier(cta, offset));
  const std::string bytes = m.tx < 0 ? fmt::format("has {} bytes too many", -m.tx)
                                     : fmt::format("for {} more bytes", m.tx);
  return fmt::format("{} more arrivals of {} and {} ({} expected, {} arrived)", m.pending,
                     m.expected, bytes, note->second.expected, note->second.arrived);
}

}  // namespace allranks::node
