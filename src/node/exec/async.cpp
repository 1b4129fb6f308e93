// Asynchronous operations: dispatch, addresses, and cp.async with its groups.
//
// An asynchronous copy is an agent: its source is read at the time at which the request reaches it,
// its bytes appear at the destination when it is complete, both by Simulator::schedule. When that
// will be is known at issue, because the servers are charged then; so a thread's groups are only
// times, and waiting for a group is letting the clock advance. Addresses are checked at issue,
// where the instruction can be named.
#include <algorithm>
#include <bit>
#include <cstring>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/exec/async_internal.h"
#include "node/exec/bulk.h"
#include "node/exec/cluster.h"
#include "node/exec/mbarrier.h"
#include "node/exec/sectors.h"
#include "node/exec/tensor_copy.h"
#include "node/exec/wait.h"

namespace allranks::node {
namespace {

using Next = Simulator::AsyncNext;

ThreadCopies& CopiesOf(Warp& warp, int lane) {
  if (warp.copies.empty()) warp.copies.resize(kLanes);
  return warp.copies[static_cast<std::size_t>(lane)];
}

// One instruction's bytes on their way to shared memory.
struct Landing {
  Cta* cta = nullptr;
  std::uint64_t number = 0;
  struct Piece {
    std::uint32_t offset = 0;
    std::byte bytes[16] = {};
  };
  std::vector<Piece> pieces;
  std::uint32_t size = 0;
};

void Land(Simulator& sim, const Landing& landing) {
  if (!StillThere(landing.cta, landing.number)) return;
  Cta& cta = *landing.cta;
  for (const Landing::Piece& piece : landing.pieces) {
    std::memcpy(cta.shared.data() + piece.offset, piece.bytes, landing.size);
    if (sim.livelock.auditing())
      sim.livelock.OnUnitWrite(cta.shared.data() + piece.offset, landing.size);
    if (sim.errors != nullptr)
      check::Errors::OnWrite(cta.shared_object, piece.offset, landing.size);
    if (!cta.shared_object.watches.empty())
      sim.waiting.NotifyWrite(cta.shared_object, piece.offset, landing.size, sim.now, sim.now);
  }
  sim.last_change = std::max(sim.last_change, sim.now);
  sim.timer_wakes = 0;
}

Next Copy(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes) {
  Warp& warp = *path.warp;
  Cta& cta = *warp.cta;
  auto landing = std::make_shared<Landing>();
  landing->cta = &cta;
  landing->number = cta.number;
  landing->size = a.bytes;
  Time done = path.clock + sim.costs.shared;
  Object* last = nullptr;
  SectorCounter sectors(sim.timing);
  const auto charge = [&] {
    if (sectors.empty()) return;
    done =
        std::max(done, sim.timing.ChargeLoad(cta, Mover::kSm, *last, sectors.Take(), path.clock));
  };
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    SharedPlace to;
    if (!ResolveShared(sim, path, a.dst, l, a.bytes, a.bytes, true, &to)) return Next::kGone;
    std::uint64_t size = a.bytes;
    if (a.count != kNoSlot) size = static_cast<std::uint32_t>(LaneValue(path, a.count, l, 4));
    if (size > a.bytes) {
      FaultWith(sim, path, fmt::format("with a source of {} bytes", size), l);
      return Next::kGone;
    }
    if (a.skip != kNoSlot) {
      const bool skip = ((PredicatesOf(path)[a.skip] >> l & 1) != 0) != a.skip_negated;
      if (skip) size = 0;
    }
    Landing::Piece piece;
    piece.offset = to.offset;
    if (size != 0) {
      Place from;
      if (!ResolveGlobal(sim, path, a.src, l, size, a.bytes, false, &from)) return Next::kGone;
      if (from.object.get() != last) {
        charge();
        last = from.object.get();
      }
      sectors.Add(*last, from.offset, size);
      if (sim.checker != nullptr)
        sim.checker->CopyReads(path, l, {}, *from.object, from.offset, size);
      std::memcpy(piece.bytes, from.data(), size);
      if (sim.livelock.auditing())
        sim.livelock.OnRead(path, *from.object, from.offset, from.data(),
                            static_cast<std::uint32_t>(size));
      if (sim.errors != nullptr) sim.errors->OnCopyRead(path, l, *from.object, from.offset, size);
      sim.stats.kernels[cta.launch->record].bytes_read += size;
    }
    if (sim.checker != nullptr)
      sim.checker->CopyWrites(path, l, {}, cta.shared_object, to.offset, a.bytes);
    landing->pieces.push_back(piece);
  }
  charge();
  ForLanes(lanes, [&](int l) {
    ThreadCopies& copies = CopiesOf(warp, l);
    copies.open = std::max(copies.open, done);
    copies.all = std::max(copies.all, done);
  });
  sim.schedule(done, [&sim, landing] { Land(sim, *landing); });
  return Next::kGo;
}

void Commit(Path& path, std::uint32_t lanes) {
  ForLanes(lanes, [&](int l) {
    ThreadCopies& copies = CopiesOf(*path.warp, l);
    auto& groups = copies.groups;
    const auto live =
        std::find_if(groups.begin(), groups.end(), [&](Time done) { return done > path.clock; });
    groups.erase(groups.begin(), live);
    groups.push_back(copies.open);
    copies.open = 0;
  });
}

// The arrive-on of cp.async.mbarrier.arrive: when the lane's copies so far are complete.
Next CopyArrive(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes) {
  struct Arrival {
    std::uint32_t offset = 0, count = 0;
    Time at = 0;
    std::vector<check::ClockRef> done;  // for the checker
  };
  std::vector<Arrival> arrivals;
  Cta& cta = *path.warp->cta;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    SharedPlace place;
    if (!ResolveShared(sim, path, a.bar, l, 8, 8, true, &place)) return Next::kGone;
    if (sim.checker != nullptr && cta.mbarriers.contains(place.offset))
      sim.checker->MbarrierUsed(path, 1u << l, cta, place.offset, false);
    if (!a.no_increment) {
      MbarrierChange change;
      change.increment = 1;
      const std::string wrong =
          ChangeMbarrier(sim, cta, place.offset, change, path.clock, path.clock);
      if (!wrong.empty()) {
        FaultWith(sim, path, wrong, l);
        return Next::kGone;
      }
    } else if (!cta.mbarriers.contains(place.offset)) {
      FaultWith(sim, path, "uses an mbarrier that is not initialised", l);
      return Next::kGone;
    }
    const Time at = std::max(path.clock, CopiesOf(*path.warp, l).all);
    const auto same = std::find_if(arrivals.begin(), arrivals.end(), [&](const Arrival& arrival) {
      return arrival.offset == place.offset && arrival.at == at;
    });
    Arrival& arrival = same != arrivals.end() ? *same : arrivals.emplace_back();
    arrival.offset = place.offset;
    ++arrival.count;
    arrival.at = at;
    if (sim.checker != nullptr) arrival.done.push_back(sim.checker->CopyDone(path, l, {}));
  }
  for (const Arrival& arrival : arrivals) {
    sim.schedule(arrival.at, [&sim, &cta, number = cta.number, arrival, pc = path.pc] {
      if (!StillThere(&cta, number)) return;
      MbarrierChange change;
      change.arrive = arrival.count;
      for (const check::ClockRef& done : arrival.done)
        sim.checker->MbarrierCompletes(cta, arrival.offset, done);
      const std::string wrong = ChangeMbarrier(sim, cta, arrival.offset, change, sim.now, sim.now);
      if (!wrong.empty()) FaultLater(sim, cta, pc, wrong);
    });
  }
  return Next::kGo;
}

}  // namespace

