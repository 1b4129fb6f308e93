// Special registers: what each is worth for the lanes of a path. Included by engine.cpp; see
// engine.h.
#pragma once

#include <algorithm>
#include <cstring>

#include "node/code/lanes.h"
#include "node/code/special.h"
#include "node/exec/cluster.h"
#include "node/exec/engine.h"
#include "node/exec/simulator.h"

namespace allranks::node {

template <bool kChecked>
void EngineT<kChecked>::WriteSpecial(const Op& op, std::uint32_t mask) {
  const auto what = static_cast<Special>(op.aux);
  const Dim3& block = launch_->request.block;
  std::uint64_t uniform = 0;
  bool per_lane = false;
  std::uint32_t lane_value[kLanes];
  const std::uint32_t first = warp_->id * kLanes;
  const auto cycles = [&] { return static_cast<std::uint64_t>(path_->clock / sim_.costs.cycle); };
  const auto timer = [&] {
    const Time resolution = sim_.profile.time.globaltimer_resolution;
    const Time at = path_->clock + sim_.profile.SkewOf(device_->number) + Us(1000);
    return static_cast<std::uint64_t>(ToNs(at / resolution * resolution));
  };
  switch (what) {
    case Special::kTidX:
    case Special::kTidY:
    case Special::kTidZ:
      per_lane = true;
      if (what == Special::kTidX && block.y == 1 && block.z == 1) {  // no division
        for (std::uint32_t l = 0; l < kLanes; ++l) lane_value[l] = first + l;
        break;
      }
      for (std::uint32_t l = 0; l < kLanes; ++l) {
        const std::uint32_t t = first + l;
        lane_value[l] = what == Special::kTidX   ? t % block.x
                        : what == Special::kTidY ? t / block.x % block.y
                                                 : t / block.x / block.y;
      }
      break;
    case Special::kLaneid:
    case Special::kLanemaskEq:
    case Special::kLanemaskLt:
    case Special::kLanemaskLe:
    case Special::kLanemaskGt:
    case Special::kLanemaskGe:
      per_lane = true;
      for (std::uint32_t l = 0; l < kLanes; ++l) {
        const std::uint32_t eq = 1u << l;
        const std::uint32_t lt = eq - 1;
        lane_value[l] = what == Special::kLaneid       ? l
                        : what == Special::kLanemaskEq ? eq
                        : what == Special::kLanemaskLt ? lt
                        : what == Special::kLanemaskLe ? (lt | eq)
                        : what == Special::kLanemaskGt ? ~(lt | eq)
                                                       : ~lt;
      }
      break;
    case Special::kCtaidX:
      uniform = cta_->index.x;
      break;
    case Special::kCtaidY:
      uniform = cta_->index.y;
      break;
    case Special::kCtaidZ:
      uniform = cta_->index.z;
      break;
    case Special::kWarpid:
      uniform = warp_->id;
      break;
    case Special::kNwarpid:
      uniform = static_cast<std::uint64_t>(sim_.profile.sm.max_warps);
      break;
    case Special::kSmid:
      uniform = static_cast<std::uint64_t>(cta_->sm);
      break;
    case Special::kNsmid:
      uniform = device_->sms.size();
      break;
    case Special::kGridid:
      uniform = launch_->number;
      break;
    case Special::kClock:
      uniform = cycles() & 0xffffffffu;
      break;
    case Special::kClockHi:
      uniform = cycles() >> 32;
      break;
    case Special::kClock64:
      uniform = cycles();
      break;
    case Special::kGlobaltimer:
      uniform = timer();
      break;
    case Special::kGlobaltimerLo:
      uniform = timer() & 0xffffffffu;
      break;
    case Special::kGlobaltimerHi:
      uniform = timer() >> 32;
      break;
    case Special::kEnvreg1:
      uniform = launch_->workspace >> 32;
      break;
    case Special::kEnvreg2:
      uniform = launch_->workspace & 0xffffffffu;
      break;
    case Special::kDynamicSmem:
      uniform = launch_->request.dynamic_shared;
      break;
    case Special::kTotalSmem:
      uniform = cta_->shared.size();
      break;
    case Special::kFrameAddress:
      uniform = std::uint64_t{path_->frame.local} + op.imm;
      break;
    default:
      if (const auto wide = LaunchWide(what, launch_->request.grid, block)) {
        uniform = *wide;
      } else {
        uniform = ClusterSpecial(*cta_, what);
      }
      break;
  }
  if (what >= Special::kClock && what <= Special::kGlobaltimerHi) {
    if (!path_->spins.empty()) sim_.waiting.RecordClock(*path_);
    if (sim_.livelock.auditing()) sim_.livelock.End();
  }
  if (op.flags == 1) {  // a predicate: %is_explicit_cluster
    predicates_[op.d] = (predicates_[op.d] & ~mask) | (uniform != 0 ? mask : 0);
    return;
  }
  std::byte* d = registers_ + op.d * kSlotBytes;
  if (mask == kAllLanes && op.flags == 4) {
    if (!per_lane) std::fill_n(lane_value, kLanes, static_cast<std::uint32_t>(uniform));
    std::memcpy(d, lane_value, sizeof(lane_value));
    return;
  }
  ForLanes(mask, [&](int l) {
    const std::uint64_t value = per_lane ? lane_value[l] : uniform;
    if (op.flags == 8) {
      std::memcpy(d + l * 8, &value, 8);
    } else {
      const auto narrow = static_cast<std::uint32_t>(value);
      std::memcpy(d + l * 4, &narrow, 4);
    }
  });
}

template <bool kChecked>
typename EngineT<kChecked>::Next EngineT<kChecked>::Async(const Op& op, std::uint32_t mask) {
  const AsyncOp& a = code_->async[op.aux];
  Path& path = *path_;
  if (warp_->pending_until > path.clock) {
    for (const Slot s : {a.dst.address, a.src.address, a.bar.address, a.count, a.tx, a.value,
                         a.limit, a.multicast}) {
      WaitFor(s);
    }
    for (const Slot s : a.coordinates) WaitFor(s);
    for (const Slot s : a.data) WaitFor(s);
  }
  if (a.blocks && mask != path.mask) SkipLanes(path.mask & ~mask);
  path.clock = std::max(path.clock, sim_.AsyncGoal(path, a, mask));
  if (a.ReleasesToCluster()) AwaitStores(0);  // the fence is part of the cluster's latency
  if (!Turn()) return Again(op);
  path.release_goal = 0;
  const bool waits = a.kind == AsyncOpKind::kTestWait || a.kind == AsyncOpKind::kTryWait;
  if (!waits && !path.spins.empty()) sim_.waiting.RecordChange(path);
  if (!waits && sim_.livelock.auditing()) {
    if (a.kind == AsyncOpKind::kInit || a.kind == AsyncOpKind::kInval ||
        a.kind == AsyncOpKind::kArriveDrop) {
      sim_.livelock.End();
    } else {
      sim_.livelock.OnUnit(path);
    }
  }
  if (a.blocks) ChargeIssue();
  switch (sim_.Async(path, op, mask)) {
    case Simulator::AsyncNext::kBlocked:
      return Next::kYield;
    case Simulator::AsyncNext::kGone:
      return Next::kGone;
    default:
      break;
  }
  ++path.pc;
  if (path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

}  // namespace allranks::node
