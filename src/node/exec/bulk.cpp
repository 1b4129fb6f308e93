// Bulk copies; see bulk.h.
#include "node/exec/bulk.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "node/alu/atomic_ops.h"
#include "node/alu/memory_ops.h"
#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/exec/cluster.h"
#include "node/exec/mbarrier.h"

namespace allranks::node {
namespace {

using Next = Simulator::AsyncNext;

constexpr std::uint64_t kBulkAlign = 16;
constexpr std::uint64_t kBankPass = 128;  // bytes: a word of each bank

void Deliver(Transfer& transfer) {
  Simulator& sim = *transfer.sim;
  if (transfer.lost) return;
  if (transfer.write) {
    transfer.write(transfer.buffer.data());
    if (sim.livelock.auditing()) sim.livelock.End();
    return;
  }
  for (Transfer::Target& target : transfer.targets) {
    if (StillThere(target.to.cta, target.number)) {
      if (transfer.reduce == AtomicOp::kNone) {
        std::memcpy(target.to.data(), transfer.buffer.data(), transfer.buffer.size());
      } else {
        ReduceBytes(transfer.number, transfer.reduce, target.to.data(), transfer.buffer.data(),
                    transfer.buffer.size(), false);
      }
      if (sim.livelock.auditing())
        sim.livelock.OnUnitWrite(target.to.data(), transfer.buffer.size());
      TellWritten(sim, target.to.cta->shared_object, target.to.offset, transfer.buffer.size());
    }
    if (!StillThere(target.bar.cta, target.bar_number)) continue;
    MbarrierChange change;
    change.tx = -static_cast<std::int64_t>(transfer.bytes);
    Cta& cta = *target.bar.cta;
    if (sim.checker != nullptr && target.done != nullptr)
      sim.checker->MbarrierCompletes(cta, target.bar.offset, target.done);
    const std::string wrong = ChangeMbarrier(sim, cta, target.bar.offset, change, sim.now, sim.now);
    if (!wrong.empty()) {
      FaultLater(sim, cta, transfer.pc, wrong);
      return;
    }
  }
}

// st.async and red.async: a few bytes of a lane to another CTA.
Next Store(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes) {
  const std::uint64_t bytes = std::uint64_t{a.bytes} * a.elements;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    auto transfer = std::make_shared<Transfer>();
    transfer->pc = path.pc;
    transfer->bytes = bytes;
    transfer->reduce = a.reduce;
    transfer->number = a.number;
    if (!AddTargets(sim, path, a, l, bytes, bytes, transfer.get())) return Next::kGone;
    transfer->buffer.resize(bytes);
    for (std::size_t e = 0; e < a.elements; ++e) {
      const std::uint64_t value = LaneValue(path, a.data[e], l, a.bytes);
      std::memcpy(transfer->buffer.data() + e * a.bytes, &value, a.bytes);
    }
    CheckTargets(sim, path, l, *transfer, bytes);
    StartTransfer(sim, transfer, path.clock, path.clock + sim.costs.cluster);
  }
  return Next::kGo;
}

// st.bulk: no copy but a store of each lane, zeros in the shared memory of its own CTA. PTX says
// nothing of alignment. The warp goes on when the banks have taken all bytes.
Next Fill(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes) {
  Cta& cta = *path.warp->cta;
  std::uint64_t offset[kLanes] = {}, size[kLanes] = {}, passes = 0;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    size[l] = LaneValue(path, a.count, l, 8);
    if (size[l] % kFillUnit != 0 || size[l] > kMaxFill) {
      FaultWith(sim, path,
                fmt::format("of {} bytes, which is {}", size[l],
                            size[l] > kMaxFill ? fmt::format("more than {}", kMaxFill)
                                               : fmt::format("not a multiple of {}", kFillUnit)),
                l);
      return Next::kGone;
    }
    SharedPlace to;
    if (!ResolveShared(sim, path, a.dst, l, size[l], 1, true, &to)) return Next::kGone;
    offset[l] = to.offset;
    passes += (size[l] + kBankPass - 1) / kBankPass;
  }
  if (sim.checker != nullptr) sim.checker->Fill(path, lanes, cta.shared_object, offset, size);
  ForLanes(lanes, [&](int l) {
    std::memset(cta.shared.data() + offset[l], 0, size[l]);
    if (sim.livelock.auditing()) sim.livelock.OnUnitWrite(cta.shared.data() + offset[l], size[l]);
    if (sim.errors != nullptr) check::Errors::OnWrite(cta.shared_object, offset[l], size[l]);
    if (size[l] != 0 && !cta.shared_object.watches.empty())
      sim.waiting.NotifyWrite(cta.shared_object, offset[l], size[l], path.clock, path.clock);
  });
  sim.last_change = std::max(sim.last_change, path.clock);
  sim.timer_wakes = 0;
  Sm& sm = cta.launch->device->sms[static_cast<std::size_t>(cta.sm)];
  path.clock = std::max(sm.banks.Take(path.clock, static_cast<std::uint32_t>(passes)),
                        path.clock + static_cast<Time>(passes) * sim.costs.cycle);
  return Next::kGo;
}