void FaultWith(Simulator& sim, const Path& path, const std::string& what, int lane) {
  const std::uint32_t thread = path.warp->id * kLanes + static_cast<std::uint32_t>(lane);
  const Code& code = *path.warp->cta->launch->code;
  sim.Fault(path, Status::kIllegalInstruction,
            fmt::format("{} {}, thread {}", code.forms[path.pc], what, thread));
}

void FaultLater(Simulator& sim, const Cta& cta, std::uint32_t pc, const std::string& what) {
  Path path;  // only to say where
  Warp warp;
  warp.cta = const_cast<Cta*>(&cta);
  path.warp = &warp;
  path.pc = pc;
  sim.Fault(path, Status::kIllegalInstruction, cta.launch->code->forms[pc] + " " + what);
}

bool ResolveShared(Simulator& sim, const Path& path, const AsyncAddress& a, int lane,
                   std::uint64_t size, std::uint64_t align, bool own, SharedPlace* place) {
  std::uint64_t address = LaneAddress(path, a, lane);
  Cta* cta = path.warp->cta;
  FaultAt at;
  at.lane = lane;
  at.bytes = static_cast<std::uint32_t>(size);
  const auto fail = [&](Status status, const std::string& what) {
    const Code& code = *cta->launch->code;
    const std::uint32_t thread = path.warp->id * kLanes + static_cast<std::uint32_t>(lane);
    sim.Fault(path, status, fmt::format("{} {}, thread {}", code.forms[path.pc], what, thread), at);
    return false;
  };
  if (a.space == ptx::Space::kNone) {
    if (address - kSharedWindow >= kWindowSize) {
      return fail(Status::kIllegalAddress,
                  fmt::format("at address 0x{:x}, which is not in shared memory", address));
    }
    address -= kSharedWindow;
  }
  std::uint32_t offset = 0;
  Cta* target = FindCta(*cta, address, &offset);
  if (target == nullptr) {
    return fail(Status::kIllegalAddress,
                fmt::format("at shared address 0x{:x}: the cluster has no such block, or it is "
                            "over",
                            address));
  }
  if (own && target != cta)
    return fail(Status::kIllegalAddress, "in the shared memory of another block");
  at.object = &target->shared_object;
  at.offset = offset;
  if (offset > target->shared.size() || size > target->shared.size() - offset) {
    at.cause = FaultAt::Cause::kBeyond;
    return fail(Status::kIllegalAddress,
                fmt::format("accesses {} bytes at offset {} of shared memory ({} bytes)", size,
                            offset, target->shared.size()));
  }
  if (align > 1 && offset % align != 0) {
    return fail(
        Status::kMisalignedAddress,
        fmt::format("at offset {} of shared memory, which is not a multiple of {}", offset, align));
  }
  if (sim.errors != nullptr && a.array >= 0 && target == cta)
    sim.errors->OnArray(path, lane, a.array, offset, size);
  place->cta = target;
  place->offset = offset;
  return true;
}

