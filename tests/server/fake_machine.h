// A Machine of fixed times for tests of the server: a kernel takes grid.x microseconds and then
// stores the u32 in its parameters at the address before it; grid.y == 2 makes it wait for ever.
// Copies and memsets take one microsecond. Memory is real bytes, streams are chains, nothing else
// is simulated (machine_stub.h).
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/server/machine_stub.h"

namespace allranks::server {

class FakeMachine : public MachineStub {
 public:
  FakeMachine() {
    profile_.name = "fake";
    profile_.machine = {1, 2};
    profile_.device.memory_bytes = 1 << 30;
    profile_.launch.host_call = node::Us(2);
    profile_.launch.api_call = node::Us(1);
    profile_.launch.sync = node::Us(3);
    profile_.host.poll = node::Ns(250);
  }
  ~FakeMachine() override {
    for (auto& [address, memory] : pinned_) Unmap(memory);
  }

  void SetHosts(int hosts) { profile_.machine.hosts = hosts; }
  const node::Profile& profile() const override { return profile_; }
  Time now() const override { return now_; }

  node::ProcessId AddProcess(int, int) override {
    ++alive_;
    return ++last_;
  }
  void RemoveProcess(node::ProcessId process) override {
    --alive_;
    std::erase_if(memory_, [&](const auto& entry) { return entry.second.process == process; });
    for (auto it = pinned_.begin(); it != pinned_.end();) {
      if (it->second.process == process) {
        Unmap(it->second);
        it = pinned_.erase(it);
      } else {
        ++it;
      }
    }
    std::erase_if(ops_, [&](const auto& entry) { return entry.second.process == process; });
    std::erase_if(watches_, [&](const auto& entry) { return entry.second.process == process; });
  }
  int DeviceCount(node::ProcessId) const override { return 2; }
  std::uint64_t FreeMemory(node::ProcessId, int) const override {
    std::uint64_t used = 0;
    for (const auto& [address, memory] : memory_) used += memory.bytes.size();
    return (1u << 30) - used;
  }

  Result<node::ModuleId> LoadModule(node::ProcessId, int, const node::ModuleImage& image,
                                    Status* status) override {
    if (image.parts().empty() || image.parts()[0].bytes.size() < 4) {
      *status = Status::kInvalidImage;
      return Fail("too short");
    }
    return ++last_;
  }
  Status GetKernel(node::ModuleId, const std::string& name, node::KernelInfo* info) override {
    if (name != "store") return Status::kNotFound;
    info->id = 7;
    info->name = name;
    info->param_bytes = 12;
    return Status::kSuccess;
  }
  Status ListKernels(node::ModuleId, std::vector<std::string>* names) override {
    names->push_back("store");
    return Status::kSuccess;
  }

