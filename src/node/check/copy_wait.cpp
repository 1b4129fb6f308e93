// Remedies where the text has the wait that is needed: for the copy's mbarrier or at the cluster's
// barrier, but after the access or without order.
#include <fmt/format.h>

#include <utility>

#include "node/check/remedy.h"

namespace allranks::node::check {
namespace {

bool Is(const Code& code, std::uint32_t pc, AsyncOpKind kind) {
  return code.ops[pc].kind == OpKind::kAsync && code.async[code.ops[pc].aux].kind == kind;
}

// `waits(pc)`: it is a wait of the kind that is needed between the two.
template <class Waits>
bool MoveAfter(const Code& code, std::uint32_t earlier, std::uint32_t access, const char* what,
               Waits waits, Finding* finding) {
  if (!Before(code, earlier, access)) return false;  // of the round before
  std::uint32_t wait = 0;
  for (std::uint32_t pc = 0; pc < code.ops.size(); ++pc) {
    if (!waits(pc) || !Before(code, earlier, pc)) continue;
    if (Before(code, pc, access)) return false;  // for something else
    if (wait == 0 || Before(code, pc, wait)) wait = pc;
  }
  if (wait == 0) return false;
  Edit edit = EditAt(code, access, Edit::Action::kMoveAfter, Edit::By::kBlock, "");
  edit.to = EditAt(code, wait, Edit::Action::kMoveAfter, Edit::By::kBlock, "").at;
  if (edit.at.empty() || edit.to.empty()) return false;
  finding->advice = fmt::format("move the access at {} after the wait for {} at {}",
                                PlaceOf(code, access), what, PlaceOf(code, wait));
  AddEdit(std::move(edit), finding);
  return true;
}

}  // namespace

bool MoveAfterPhase(const Code& code, std::uint32_t copy, std::uint32_t access, Finding* finding) {
  return MoveAfter(
      code, copy, access, "the mbarrier's phase",
      [&](std::uint32_t pc) {
        return Is(code, pc, AsyncOpKind::kTestWait) || Is(code, pc, AsyncOpKind::kTryWait);
      },
      finding);
}

bool MoveAfterCluster(const Code& code, std::uint32_t earlier, std::uint32_t access,
                      Finding* finding) {
  bool arrives = false;
  for (std::uint32_t pc = 0; pc < code.ops.size() && !arrives; ++pc) {
    arrives = Is(code, pc, AsyncOpKind::kClusterArrive) && Before(code, earlier, pc) &&
              Before(code, pc, access);
  }
  return arrives &&
         MoveAfter(
             code, earlier, access, "the cluster's barrier",
             [&](std::uint32_t pc) { return Is(code, pc, AsyncOpKind::kClusterWait); }, finding);
}

bool ReleaseAtCluster(const Code& code, std::uint32_t earlier, std::uint32_t access,
                      Finding* finding) {
  for (std::uint32_t pc = 0; pc < code.ops.size(); ++pc) {
    if (!Is(code, pc, AsyncOpKind::kClusterArrive) || !code.async[code.ops[pc].aux].relaxed ||
        !Before(code, earlier, pc) || !Before(code, pc, access)) {
      continue;
    }
    Edit edit = EditAt(code, pc, Edit::Action::kReplace, Edit::By::kThread, "release");
    if (edit.at.empty()) return false;
    edit.from = "relaxed";
    finding->missing =
        fmt::format("the arrival at the cluster's barrier at {} orders nothing", PlaceOf(code, pc));
    finding->advice = fmt::format(
        "use barrier.cluster.arrive.release at {}, or put fence.acq_rel.cluster before it",
        PlaceOf(code, pc));
    AddEdit(std::move(edit), finding);
    return true;
  }
  return false;
}

}  // namespace allranks::node::check