bool ResolveGlobal(Simulator& sim, const Path& path, const AsyncAddress& a, int lane,
                   std::uint64_t size, std::uint64_t align, bool write, Place* place) {
  return ResolveGlobalAt(sim, path, LaneAddress(path, a, lane), lane, size, align, write, place);
}

bool ResolveGlobalAt(Simulator& sim, const Path& path, Address address, int lane,
                     std::uint64_t size, std::uint64_t align, bool write, Place* place) {
  const Launch& launch = *path.warp->cta->launch;
  const int device = launch.device->number;
  const Process& process = sim.ProcessOf(launch.process);
  FaultAt at{FaultAt::Cause::kOther, lane, address, nullptr, 0, static_cast<std::uint32_t>(size)};
  const auto fail = [&](Status status, const std::string& what) {
    const std::uint32_t thread = path.warp->id * kLanes + static_cast<std::uint32_t>(lane);
    sim.Fault(path, status,
              fmt::format("{} {}, thread {}", launch.code->forms[path.pc], what, thread), at);
    return false;
  };
  bool dead = false;
  const RangeError error =
      FindRange(process.table, address, size, write, place, [&](const Mapping& mapping) {
        dead = sim.timing.faulty_links && !sim.timing.Reachable(*launch.device, mapping);
        return dead                                              ? RangeError::Reason::kNoAccess
               : !sim.MayAccess(process, mapping, device, write) ? RangeError::Reason::kNoAccess
               : write && mapping.read_only                      ? RangeError::Reason::kReadOnly
                                                                 : RangeError::Reason::kNone;
      });
  if (error.mapping != nullptr) {
    at.object = error.mapping->object.get();
    at.offset = address - error.mapping->base + error.mapping->offset;
  }
  switch (error.reason) {
    case RangeError::Reason::kNone:
      break;
    case RangeError::Reason::kUnmapped:
      at.cause = FaultAt::Cause::kUnmapped;
      return fail(
          Status::kIllegalAddress,
          fmt::format("accesses address 0x{:x} of global memory, which is not mapped", address));
    case RangeError::Reason::kBeyond:
      at.cause = FaultAt::Cause::kBeyond;
      return fail(Status::kIllegalAddress,
                  fmt::format("accesses {} bytes at offset {} of {} ({} bytes)", size,
                              address - error.mapping->base + error.mapping->offset,
                              error.mapping->object->name, error.mapping->object->size));
    case RangeError::Reason::kNoAccess:
      if (dead) {
        return fail(Status::kNvlinkUncorrectable,
                    fmt::format("accesses {} over a dead link", error.mapping->object->name));
      }
      at.cause = FaultAt::Cause::kNoAccess;
      return fail(Status::kIllegalAddress, sim.NoAccess(process, *error.mapping, device));
    case RangeError::Reason::kReadOnly:
      return fail(Status::kIllegalAddress, "writes constant memory");
    case RangeError::Reason::kMulticastRead:
      return fail(Status::kIllegalAddress,
                  "reads a multicast address, which only multimem instructions may access");
    case RangeError::Reason::kUnbound:
      return fail(Status::kIllegalAddress,
                  fmt::format("writes {}, to which not all devices of its team have bound memory",
                              error.mapping->object->name));
  }
  if (align > 1 && address % align != 0) {
    return fail(Status::kMisalignedAddress,
                fmt::format("at an address that is not a multiple of {}", align));
  }
  return true;
}

