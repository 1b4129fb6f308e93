// Uninitialised reads, faults as findings, use after free, leaks; see errors.h.
#include <fmt/format.h>

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/check/host_remedy.h"
#include "node/check/remedy.h"
#include "node/code/lanes.h"
#include "node/state/lane_values.h"

namespace allranks::node::check {
namespace {

constexpr std::size_t kMaxGone = 1024;
constexpr std::size_t kMaxOrphans = 1 << 16;
constexpr std::uint64_t kFar = std::uint64_t{1} << 32;  // what is near is worth being named
constexpr std::size_t kMaxShown = 8;                    // allocations that a leak names

bool Reads(const MemoryOp& m) {
  if (m.kind == MemoryOpKind::kStore) return false;
  // What an exchange finds does not matter to whom does not take it.
  return m.atomic != AtomicOp::kExch || m.data[0] != kNoSlot;
}

bool Writes(const MemoryOp& m) { return m.kind != MemoryOpKind::kLoad; }

const char* NameOf(const MemoryOp& m) {
  switch (m.kind) {
    case MemoryOpKind::kLoad:
      return "load";
    case MemoryOpKind::kStore:
      return "store";
    default:
      return "atomic";
  }
}

// The range that all lanes are in.
void RangeOf(const Access& a, std::uint64_t* begin, std::uint64_t* size) {
  if (a.dense) {
    *begin = a.offset[0];
    *size = std::uint64_t{kLanes} * a.bytes;
    return;
  }
  std::uint64_t low = ~std::uint64_t{0}, high = 0;
  ForLanes(a.lanes, [&](int l) {
    low = std::min(low, a.offset[l]);
    high = std::max(high, a.offset[l]);
  });
  *begin = low;
  *size = high - low + a.bytes;
}

std::string Place(Address address, Address base, std::uint64_t size, const std::string& name) {
  if (address < base) return fmt::format("{} bytes before {}", base - address, name);
  const std::uint64_t end = base + size;
  if (address >= end)
    return fmt::format("{} bytes after {} of {} bytes", address - end, name, size);
  return fmt::format("offset {} of {} ({} bytes)", address - base, name, size);
}

}  // namespace

void Errors::Watch(const std::shared_ptr<Object>& object) {
  if (object->kind != Object::Kind::kDevice) return;
  object->initialised = Initialised::Make(object->size);
  // Those that are gone are dropped when the list would grow, so it stays within twice the living.
  if (watched_.size() == watched_.capacity()) {
    std::erase_if(watched_, [](const std::weak_ptr<Object>& known) { return known.expired(); });
    watched_.reserve(2 * watched_.size() + 16);
  }
  watched_.push_back(object);
}

void Errors::Forget() {
  for (const std::weak_ptr<Object>& known : watched_) {
    if (const std::shared_ptr<Object> object = known.lock()) object->initialised = nullptr;
  }
  watched_.clear();
  orphans_.clear();
  polls_.clear();
  passed_by_.clear();
  taints_.clear();
  used_.clear();
  stores_of_.clear();
}

void Errors::TellCopy(const Path& path, int lane, const Object& object, std::uint64_t offset,
                      std::uint64_t size) {
  FindingAccess access = Show(path, lane, path.pc, "copy");
  ShowObject(state_, object, &access);
  access.offset = offset;
  access.bytes = static_cast<std::uint32_t>(size);
  Say(Finding::Kind::kUninitialised,
      fmt::format("{} reads {} bytes of {} that were never written", access.form, size,
                  NameIn(state_, object)),
      "write or clear the memory before the copy", {access}, path.pc);
}

void Errors::CheckInitialised(const Access& a) {
  constexpr std::uint64_t kNear = 1024;  // a range worth a look before its lanes
  Initialised& known = *a.object->initialised;
  std::uint64_t begin = 0, size = 0;
  RangeOf(a, &begin, &size);
  if (Reads(*a.op) && !((a.dense || size <= kNear) && known.All(begin, size))) {
    std::uint32_t unwritten = 0;
    ForLanes(a.lanes, [&](int l) {
      if (!known.None(a.offset[l], a.bytes)) return;
      unwritten |= 1u << l;
    });
    // CUB's merges look at the element behind the last one in shared memory, and do not use it:
    // there all lanes of an access must find nothing, or the value must be used.
    const bool shared = a.object->kind == Object::Kind::kShared;
    if (shared && unwritten != 0 && unwritten != a.lanes) Taints(a, unwritten);
    if (shared ? unwritten == a.lanes : unwritten != 0) {
      const int lane = std::countr_zero(unwritten);
      FindingAccess access = Show(*a.path, lane, a.path->pc, NameOf(*a.op));
      ShowObject(state_, *a.object, &access);
      access.offset = a.offset[lane];
      access.bytes = a.bytes;
      access.write = Writes(*a.op);
      Say(Finding::Kind::kUninitialised,
          fmt::format("{} reads {} bytes of {} that were never written", access.form, a.bytes,
                      access.object),
          shared ? "write or clear the shared memory and synchronise before the read"
                 : "write the memory or clear it with cudaMemset before the read",
          {access}, a.path->pc);
      // Once is enough of these bytes.
      ForLanes(unwritten, [&](int l) { known.Write(a.offset[l], a.bytes); });
    }
  }
  if (Writes(*a.op)) {
    if (a.dense) {
      known.Write(begin, size);
    } else {
      ForLanes(a.lanes, [&](int l) { known.Write(a.offset[l], a.bytes); });
    }
  }
  if (known.complete()) a.object->initialised = nullptr;
}

void Errors::CheckOrphan(const Access& a) {
  if (a.object->id == 0 || !orphans_.contains(a.object->id)) return;
  const int lane = std::countr_zero(a.lanes);
  FindingAccess access = Show(*a.path, lane, a.path->pc, NameOf(*a.op));
  ShowObject(state_, *a.object, &access);
  access.offset = a.offset[lane];
  access.bytes = a.bytes;
  access.write = Writes(*a.op);
  Say(Finding::Kind::kUseAfterFree,
      fmt::format(
          "{} accesses {}, which its owner has freed; this process has opened it by a handle",
          access.form, access.object),
      "close the handles in all processes, and notify the owner, before it frees the memory",
      {access}, a.path->pc);
}

void Errors::OnUnmap(const Process& process, const Mapping& mapping) {
  const Object& object = *mapping.object;
  Gone gone;
  gone.process = process.id;
  gone.base = mapping.base;
  gone.size = mapping.Room();
  gone.name = NameIn(state_, object);
  gone.how = mapping.ipc           ? Gone::How::kClosed
             : mapping.handle != 0 ? Gone::How::kUnmapped
                                   : Gone::How::kFreed;
  gone.time = state_.now;
  if (state_.checker != nullptr) {
    gone.site = state_.checker->caller;
    gone.stream = state_.checker->freeing;
  }
  if (gone_.size() == kMaxGone) gone_.pop_front();
  gone_.push_back(std::move(gone));
  // mappings counts this one, too.
  if (mapping.ipc || mapping.handle != 0 || object.mappings <= 1 || object.id == 0) return;
  if (orphans_.size() < kMaxOrphans) orphans_.insert(object.id);
}

Finding::Kind Errors::Classify(ProcessId process, Address address, std::string* text,
                               HostSite* freed, std::uint64_t* stream) const {
  for (auto gone = gone_.rbegin(); gone != gone_.rend(); ++gone) {
    if (gone->process != process || address - gone->base >= gone->size) continue;
    const std::string where = Place(address, gone->base, gone->size, gone->name);
    const double us = static_cast<double>(gone->time) / 1e6;
    if (state_.checker != nullptr) *freed = state_.checker->SiteOf(gone->site);
    *stream = gone->stream;
    if (gone->how == Gone::How::kFreed) {
      *text = fmt::format("{}, which was freed at {:.3f} us", where, us);
      return Finding::Kind::kUseAfterFree;
    }
    *text = fmt::format("{}, which was {} at {:.3f} us", where,
                        gone->how == Gone::How::kClosed ? "closed" : "unmapped", us);
    return Finding::Kind::kNotMapped;
  }
  const AddressTable& table = state_.ProcessOf(process).table;
  const Mapping* near = table.Nearest(address);
  if (near == nullptr) return Finding::Kind::kOutOfBounds;
  const std::uint64_t end = near->base + near->size;
  if ((address < near->base ? near->base - address : address - end) >= kFar) {
    return Finding::Kind::kOutOfBounds;
  }
  *text = Place(address, near->base, near->Room(), NameIn(state_, *near->object));
  // Beside memory that was mapped by hand, some is not mapped yet.
  return near->handle != 0 ? Finding::Kind::kNotMapped : Finding::Kind::kOutOfBounds;
}

void Errors::OnFault(const Path& path, Status status, const std::string& what, const FaultAt& at) {
  const Code& code = *path.warp->cta->launch->code;
  const Op& op = code.ops[path.pc];
  const int lane = at.lane >= 0 ? at.lane : path.mask != 0 ? std::countr_zero(path.mask) : 0;
  FindingAccess access = Show(path, lane, path.pc, "access");
  access.bytes = at.bytes;
  if (op.kind == OpKind::kMemory) {
    const MemoryOp& m = code.memory[op.aux];
    access.what = NameOf(m);
    access.write = Writes(m);
    if (access.bytes == 0) access.bytes = std::uint32_t{m.bytes} * m.count;
  }
  if (at.object != nullptr) {
    ShowObject(state_, *at.object, &access);
    access.offset = at.offset;
  }
  Finding::Kind kind = Finding::Kind::kOutOfBounds;
  std::string text = what, advice;
  std::vector<Edit> edits;
  if (status == Status::kMisalignedAddress) {
    kind = Finding::Kind::kMisaligned;
    advice = "align the access to its size; align a vector to the size of all its elements";
  } else if (status == Status::kIllegalAddress) {
    switch (at.cause) {
      case FaultAt::Cause::kUnmapped: {
        std::string near;
        std::uint64_t stream = 0;
        const Launch& launch = *path.warp->cta->launch;
        kind = Classify(launch.process, at.address, &near, &access.freed, &stream);
        text = fmt::format("{} accesses address 0x{:x}", access.form, at.address);
        if (!near.empty()) text += ": " + near;
        if (kind == Finding::Kind::kUseAfterFree) {
          advice = "free the memory after the last kernel that uses it has completed";
          Finding remedy;
          OrderFree(
              access,
              stream != 0 && launch.clocks != nullptr && stream == launch.clocks->info->stream,
              WaitsForFlags(code), &remedy);
          if (!remedy.advice.empty()) advice = remedy.advice;
          edits = std::move(remedy.edits);
        } else if (kind == Finding::Kind::kNotMapped) {
          advice = "keep the mapping open as long as kernels use it";
        }
        break;
      }
      case FaultAt::Cause::kNoAccess:
        kind = Finding::Kind::kNotMapped;
        advice = "enable peer access, or grant it by cuMemSetAccess or the pool, before the launch";
        if (at.object != nullptr && at.object->device >= 0) {
          const Launch& launch = *path.warp->cta->launch;
          const Process& process = state_.ProcessOf(launch.process);
          const bool pool = what.find("without the pool's access") != std::string::npos;
          Finding remedy;
          if (pool || what.find("without peer access") != std::string::npos)
            GrantAccess(access, state_.OrdinalOf(process, launch.device->number),
                        state_.OrdinalOf(process, at.object->device), pool, &remedy);
          if (!remedy.advice.empty()) advice = remedy.advice;
          edits = std::move(remedy.edits);
        }
        break;
      case FaultAt::Cause::kBeyond:
        if (at.object != nullptr && at.object->size != 0) {
          const std::uint64_t end = at.offset + access.bytes;
          text = fmt::format(
              "{} accesses {} bytes at offset {} of {}, {} bytes beyond its end "
              "({} bytes)",
              access.form, access.bytes, at.offset, access.object,
              end > at.object->size ? end - at.object->size : 0, at.object->size);
        }
        break;
      case FaultAt::Cause::kOther:
        if (what.find("multicast address") != std::string::npos) kind = Finding::Kind::kNotMapped;
        break;
    }
  } else if (status == Status::kIllegalInstruction && op.kind == OpKind::kBarrier) {
    kind = Finding::Kind::kBarrier;
    access.what = "barrier";
  } else if (status == Status::kIllegalInstruction && op.kind == OpKind::kAsync &&
             what.find("mbarrier") != std::string::npos) {
    kind = Finding::Kind::kMbarrier;
    access.what = "mbarrier";
    advice =
        "initialise the mbarrier with the number of arrivals of one phase, and let no thread "
        "arrive for the next phase before this one is complete";
  } else {
    return;  // a trap, an assertion, a dead link: no error of memory
  }
  Say(kind, std::move(text), std::move(advice), {access}, path.pc, std::move(edits));
}

void Errors::CheckArray(const Access& access) {
  if (access.object != &access.path->warp->cta->shared_object) return;
  const auto look = [&](int l, std::uint64_t offset) {
    OnArray(*access.path, l, access.op->array, offset, access.bytes);
  };
  if (access.dense) {
    look(0, access.offset[0]);
    look(kLanes - 1, access.offset[0] + std::uint64_t{kLanes - 1} * access.bytes);
    return;
  }
  ForLanes(access.lanes, [&](int l) { look(l, access.offset[l]); });
}

void Errors::TellArray(const Path& path, int lane, int array, std::uint64_t offset,
                       std::uint64_t size) {
  const Code& code = *path.warp->cta->launch->code;
  const SharedArray& of = code.arrays[static_cast<std::size_t>(array)];
  const auto name = [](const SharedArray& known) {
    std::unique_ptr<char, decltype(&std::free)> plain(
        abi::__cxa_demangle(known.name.c_str(), nullptr, nullptr, nullptr), &std::free);
    const std::string whole = plain != nullptr ? plain.get() : known.name;
    const std::size_t last = whole.rfind("::");
    return last == std::string::npos ? whole : whole.substr(last + 2);
  };
  const SharedArray* in = nullptr;
  for (const SharedArray& other : code.arrays) {
    if (&other != &of && offset < other.end && offset + size > other.begin) in = &other;
  }
  FindingAccess access = Show(path, lane, path.pc, "access");
  access.object = "shared memory";
  access.offset = offset;
  access.bytes = static_cast<std::uint32_t>(size);
  const std::string where =
      offset < of.begin
          ? fmt::format("{} bytes before the beginning of {}", of.begin - offset, name(of))
          : fmt::format("{} bytes beyond the end of {} ({} bytes)", offset + size - of.end,
                        name(of), of.end - of.begin);
  Say(Finding::Kind::kOutOfBounds,
      fmt::format("{} of {} bytes reaches {} in shared memory{}", access.form, size, where,
                  in != nullptr ? ", and into " + name(*in) : ""),
      fmt::format("keep the index of {} within its bounds, or make it larger", name(of)), {access},
      path.pc);
}

void Errors::OnMulticast(const Path& path, std::uint32_t lanes, const Object& object,
                         std::uint64_t offset) {
  FindingAccess access = Show(path, std::countr_zero(lanes), path.pc, "store");
  ShowObject(state_, object, &access);
  access.offset = offset;
  access.write = true;
  Say(Finding::Kind::kNotMapped,
      fmt::format("{} accesses a multicast address, which only multimem instructions may access",
                  access.form),
      "use multimem.st, multimem.red or multimem.ld_reduce, or the address at which the memory "
      "itself is mapped",
      {access}, path.pc);
}

void Errors::OnLeft(const Process& process, std::span<const Mapping* const> mappings) {
  struct Sum {
    std::uint64_t count = 0, bytes = 0;
    std::string names;
  };
  std::map<std::pair<std::string, int>, Sum> sums;  // by kind and device
  for (const Mapping* mapping : mappings) {
    const Object& object = *mapping->object;
    const char* kind = mapping->handle != 0                    ? "mapped by cuMemMap"
                       : object.kind == Object::Kind::kPinned  ? "pinned"
                       : object.kind == Object::Kind::kManaged ? "managed"
                                                               : "device";
    Sum& sum = sums[{kind, object.HostVisible() ? -1 : object.device}];
    if (sum.count < kMaxShown) {
      sum.names += fmt::format("{}{} ({} bytes)", sum.count == 0 ? "" : ", ",
                               NameIn(state_, object), mapping->Room());
    } else if (sum.count == kMaxShown) {
      sum.names += ", ...";
    }
    ++sum.count;
    sum.bytes += mapping->Room();
  }
  for (auto& [key, sum] : sums) {
    FindingAccess access;
    access.what = "allocation";
    access.rank = process.rank;
    access.alone = state_.Alone();
    access.device = key.second;
    access.object = std::move(sum.names);
    access.time = state_.now;
    Finding finding;
    finding.kind = Finding::Kind::kLeak;
    finding.text = fmt::format("{} ends with {} bytes of {} memory in {} allocation{}",
                               access.alone ? "the program" : fmt::format("rank {}", process.rank),
                               sum.bytes, key.first, sum.count, sum.count == 1 ? "" : "s");
    finding.accesses.push_back(std::move(access));
    finding.count = sum.count;
    tell_(std::move(finding), fmt::format("leak {} {} {}", process.id, key.first, key.second));
  }
}

}  // namespace allranks::node::check