  Status Allocate(node::ProcessId process, int, std::uint64_t size,
                  node::Address* address) override {
    if (size == 0 || size > FreeMemory(process, 0)) return Status::kOutOfMemory;
    *address = next_address_;
    next_address_ += (size + 511) / 512 * 512;
    memory_[*address] = {process, std::vector<std::byte>(size), nullptr, -1};
    return Status::kSuccess;
  }
  Status Free(node::ProcessId process, node::Address address) override {
    auto found = memory_.find(address);
    if (found == memory_.end() || found->second.process != process) return Status::kInvalidValue;
    memory_.erase(found);
    return Status::kSuccess;
  }
  Status AllocateAsync(node::ProcessId process, node::StreamId, node::PoolId, std::uint64_t size,
                       node::Address* address) override {
    return Allocate(process, 0, size, address);
  }
  Status FreeAsync(node::ProcessId process, node::StreamId, node::Address address, Time,
                   node::OpId*) override {
    return Free(process, address);
  }
  Status AllocatePinned(node::ProcessId process, std::uint64_t size, bool,
                        node::PinnedMemory* out) override {
    size = (size + 4095) / 4096 * 4096;
    if (size == 0 || size > (16u << 20)) return Status::kOutOfMemory;
    Memory memory;
    memory.process = process;
    memory.fd = memfd_create("pinned", MFD_CLOEXEC);
    if (memory.fd < 0 || ftruncate(memory.fd, static_cast<off_t>(size)) != 0)
      return Status::kOutOfMemory;
    memory.map = static_cast<std::byte*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0));
    memory.map_size = size;
    *out = {next_address_, size, memory.fd};
    pinned_[next_address_] = memory;
    next_address_ += size;
    return Status::kSuccess;
  }
  Status FreePinned(node::ProcessId process, node::Address address) override {
    auto found = pinned_.find(address);
    if (found == pinned_.end() || found->second.process != process) return Status::kInvalidValue;
    Unmap(found->second);
    pinned_.erase(found);
    return Status::kSuccess;
  }
  void HostWrote(node::ProcessId, Time) override { ++host_writes; }
  std::uint64_t WatchHost(node::ProcessId process, std::span<const HostWatch> watches, Time at,
                          std::function<void(Time)> changed) override {
    const std::uint64_t id = ++last_;
    watches_[id] = {process, {watches.begin(), watches.end()}, std::move(changed)};
    CheckWatches(at);
    return id;
  }
  void Unwatch(std::uint64_t watch) override { watches_.erase(watch); }

  node::StreamId DefaultStream(node::ProcessId process, int device) override {
    return 1'000'000 + process * 16 + static_cast<unsigned>(device);
  }
  Status CreateStream(node::ProcessId, int, bool, int, node::StreamId* stream) override {
    *stream = ++last_;
    return Status::kSuccess;
  }
  Status CreateEvent(node::ProcessId, int, bool, node::EventId* event) override {
    *event = ++last_;
    return Status::kSuccess;
  }

  Status Launch(node::ProcessId process, node::StreamId stream, const node::LaunchRequest& launch,
                Time at, node::OpId* op) override {
    if (launch.params.size() != 12) return Status::kInvalidValue;
    node::Address address = 0;
    std::memcpy(&address, launch.params.data(), 8);
    const std::vector<std::byte> value(launch.params.begin() + 8, launch.params.end());
    const Time length = launch.grid.y == 2 ? node::kTimeNever / 2 : node::Us(launch.grid.x);
    *op = Enqueue(process, stream, at, length, [this, process, address, value](Time) {
      if (std::byte* to = Find(process, address, 4)) std::memcpy(to, value.data(), 4);
    });
    return Status::kSuccess;
  }
  Status Copy(node::ProcessId process, node::StreamId stream,
              std::shared_ptr<node::CopyRequest> copy, Time at, node::OpId* op) override {
    if ((copy->dst != 0 && Find(process, copy->dst, copy->size) == nullptr) ||
        (copy->src != 0 && Find(process, copy->src, copy->size) == nullptr))
      return Status::kInvalidValue;
    *op = Enqueue(process, stream, at, node::Us(1), [this, process, copy](Time) {
      if (copy->dst == 0) copy->bytes.resize(copy->size);
      std::byte* to = copy->dst == 0 ? copy->bytes.data() : Find(process, copy->dst, copy->size);
      const std::byte* from =
          copy->src == 0 ? copy->bytes.data() : Find(process, copy->src, copy->size);
      if (to != nullptr && from != nullptr) std::memmove(to, from, copy->size);
    });
    return Status::kSuccess;
  }
  Status Memset(node::ProcessId process, node::StreamId stream, const node::MemsetRequest& set,
                Time at, node::OpId* op) override {
    const auto width = static_cast<unsigned>(set.width);
    if (set.count > (1u << 30) || Find(process, set.dst, set.count * width) == nullptr)
      return Status::kInvalidValue;
    *op = Enqueue(process, stream, at, node::Us(1), [this, process, set, width](Time) {
      std::byte* to = Find(process, set.dst, set.count * width);
      for (std::uint64_t i = 0; to != nullptr && i < set.count; ++i)
        std::memcpy(to + i * width, &set.value, width);
    });
    return Status::kSuccess;
  }
  Status RecordEvent(node::ProcessId, node::StreamId stream, node::EventId event, Time) override {
    events_[event] = tails_[stream];
    return Status::kSuccess;
  }
  // All take their turns: the last is over when all are.
  Status RecordContext(node::ProcessId process, int, node::EventId event, Time) override {
    events_[event] = 0;
    Time latest = 0;
    for (const auto& [id, op] : ops_) {
      if (op.process != process || op.end < latest) continue;
      latest = op.end;
      events_[event] = id;
    }
    return Status::kSuccess;
  }
  // Takes a microsecond, whenever the process says that it has returned.
  Status CallHost(node::ProcessId process, node::StreamId stream,
                  const node::HostFunction& function, Time at, node::OpId* op) override {
    *op = Enqueue(process, stream, at, node::Us(1), [this, process, function](Time now) {
      if (host_caller_) host_caller_({process, ++last_, function, Status::kSuccess}, now);
    });
    return Status::kSuccess;
  }
  void SetHostCaller(std::function<void(const node::HostCall&, Time)> caller) override {
    host_caller_ = std::move(caller);
  }
  Status StreamTail(node::ProcessId, node::StreamId stream, std::vector<node::OpId>* ops) override {
    if (auto found = tails_.find(stream); found != tails_.end()) ops->push_back(found->second);
    return Status::kSuccess;
  }
  Status EventTail(node::ProcessId, node::EventId event, std::vector<node::OpId>* ops) override {
    if (auto found = events_.find(event); found != events_.end()) ops->push_back(found->second);
    return Status::kSuccess;
  }
  Status DeviceTail(node::ProcessId process, int, std::vector<node::OpId>* ops) override {
    for (const auto& [id, op] : ops_)
      if (op.process == process) ops->push_back(id);
    return Status::kSuccess;
  }
  bool Done(std::span<const node::OpId> ops) const override {
    return std::none_of(ops.begin(), ops.end(), [&](node::OpId op) { return ops_.contains(op); });
  }

  std::uint64_t WhenDone(std::vector<node::OpId> ops, std::function<void(Time)> done) override {
    if (Done(ops)) {
      done(now_);
      return 0;
    }
    when_done_[++last_] = {std::move(ops), std::move(done)};
    return last_;
  }
  void CancelWhenDone(std::uint64_t id) override { when_done_.erase(id); }

  // Two hosts that are 10 us apart, at a byte per ns.
  Time SendBetweenHosts(int from, int to, std::uint64_t bytes, Time at) override {
    sends.emplace_back(from, to, bytes);
    if (network_dead) return node::kTimeNever;
    network_ = std::max(network_, at) + node::Ns(static_cast<std::int64_t>(bytes));
    return network_ + node::Us(10);
  }

  bool RunUntil(Time limit) override {
    stop_ = false;
    for (;;) {
      const auto next = Next();
      if (next == ops_.end() || next->second.end >= node::kTimeNever / 4) {
        now_ = std::max(now_, limit < node::kTimeNever / 4 ? limit : now_);
        return false;
      }
      if (next->second.end > limit) {
        now_ = std::max(now_, limit);
        return true;
      }
      now_ = std::max(now_, next->second.end);
      auto effect = std::move(next->second.effect);
      ops_.erase(next);
      effect(now_);
      CheckWatches(now_);
      std::vector<std::function<void(Time)>> calls;
      for (auto it = when_done_.begin(); it != when_done_.end();) {
        if (!Done(it->second.first)) {
          ++it;
          continue;
        }
        calls.push_back(std::move(it->second.second));
        it = when_done_.erase(it);
      }
      for (auto& call : calls) call(now_);
      if (stop_ || (interrupt_ != nullptr && *interrupt_)) return true;
    }
  }
  void Stop() override { stop_ = true; }
  void SetInterrupt(const std::atomic<bool>* flag) override { interrupt_ = flag; }
  std::optional<Time> NextEvent() const override {
    std::optional<Time> first;
    for (const auto& [id, op] : ops_)
      if (op.end < node::kTimeNever / 4 && (!first || op.end < *first)) first = op.end;
    return first;
  }
  bool Busy() const override { return !ops_.empty(); }
  bool Busy(node::ProcessId process) const override {
    return std::any_of(ops_.begin(), ops_.end(),
                       [&](const auto& entry) { return entry.second.process == process; });
  }
  Time VisibleAt(node::ProcessId, node::Address, std::uint64_t) const override { return now_; }
  bool Stuck() const override { return !ops_.empty() && !NextEvent(); }
  std::vector<node::Waiter> Waiters() const override {
    node::Waiter waiter;
    waiter.kernel = "_Z5storePji";
    waiter.file = "fake.cu";
    waiter.line = 12;
    waiter.what = "ld.acquire.sys.u32";
    waiter.object = "pinned#1";
    waiter.offset = 64;
    waiter.seen = 3;
    waiter.has_object = true;
    waiter.lanes = 1;
    return {waiter};
  }
  node::DeviceText TakeText(node::ProcessId, std::size_t) override {
    return std::exchange(text_, {});
  }
  void Print(node::DeviceText text) { text_ = std::move(text); }
  const node::Stats& stats() const override { return stats_; }

  int alive() const { return alive_; }
  std::byte* Find(node::ProcessId process, node::Address address, std::uint64_t size) {
    if (auto it = memory_.upper_bound(address); it != memory_.begin()) {
      --it;
      if (it->second.process == process && address - it->first <= it->second.bytes.size() &&
          size <= it->second.bytes.size() - (address - it->first))
        return it->second.bytes.data() + (address - it->first);
    }
    if (auto it = pinned_.upper_bound(address); it != pinned_.begin()) {
      --it;
      if (it->second.process == process && address - it->first <= it->second.map_size &&
          size <= it->second.map_size - (address - it->first))
        return it->second.map + (address - it->first);
    }
    return nullptr;
  }
  int host_writes = 0;

  std::vector<std::tuple<int, int, std::uint64_t>> sends;  // from, to, bytes
  bool network_dead = false;

 private:
  node::DeviceText text_;
  struct Memory {
    node::ProcessId process = 0;
    std::vector<std::byte> bytes;
    std::byte* map = nullptr;
    int fd = -1;
    std::uint64_t map_size = 0;
  };
  struct Operation {
    node::ProcessId process;
    Time end;
    std::function<void(Time)> effect;
  };
  struct Watching {
    node::ProcessId process;
    std::vector<HostWatch> watches;
    std::function<void(Time)> changed;
  };

  static void Unmap(Memory& memory) {
    munmap(memory.map, memory.map_size);
    close(memory.fd);
  }
  node::OpId Enqueue(node::ProcessId process, node::StreamId stream, Time at, Time length,
                     std::function<void(Time)> effect) {
    Time start = std::max(at, now_);
    if (auto tail = ops_.find(tails_[stream]); tail != ops_.end())
      start = std::max(start, tail->second.end);
    const node::OpId id = ++last_;
    ops_[id] = {process, start >= node::kTimeNever / 4 ? start : start + length, std::move(effect)};
    tails_[stream] = id;
    return id;
  }
  std::map<node::OpId, Operation>::iterator Next() {
    return std::min_element(ops_.begin(), ops_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.end, a.first) < std::pair(b.second.end, b.first);
    });
  }
  void CheckWatches(Time at) {
    std::vector<std::function<void(Time)>> calls;
    for (auto it = watches_.begin(); it != watches_.end();) {
      bool changed = false;
      for (const HostWatch& watch : it->second.watches) {
        const std::byte* bytes = Find(it->second.process, watch.address, watch.size);
        std::uint64_t value = 0;
        if (bytes != nullptr) std::memcpy(&value, bytes, watch.size);
        changed |= bytes != nullptr && value != watch.seen;
      }
      if (changed) {
        calls.push_back(std::move(it->second.changed));
        it = watches_.erase(it);
      } else {
        ++it;
      }
    }
    for (auto& call : calls) call(at);
  }

  node::Profile profile_;
  node::Stats stats_;
  Time now_ = 0, network_ = 0;
  std::uint32_t last_ = 100;
  int alive_ = 0;
  node::Address next_address_ = 0x2000'0000'0000;
  std::map<node::Address, Memory> memory_, pinned_;
  std::map<node::OpId, Operation> ops_;
  std::map<node::StreamId, node::OpId> tails_;
  std::map<node::EventId, node::OpId> events_;
  std::map<std::uint64_t, std::pair<std::vector<node::OpId>, std::function<void(Time)>>> when_done_;
  std::map<std::uint64_t, Watching> watches_;
  std::function<void(const node::HostCall&, Time)> host_caller_;
  const std::atomic<bool>* interrupt_ = nullptr;
  bool stop_ = false;
};

}  // namespace allranks::server
