// Words of shared memory that nobody has written, and whoever computes with them. Part of Errors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <string_view>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/check/initialised.h"
#include "node/code/lanes.h"
#include "node/state/state.h"

namespace allranks::node::check {

// Looks at the instructions that follow without a branch, which the path executes for certain.
// Arithmetic passes a value on, and is a use of it, unlike a mere copy; whatever may drop it (a
// selection, a comparison, a shuffle, a guard) does not.
const std::vector<Errors::StoreOf>& Errors::StoresOf(const std::shared_ptr<const Code>& of,
                                                     std::uint32_t pc) {
  const Code& code = *of;
  constexpr std::uint32_t kMost = 256;  // instructions
  constexpr std::array kPasses = {"mov", "cvt", "add", "sub", "mul", "mad", "fma", "neg"};
  const auto [it, fresh] = stores_of_.try_emplace({of, pc});
  std::vector<StoreOf>& stores = it->second;
  if (!fresh) return stores;
  std::map<Slot, bool> made;  // whether something was computed
  const MemoryOp& load = code.memory[code.ops[pc].aux];
  for (int e = 0; e < load.count; ++e) made[load.data[e]] = false;
  made.erase(kNoSlot);
  const auto has = [&](Slot slot) { return made.contains(slot); };
  const auto used = [&](Slot slot) {
    const auto known = made.find(slot);
    return known != made.end() && known->second;
  };
  for (std::uint32_t at = pc + 1; at < code.ops.size() && at < pc + kMost && !made.empty(); ++at) {
    const Op& op = code.ops[at];
    switch (op.kind) {
      case OpKind::kAlu:
      case OpKind::kTracked: {
        const std::string_view form = code.forms[at];
        if (form.starts_with("set")) break;  // writes predicates
        const bool passes = std::any_of(kPasses.begin(), kPasses.end(),
                                        [&](const char* name) { return form.starts_with(name); });
        const bool any = std::any_of(std::begin(op.s), std::end(op.s), has);
        if (!passes || !any || op.guard != kNoSlot) {
          made.erase(op.d);
          break;
        }
        made[op.d] = !(form.starts_with("mov") || form.starts_with("cvt")) ||
                     std::any_of(std::begin(op.s), std::end(op.s), used);
        break;
      }
      case OpKind::kMemory: {
        const MemoryOp& m = code.memory[op.aux];
        const bool stores_it = m.kind == MemoryOpKind::kStore &&
                               std::any_of(std::begin(m.data), std::end(m.data), has);
        if (stores_it && op.guard == kNoSlot)
          stores.push_back({at, std::any_of(std::begin(m.data), std::end(m.data), used)});
        if (m.kind != MemoryOpKind::kStore)
          for (const Slot slot : m.data) made.erase(slot);
        break;
      }
      case OpKind::kSpecial:
      case OpKind::kWarpSync:
        made.erase(op.d);
        break;
      case OpKind::kBarrier:
      case OpKind::kFence:
      case OpKind::kNop:
        break;
      default:
        return stores;
    }
  }
  return stores;
}

void Errors::Taints(const Access& a, std::uint32_t unwritten) {
  constexpr std::size_t kMostTaints = 4096;
  if (a.op->kind != MemoryOpKind::kLoad || taints_.size() >= kMostTaints) return;
  const Warp& warp = *a.path->warp;
  const std::uint32_t pc = a.path->pc;
  std::uint32_t results = 0;  // lanes that have loaded a result of such values
  if (!used_.empty())
    ForLanes(unwritten, [&](int l) {
      if (used_.contains({warp.cta->number, a.offset[l]})) results |= 1u << l;
    });
  for (const StoreOf& store : StoresOf(warp.cta->launch->code, pc)) {
    const auto same = [&](const Taint& t) {
      return t.cta == warp.cta->number && t.warp == warp.id && t.pc == store.pc && t.load == pc;
    };
    const auto it = std::find_if(taints_.begin(), taints_.end(), same);
    const std::uint32_t computed = store.used ? unwritten : results;
    if (it != taints_.end()) {
      it->lanes |= unwritten;
      it->used |= computed;
    } else {
      taints_.push_back({warp.cta->number, warp.id, store.pc, pc, unwritten, computed});
    }
  }
}

void Errors::CheckTaints(const Access& a) {
  const Warp& warp = *a.path->warp;
  std::uint32_t lanes = 0, load = 0, used = 0;
  for (Taint& t : taints_) {
    if (t.cta != warp.cta->number || t.warp != warp.id || t.pc != a.path->pc) continue;
    lanes |= t.lanes & a.lanes;
    if ((t.used & a.lanes) != 0 || used == 0) load = t.load;
    used |= t.used & a.lanes;
    t.lanes &= ~a.lanes;
    t.used &= ~a.lanes;
  }
  if (lanes == 0) return;
  std::erase_if(taints_, [](const Taint& t) { return t.lanes == 0; });
  Object& object = *a.object;
  if (object.kind == Object::Kind::kShared) {
    if (a.op->count > 1) return;  // other elements of it may be good
    if (object.initialised == nullptr) {
      object.initialised = Initialised::Make(object.size);
      if (object.initialised == nullptr) return;
      object.initialised->Write(0, object.size);
    }
    const InitialisedRange nothing{false, std::vector<std::uint64_t>((a.bytes + 63) / 64)};
    constexpr std::size_t kMostUsed = 65'536;
    ForLanes(lanes, [&](int l) {
      object.initialised->Put(a.offset[l], a.bytes, nothing);
      const std::pair<std::uint64_t, std::uint64_t> word{warp.cta->number, a.offset[l]};
      if ((used >> l & 1) == 0) {
        used_.erase(word);
      } else if (used_.size() < kMostUsed) {
        used_.insert(word);
      }
    });
    return;
  }
  if (used == 0) return;  // a copy of what may be padding
  const int lane = std::countr_zero(used);
  FindingAccess from = Show(*a.path, lane, load, "load");
  FindingAccess to = Show(*a.path, lane, a.path->pc, "store");
  ShowObject(state_, object, &to);
  to.offset = a.offset[lane];
  to.bytes = a.bytes;
  to.write = true;
  Say(Finding::Kind::kUninitialised,
      fmt::format(
          "{} stores to {} a value that {} has read from shared memory that was never written",
          to.form, object.name, from.form),
      "write or clear the shared memory and synchronise before the read", {from, to}, load);
}

void Errors::DropTaints(const Path& path, std::uint32_t lanes) {
  const Cta& cta = *path.warp->cta;
  for (Taint& taint : taints_)
    if (taint.cta == cta.number && taint.warp == path.warp->id) taint.lanes &= ~lanes;
  std::erase_if(taints_, [](const Taint& taint) { return taint.lanes == 0; });
  if (cta.live_threads == static_cast<std::uint32_t>(std::popcount(lanes)))
    used_.erase(used_.lower_bound({cta.number, 0}), used_.lower_bound({cta.number + 1, 0}));
}

}  // namespace allranks::node::check