Next Copy(Simulator& sim, Path& path, const AsyncOp& a, int lane) {
  Cta& cta = *path.warp->cta;
  Device& device = *cta.launch->device;
  KernelRecord& record = sim.stats.kernels[cta.launch->record];
  const auto size = static_cast<std::uint32_t>(LaneValue(path, a.count, lane, 4));
  if (size % kBulkAlign != 0) {
    FaultWith(sim, path, fmt::format("of {} bytes, which is not a multiple of 16", size), lane);
    return Next::kGone;
  }
  auto transfer = std::make_shared<Transfer>();
  transfer->pc = path.pc;
  transfer->bytes = size;
  transfer->reduce = a.reduce;
  transfer->number = a.number;
  const Time now = path.clock;
  if (a.src.space == ptx::Space::kGlobal) {
    Place from;
    if (!AddTargets(sim, path, a, lane, size, kBulkAlign, transfer.get()) ||
        !ResolveGlobal(sim, path, a.src, lane, size, kBulkAlign, false, &from)) {
      return Next::kGone;
    }
    transfer->buffer.resize(size);
    if (sim.livelock.auditing() && size != 0)
      sim.livelock.OnRead(path, *from.object, from.offset, from.data(), std::min(size, 8u));
    if (sim.errors != nullptr) {
      from.ForParts(
          size, [&](const Object& part, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
            sim.errors->OnCopyRead(path, lane, part, offset, bytes);
          });
    }
    transfer->read = [from, size](std::byte* buffer) {
      from.Read(buffer, size);
      return true;
    };
    from.ForParts(size,
                  [&](Object& part, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
                    CheckSource(sim, path, lane, *transfer, part, offset, bytes);
                  });
    CheckTargets(sim, path, lane, *transfer, size);
    record.bytes_read += size;
    const Time read = now + sim.timing.DelayTo(device, *from.object);
    Time done = read;
    from.ForParts(
        size, [&](Object& part, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
          if (part.device != device.number) record.remote_bytes += bytes;
          done = std::max(done, sim.timing.ChargeLoad(cta, Mover::kTma, part,
                                                      sim.timing.Touch(part, offset, bytes), now));
        });
    StartTransfer(sim, transfer, read, std::max(read, done));
    return Next::kGo;
  }
  SharedPlace from;
  if (!ResolveShared(sim, path, a.src, lane, size, kBulkAlign, true, &from)) return Next::kGone;
  if (sim.errors != nullptr)
    sim.errors->OnCopyRead(path, lane, cta.shared_object, from.offset, size);
  transfer->source = &cta;
  transfer->read = [from, number = cta.number, size](std::byte* buffer) {
    if (from.cta->number != number) return false;  // its threads may have left
    std::memcpy(buffer, from.data(), size);
    return true;
  };
  const Time read = now + SharedTime(sim, size);
  if (a.dst.space != ptx::Space::kGlobal) {
    if (!AddTargets(sim, path, a, lane, size, kBulkAlign, transfer.get())) return Next::kGone;
    transfer->buffer.resize(size);
    CheckSource(sim, path, lane, *transfer, cta.shared_object, from.offset, size);
    CheckTargets(sim, path, lane, *transfer, size);
    StartTransfer(sim, transfer, read, read + sim.costs.cluster);
    return Next::kGo;
  }
  Place to;
  if (!ResolveGlobal(sim, path, a.dst, lane, size, kBulkAlign, true, &to)) return Next::kGone;
  transfer->buffer.resize(size);
  transfer->write = [&sim, to, size, reduce = a.reduce,
                     number = a.number](const std::byte* buffer) {
    to.ForParts(size,
                [&](Object& part, std::uint64_t offset, std::uint64_t at, std::uint64_t bytes) {
                  if (reduce == AtomicOp::kNone) {
                    std::memcpy(part.data + offset, buffer + at, bytes);
                  } else {
                    ReduceBytes(number, reduce, part.data + offset, buffer + at, bytes, true);
                  }
                  TellWritten(sim, part, offset, bytes);
                });
  };
  CheckSource(sim, path, lane, *transfer, cta.shared_object, from.offset, size);
  to.ForParts(size, [&](Object& part, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
    CheckGlobal(sim, path, lane, *transfer, part, offset, bytes);
  });
  record.bytes_written += size;
  Time done = read, acknowledged = read;
  if (to.multicast) {
    record.remote_bytes += size;
    done = ChargeMulticast(sim, cta, to, read, &acknowledged);
  } else {
    to.ForParts(size, [&](Object& part, std::uint64_t offset, std::uint64_t, std::uint64_t bytes) {
      if (part.device != device.number) record.remote_bytes += bytes;
      const Time there = sim.timing.ChargeStore(cta, Mover::kTma, part,
                                                sim.timing.Touch(part, offset, bytes), read);
      done = std::max(done, there);
      acknowledged = std::max(acknowledged, there + sim.timing.AckDelay(device, part));
    });
  }
  cta.store_arrival = std::max(cta.store_arrival, acknowledged);
  JoinGroup(path, lane, read, done);
  StartTransfer(sim, transfer, read, done);
  return Next::kGo;
}

