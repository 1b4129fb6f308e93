// Calls and returns of device functions, and griddepcontrol.
//
// A call gives the path a new frame on its warp's stacks (warp.h) and makes a join behind itself,
// at which all lanes that took part meet when they have returned. Arguments and results are bytes
// of local memory: the caller's `.param` variables, copied into and out of the callee's frame.
#include <algorithm>
#include <cstring>

#include "node/check/checker.h"
#include "node/code/lanes.h"
#include "node/exec/simulator.h"
#include "node/exec/wait.h"

namespace allranks::node {
namespace {

constexpr std::uint32_t kMaxDepth = 8192;
constexpr std::uint64_t kMaxStackBytes = std::uint64_t{4} << 30;  // of all warps together
constexpr std::uint32_t kMaxLocalStack = 512 * 1024;              // per thread, as on hardware

// Copies what both sides have in common, for each lane.
void CopyPlaces(Warp& warp, std::uint32_t lanes, std::uint32_t to_frame,
                const std::vector<FramePlace>& to, std::uint32_t from_frame,
                const std::vector<FramePlace>& from) {
  for (std::size_t i = 0; i < std::min(to.size(), from.size()); ++i) {
    const std::size_t size = std::min(to[i].size, from[i].size);
    ForLanes(lanes, [&](int l) {
      std::byte* base = warp.local.data() + static_cast<std::size_t>(l) * warp.local_bytes;
      std::memcpy(base + to_frame + to[i].offset, base + from_frame + from[i].offset, size);
    });
  }
}

// The registers of all frames into a larger stack. Before the first call there is only the frame of
// the kernel, of which it has far more than it uses if functions are called by pointer.
void CopyRegisters(const Warp& warp, std::byte* to) {
  const auto copy = [&](std::uint32_t first, std::uint32_t slots) {
    std::memcpy(to + std::size_t{first} * kSlotBytes,
                warp.registers + std::size_t{first} * kSlotBytes, std::size_t{slots} * kSlotBytes);
  };
  const Code& code = *warp.cta->launch->code;
  if (!warp.stack.empty() || code.reads_unset) return copy(0, warp.slots);
  const FunctionCode& kernel = code.functions[0];
  copy(0, kernel.wide_used);
  copy(kernel.wide_slots, kernel.narrow_used);
}

}  // namespace

bool Simulator::GrowStacks(Warp& warp, const Frame& frame, const FunctionCode& function) {
  const std::uint32_t slots = frame.slots + function.slots;
  const std::uint32_t predicates = frame.predicates + function.predicates;
  const std::uint32_t local = frame.local + function.local_bytes;
  if (local > kMaxLocalStack) return false;
  if (slots > warp.slots || predicates > warp.predicate_count) {
    const std::uint32_t new_slots = std::max(slots, warp.slots * 2);
    const std::uint32_t new_predicates =
        (std::max(predicates, warp.predicate_count * 2) + 15) / 16 * 16;
    // Ready times are also looked up by predicate numbers (residency.cpp, ReadyTimes).
    const std::size_t times = std::size_t{new_slots} + new_predicates + 8;
    const std::size_t bytes = std::size_t{new_slots} * kSlotBytes + times * sizeof(Time) +
                              new_predicates * sizeof(std::uint32_t) + 64;
    if (stack_bytes + bytes - warp.stack.size() > kMaxStackBytes) return false;
    stack_bytes += bytes - warp.stack.size();
    ZeroPages stack(bytes);
    const auto at = reinterpret_cast<std::uintptr_t>(stack.data());
    std::byte* registers = stack.data() + ((at + 63) / 64 * 64 - at);
    auto* ready = reinterpret_cast<Time*>(registers + std::size_t{new_slots} * kSlotBytes);
    auto* masks = reinterpret_cast<std::uint32_t*>(ready + times);
    CopyRegisters(warp, registers);
    std::memcpy(ready, warp.ready, warp.slots * sizeof(Time));
    std::memcpy(masks, warp.predicates, warp.predicate_count * sizeof(std::uint32_t));
    warp.stack = std::move(stack);
    warp.registers = registers;
    warp.ready = ready;
    warp.predicates = masks;
    warp.slots = new_slots;
    warp.predicate_count = new_predicates;
  }
  if (local > warp.local_bytes) {
    const std::uint32_t bytes = std::min(kMaxLocalStack, std::max(local, warp.local_bytes * 2));
    const std::uint64_t more = std::uint64_t{bytes - warp.local_bytes} * kLanes;
    if (stack_bytes + more > kMaxStackBytes) return false;
    stack_bytes += more;
    warp.grown_local += more;
    std::vector<std::byte> grown(std::size_t{bytes} * kLanes, std::byte{kPoison});
    for (std::size_t l = 0; l < kLanes; ++l) {
      std::copy_n(warp.local.data() + l * warp.local_bytes, warp.local_bytes,
                  grown.data() + l * bytes);
    }
    warp.local = std::move(grown);
    warp.local_bytes = bytes;
  }
  return true;
}

bool Simulator::Call(Path& path, const CallOp& call, std::uint32_t index) {
  Warp& warp = *path.warp;
  const Code& code = *warp.cta->launch->code;
  const FunctionCode& caller = code.functions[path.frame.function];
  const FunctionCode& function = code.functions[index];
  Frame frame;
  frame.slots = (path.frame.slots + caller.slots + 1) / 2 * 2;
  frame.predicates = path.frame.predicates + caller.predicates;
  frame.local = path.frame.local + (caller.local_bytes + 15) / 16 * 16;
  frame.function = index;
  frame.depth = path.frame.depth + 1;
  if (frame.depth > kMaxDepth || !GrowStacks(warp, frame, function)) {
    Fault(path, Status::kLaunchFailed,
          "stack overflow in a call of " + function.name + " at depth " +
              std::to_string(frame.depth));
    return false;
  }
  CopyPlaces(warp, path.mask, frame.local, function.params, path.frame.local, call.arguments);
  path.spins.clear();
  path.join = NewJoin(path, path.pc + 1, path.mask);
  frame.call = path.join;
  path.frame = frame;
  path.pc = function.begin;
  return true;
}

bool Simulator::Return(Path& path, std::uint32_t lanes) {
  Warp& warp = *path.warp;
  const Code& code = *warp.cta->launch->code;
  const std::int32_t number = path.frame.call;
  // Nobody waits any longer for these lanes where others of the function meet.
  for (std::int32_t j = path.join; j != number && j >= 0;) {
    Join& inner = warp.joins[static_cast<std::size_t>(j)];
    inner.expected &= ~lanes;
    j = inner.outer;
  }
  Join& join = warp.joins[static_cast<std::size_t>(number)];
  const CallOp& call = code.calls[code.ops[join.pc - 1].aux];
  CopyPlaces(warp, lanes, join.frame.local, call.results, path.frame.local,
             code.functions[path.frame.function].results);
  path.spins.clear();
  const bool all = lanes == path.mask;
  if (all) {
    path.pc = join.pc;
    path.frame = join.frame;
    path.join = number;
  } else {
    join.arrived |= lanes;
    join.latest = std::max(join.latest, path.clock);
    path.mask &= ~lanes;
    ++path.pc;
  }
  ReleaseJoins(warp);
  return all;
}

bool Simulator::WaitForGrid(Path& path) {
  Launch& launch = *path.warp->cta->launch;
  if (launch.primary_over) {
    if (checker != nullptr) checker->GridWaited(path);
    return false;
  }
  path.state = Path::State::kBarrier;
  launch.grid_waiters.push_back(&path);
  ReleaseJoins(*path.warp);
  return true;
}

void Simulator::PrimaryOver(Launch& launch, Time time) {
  launch.primary_over = true;
  for (Path* path : std::exchange(launch.grid_waiters, {})) {
    path->clock = std::max(path->clock, time);
    if (checker != nullptr) checker->GridWaited(*path);
    ++path->pc;
    QueuePath(*path, path->clock);
  }
}

void Simulator::TriggerGrid(Cta& cta, Time time) {
  if (cta.triggered) return;
  cta.triggered = true;
  Launch& launch = *cta.launch;
  if (++launch.triggered_ctas == launch.total_ctas && on_trigger)
    on_trigger(launch, std::max(now, time));
}

}  // namespace allranks::node