Time Simulator::AsyncGoal(const Path& path, const AsyncOp& op, std::uint32_t lanes) const {
  Time goal = 0;
  if (path.warp->copies.empty()) return 0;
  ForLanes(lanes, [&](int l) {
    const ThreadCopies& copies = path.warp->copies[static_cast<std::size_t>(l)];
    if (op.kind == AsyncOpKind::kCopyWait) {
      const std::size_t count = copies.groups.size();
      for (std::size_t i = 0; i + op.pending < count; ++i) goal = std::max(goal, copies.groups[i]);
      if (op.read) goal = std::max(goal, copies.all);  // wait_all: also what is not committed
    } else if (op.kind == AsyncOpKind::kBulkWait) {
      const std::size_t count = copies.bulk_groups.size();
      for (std::size_t i = 0; i + op.pending < count; ++i) {
        const ThreadCopies::Group& group = copies.bulk_groups[i];
        goal = std::max(goal, op.read ? group.read : group.done);
      }
    }
  });
  return goal;
}

Simulator::AsyncNext Simulator::Async(Path& path, const Op& op, std::uint32_t lanes) {
  const AsyncOp& a = path.warp->cta->launch->code->async[op.aux];
  switch (a.kind) {
    case AsyncOpKind::kCopy:
      return Copy(*this, path, a, lanes);
    case AsyncOpKind::kCopyCommit:
      if (checker != nullptr) checker->GroupCommits(path, lanes, false);
      Commit(path, lanes);
      return Next::kGo;
    case AsyncOpKind::kCopyWait:
    case AsyncOpKind::kBulkWait:  // the clock has come to AsyncGoal
      if (checker != nullptr) {
        const bool bulk = a.kind == AsyncOpKind::kBulkWait;
        checker->GroupWaits(path, lanes, bulk, a.pending, !bulk && a.read, bulk && a.read);
      }
      return Next::kGo;
    case AsyncOpKind::kCopyArrive:
      return CopyArrive(*this, path, a, lanes);
    case AsyncOpKind::kBulkCopy:
    case AsyncOpKind::kBulkCommit:
    case AsyncOpKind::kStore:
    case AsyncOpKind::kFill:
      return ExecuteBulk(*this, path, a, lanes);
    case AsyncOpKind::kTensorLoad:
    case AsyncOpKind::kTensorStore:
      return ExecuteTensor(*this, path, a, lanes);
    case AsyncOpKind::kMapa:
    case AsyncOpKind::kCtaRank:
    case AsyncOpKind::kClusterArrive:
    case AsyncOpKind::kClusterWait:
      return ExecuteCluster(*this, path, op, a, lanes);
    default:
      return ExecuteMbarrier(*this, path, op, a, lanes);
  }
}

}  // namespace allranks::node