void Commit(Path& path, std::uint32_t lanes) {
  if (path.warp->copies.empty()) path.warp->copies.resize(kLanes);
  ForLanes(lanes, [&](int l) {
    ThreadCopies& copies = path.warp->copies[static_cast<std::size_t>(l)];
    auto& groups = copies.bulk_groups;
    const auto live = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.done > path.clock; });
    groups.erase(groups.begin(), live);
    groups.push_back(std::exchange(copies.bulk_open, {}));
  });
}

}  // namespace

namespace {

using Completion = check::Checker::Completion;

// Bytes of an element of a reduction; 0: it is none.
std::uint32_t ElementOf(const Transfer& transfer) {
  if (transfer.reduce == AtomicOp::kNone) return 0;
  switch (transfer.number) {
    case Number::kF64:
    case Number::kU64:
    case Number::kS64:
      return 8;
    case Number::kF16:
    case Number::kBF16:
    case Number::kU16:
      return 2;
    default:
      return 4;
  }
}

Completion CompletionOf(const Transfer& transfer) {
  if (transfer.targets.empty()) return {Completion::By::kBulkGroup, nullptr, 0};
  const SharedPlace& bar = transfer.targets.front().bar;
  return {Completion::By::kMbarrier, bar.cta, bar.offset};
}

}  // namespace

void CheckSource(Simulator& sim, const Path& path, int lane, const Transfer& transfer,
                 Object& object, std::uint64_t offset, std::uint64_t size) {
  if (sim.checker == nullptr) return;
  sim.checker->CopyReads(path, lane, CompletionOf(transfer), object, offset, size);
}

void CheckTargets(Simulator& sim, const Path& path, int lane, Transfer& transfer,
                  std::uint64_t size) {
  if (sim.checker == nullptr) return;
  for (Transfer::Target& target : transfer.targets) {
    const Completion by{Completion::By::kMbarrier, target.bar.cta, target.bar.offset};
    sim.checker->MbarrierUsed(path, 1u << lane, *target.bar.cta, target.bar.offset, false);
    sim.checker->CopyWrites(path, lane, by, target.to.cta->shared_object, target.to.offset, size,
                            ElementOf(transfer));
    target.done = sim.checker->CopyDone(path, lane, by);
  }
  // Its sources are read when the first of them is complete.
}

void CheckGlobal(Simulator& sim, const Path& path, int lane, const Transfer& transfer,
                 Object& object, std::uint64_t offset, std::uint64_t size) {
  if (sim.checker == nullptr) return;
  sim.checker->CopyWrites(path, lane, CompletionOf(transfer), object, offset, size,
                          ElementOf(transfer));
}

Time ChargeMulticast(Simulator& sim, const Cta& cta, const Place& to, Time at, Time* acknowledged) {
  Time done = at;
  const std::vector<Place::Part>& parts = *to.parts;
  for (std::size_t first = 0; first < parts.size();) {
    std::vector<Replica> replicas;
    std::size_t next = first;
    for (; next < parts.size() && parts[next].at == parts[first].at; ++next) {
      replicas.push_back({parts[next].object, parts[next].offset});
    }
    const Reach reach =
        sim.timing.Touch(*parts[first].object, parts[first].offset, parts[first].size);
    const Time there = sim.timing.ChargeMulticastStore(cta, replicas, reach, at);
    done = std::max(done, there);
    for (const Replica& replica : replicas) {
      *acknowledged = std::max(*acknowledged,
                               there + sim.timing.AckDelay(*cta.launch->device, *replica.object));
    }
    first = next;
  }
  return done;
}

namespace {

void Read(Transfer& transfer) {
  if (!transfer.read) return;
  transfer.lost = !transfer.read(transfer.buffer.data());
  transfer.read = nullptr;
}

}  // namespace

