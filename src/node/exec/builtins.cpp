// Functions of the device runtime that the node has instead of the program: printf, assert, malloc,
// free (CallOp::Builtin). Arguments and results are bytes of the caller's frame, as in any call.
#include <algorithm>
#include <cstring>
#include <optional>

#include "node/check/checker.h"
#include "node/code/lanes.h"
#include "node/exec/device_printf.h"
#include "node/exec/simulator.h"
#include "node/state/device_heap.h"

namespace allranks::node {
namespace {

// What the functions cost: hardware takes microseconds for them; programs that print or allocate do
// not ask how many.
constexpr std::uint32_t kCycles = 500;

// One lane's view of its frame and memory.
class LaneView {
 public:
  LaneView(Simulator& sim, const Path& path, const CallOp& call, int lane)
      : sim_(sim), path_(path), call_(call), lane_(lane) {}

  // An argument of 4 or 8 bytes; 0 if the call has none such.
  std::uint64_t Argument(std::size_t i) const {
    std::uint64_t value = 0;
    if (i >= call_.arguments.size()) return 0;
    const FramePlace& place = call_.arguments[i];
    std::memcpy(&value, Frame() + place.offset, std::min<std::size_t>(place.size, 8));
    return value;
  }
  void Result(std::uint64_t value) const {
    if (call_.results.empty()) return;
    const FramePlace& place = call_.results[0];
    std::memcpy(Frame() + place.offset, &value, std::min<std::size_t>(place.size, 8));
  }

  // Bytes at a generic address; false if they are not this lane's to read.
  bool Read(Address address, void* to, std::size_t size) const {
    const std::byte* from = nullptr;
    std::uint64_t room = 0;
    Warp& warp = *path_.warp;
    if (address - kSharedWindow < kWindowSize) {
      const std::uint64_t offset = address - kSharedWindow;
      if (offset < warp.cta->shared.size()) {
        from = warp.cta->shared.data() + offset;
        room = warp.cta->shared.size() - offset;
      }
    } else if (address - kLocalWindow < kWindowSize) {
      const std::uint64_t offset = address - kLocalWindow;
      if (offset < warp.local_bytes) {
        from = warp.local.data() + static_cast<std::size_t>(lane_) * warp.local_bytes + offset;
        room = warp.local_bytes - offset;
      }
    } else if (address - kParamWindow < kWindowSize) {
      const auto& params = warp.cta->launch->params;
      const std::uint64_t offset = address - kParamWindow;
      if (offset < params.size()) {
        from = params.data() + offset;
        room = params.size() - offset;
      }
    } else {
      const Process& process = sim_.ProcessOf(warp.cta->launch->process);
      const Mapping* mapping = process.table.Find(address);
      if (mapping != nullptr && mapping->multicast == nullptr &&
          sim_.MayAccess(process, *mapping, warp.cta->launch->device->number, false)) {
        const std::uint64_t within = address - mapping->base;
        if (within < mapping->Room()) {
          from = mapping->object->data + mapping->offset + within;
          room = mapping->Room() - within;
        }
      }
    }
    if (from == nullptr || room < size) return false;
    std::memcpy(to, from, size);
    return true;
  }
  std::optional<std::string> String(Address address) const {
    std::string text;
    for (char c = 0; text.size() < kMaxPrintf; text += c) {
      if (!Read(address + text.size(), &c, 1)) return std::nullopt;
      if (c == 0) break;
    }
    return text;
  }

 private:
  std::byte* Frame() const {
    Warp& warp = *path_.warp;
    return warp.local.data() + static_cast<std::size_t>(lane_) * warp.local_bytes +
           path_.frame.local;
  }

  Simulator& sim_;
  const Path& path_;
  const CallOp& call_;
  int lane_;
};

// vprintf(format, arguments) → how many arguments were used
bool Printf(Simulator& sim, Path& path, const LaneView& lane) {
  const Address arguments = lane.Argument(1);
  const auto format = lane.String(lane.Argument(0));
  if (lane.Argument(0) == 0) {
    lane.Result(static_cast<std::uint64_t>(-1));
    return true;
  }
  PrintfSource source;
  source.argument = [&](std::uint64_t offset, int size) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    if (!lane.Read(arguments + offset, &value, static_cast<std::size_t>(size))) return std::nullopt;
    return value;
  };
  source.string = [&](std::uint64_t address) { return lane.String(address); };
  PrintfResult result;
  if (format) result = FormatPrintf(*format, source);
  if (!format || !result.ok) {
    sim.Fault(path, Status::kIllegalAddress, "printf of memory that cannot be read");
    return false;
  }
  lane.Result(static_cast<std::uint64_t>(result.arguments));
  if (sim.on_text) sim.on_text(*path.warp->cta->launch, false, std::move(result.text));
  return true;
}

// __assertfail(message, file, line, function, size of a character): as CUDA prints it, one line per
// thread.
void AssertFail(Simulator& sim, const Path& path, const LaneView& lane, int number) {
  const Cta& cta = *path.warp->cta;
  const Dim3& block = cta.launch->request.block;
  const std::uint32_t thread = path.warp->id * kLanes + static_cast<std::uint32_t>(number);
  const auto text = [&](std::size_t i) {
    return lane.String(lane.Argument(i)).value_or("(unreadable)");
  };
  std::string line = fmt::format(
      "{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.\n", text(1),
      static_cast<std::uint32_t>(lane.Argument(2)), text(3), cta.index.x, cta.index.y, cta.index.z,
      thread % block.x, thread / block.x % block.y, thread / (block.x * block.y), text(0));
  if (sim.on_text) sim.on_text(*cta.launch, true, std::move(line));
}

}  // namespace

bool Simulator::CallBuiltin(Path& path, const CallOp& call, std::uint32_t lanes) {
  using Builtin = CallOp::Builtin;
  Launch& launch = *path.warp->cta->launch;
  path.clock += costs.cycle * kCycles;
  bool ok = true;
  if (call.builtin == Builtin::kAssertFail) {
    ForLanes(lanes, [&](int l) { AssertFail(*this, path, LaneView(*this, path, call, l), l); });
    Fault(path, Status::kAssert, "assertion failed");
    return false;
  }
  if (call.builtin == Builtin::kPrintf) {
    ForLanes(lanes, [&](int l) { ok = ok && Printf(*this, path, LaneView(*this, path, call, l)); });
    return ok;
  }
  const Mapping* mapping = nullptr;
  DeviceHeap* heap = device_heap ? device_heap(launch, &mapping) : nullptr;
  ForLanes(lanes, [&](int l) {
    if (!ok) return;
    const LaneView lane(*this, path, call, l);
    const std::uint64_t argument = lane.Argument(0);
    if (call.builtin == Builtin::kMalloc) {
      const std::uint64_t offset = heap == nullptr ? 0 : heap->Take(argument);
      if (offset != 0) std::memset(mapping->object->data + offset, kPoison, argument);
      // Who had it before is nobody's concern: free and malloc order their callers.
      if (offset != 0 && checker != nullptr)
        checker->Direct(nullptr, *mapping->object, offset, argument, true);
      lane.Result(offset == 0 ? 0 : mapping->base + offset);
    } else if (argument != 0) {
      ok = heap != nullptr && heap->Return(argument - mapping->base);
      if (!ok) {
        Fault(path, Status::kLaunchFailed,
              fmt::format("free of 0x{:x}, which malloc did not return or which is already free",
                          argument));
      }
    }
  });
  return ok;
}

}  // namespace allranks::node