void ReadOpenCopies(Cta& cta) {
  for (const std::weak_ptr<Transfer>& open : std::exchange(cta.open_copies, {})) {
    if (const auto transfer = open.lock()) Read(*transfer);
  }
}

void StartTransfer(Simulator& sim, const std::shared_ptr<Transfer>& transfer, Time read,
                   Time done) {
  constexpr std::size_t kTidy = 64;
  transfer->sim = &sim;
  if (transfer->source != nullptr) {
    auto& open = transfer->source->open_copies;
    if (open.size() % kTidy == kTidy - 1) {
      std::erase_if(open, [](const std::weak_ptr<Transfer>& old) {
        const auto known = old.lock();
        return known == nullptr || !known->read;
      });
    }
    open.push_back(transfer);
  }
  if (transfer->read) sim.schedule(read, [transfer] { Read(*transfer); });
  if (!transfer->targets.empty() && sim.now >= sim.perturbed_from) {
    const SharedPlace& to = transfer->targets.front().to;
    done += to.cta->stall.At(transfer->pc, 0);
  }
  if (!transfer->targets.empty() && sim.checker != nullptr && sim.delays.on()) {
    const Cta& cta = *transfer->targets.front().to.cta;
    done += sim.delays.At({Delays::Kind::kTransfer, cta.launch->code.get(), transfer->pc,
                           cta.launch->device->number, cta.number},
                          sim.now, sim.stats.kernels[cta.launch->record].start);
  }
  sim.schedule(done, [transfer] { Deliver(*transfer); });
}

bool AddTargets(Simulator& sim, const Path& path, const AsyncOp& a, int lane, std::uint64_t bytes,
                std::uint64_t align, Transfer* transfer) {
  Transfer::Target target;
  if (!ResolveShared(sim, path, a.dst, lane, bytes, align, false, &target.to) ||
      !ResolveShared(sim, path, a.bar, lane, 8, 8, false, &target.bar)) {
    return false;
  }
  const auto add = [&](Cta* to, Cta* bar) {
    target.to.cta = to;
    target.bar.cta = bar;
    target.number = to->number;
    target.bar_number = bar->number;
    transfer->targets.push_back(target);
  };
  if (a.multicast == kNoSlot) {
    add(target.to.cta, target.bar.cta);
    return true;
  }
  // The same offsets in each CTA of the mask.
  Cta& cta = *path.warp->cta;
  for (std::uint64_t mask = LaneValue(path, a.multicast, lane, 4) & 0xffff; mask != 0;
       mask &= mask - 1) {
    const auto rank = static_cast<std::uint64_t>(std::countr_zero(mask));
    std::uint32_t offset = 0;
    Cta* to = rank == cta.rank ? &cta : FindCta(cta, (rank + 1) << kRankShift, &offset);
    if (to == nullptr) {
      FaultWith(sim, path, fmt::format("to block {} of the cluster, which does not exist", rank),
                lane);
      return false;
    }
    add(to, to);
  }
  return true;
}

void JoinGroup(Path& path, int lane, Time read, Time done) {
  if (path.warp->copies.empty()) path.warp->copies.resize(kLanes);
  ThreadCopies::Group& open = path.warp->copies[static_cast<std::size_t>(lane)].bulk_open;
  open.read = std::max(open.read, read);
  open.done = std::max(open.done, done);
}

Time SharedTime(const Simulator& sim, std::uint64_t bytes) {
  const auto rate = static_cast<std::uint64_t>(sim.profile.bandwidth.shared_bytes_per_cycle);
  return sim.costs.shared + static_cast<Time>((bytes + rate - 1) / rate) * sim.costs.cycle;
}

void TellWritten(Simulator& sim, Object& object, std::uint64_t offset, std::uint64_t size) {
  sim.last_change = std::max(sim.last_change, sim.now);
  sim.timer_wakes = 0;
  if (sim.errors != nullptr) check::Errors::OnWrite(object, offset, size);
  if (size != 0 && !object.watches.empty())
    sim.waiting.NotifyWrite(object, offset, size, sim.now, sim.now);
}

Next ExecuteBulk(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes) {
  if (a.kind == AsyncOpKind::kStore) return Store(sim, path, a, lanes);
  if (a.kind == AsyncOpKind::kFill) return Fill(sim, path, a, lanes);
  if (a.kind == AsyncOpKind::kBulkCommit) {
    if (sim.checker != nullptr) sim.checker->GroupCommits(path, lanes, true);
    Commit(path, lanes);
    return Next::kGo;
  }
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const Next next = Copy(sim, path, a, std::countr_zero(left));
    if (next != Next::kGo) return next;
  }
  return Next::kGo;
}

}  // namespace allranks::node
