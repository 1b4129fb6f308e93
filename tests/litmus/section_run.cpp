// Machines for sections of litmus tests; see section_run.h.
#include "section_run.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>

#include "host_part.h"

namespace allranks::litmus {
namespace {

using node::Address;
using node::Ms;
using node::Ns;
using node::OpId;
using node::ProcessId;

// No line of 128 bytes and no sector holds two memories.
constexpr std::uint64_t kApart = 256;
constexpr std::uint64_t kFuel = 20'000'000;

std::uint64_t RoundedUp(std::uint64_t bytes) { return (bytes + kApart - 1) / kApart * kApart; }

void Fill(const Memory& memory, std::byte* to) {
  const std::uint64_t value = memory.initial.value_or(0);
  for (std::uint32_t i = 0; i < memory.count; ++i)
    std::memcpy(to + std::size_t{i} * memory.width, &value, memory.width);
}

#define NEEDS(call)                                                           \
  if (const node::Status needed_ = (call); needed_ != node::Status::kSuccess) \
  return Fail("{}: " #call " failed: {}", test_.path, static_cast<int>(needed_))

}  // namespace

std::uint64_t Draw::Next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

node::Time Draw::Delay() {
  const std::uint64_t drawn = Next();
  return zero_ ? 0 : Ns(static_cast<std::int64_t>((drawn >> 8) % (std::uint64_t{1} << drawn % 13)));
}

SectionRun::SectionRun(const node::Profile& profile, const Test& test, const Section& section,
                       bool checked)
    : profile_(profile), test_(test), section_(section), checked_(checked) {
  std::set<std::string> known;
  for (const Expectation& expectation : section.expectations)
    for (const Term& term : expectation.terms)
      if (known.insert(term.place.text).second) places_.push_back(term.place);
}

SectionRun::~SectionRun() { Unmap(); }

void SectionRun::Unmap() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  mapped_ = nullptr;
}

Status SectionRun::Prepare() {
  Unmap();
  kernels_.clear();
  addresses_.clear();
  made.clear();
  node::MachineOptions options;
  options.devices = test_.DeviceCount();
  options.fuel = kFuel;
  options.check = checked_;
  options.secret = "litmus";
  machine_.reset();
  auto machine = node::Machine::Create(profile_, options);
  if (!machine) return Fail(machine.error());
  machine_ = std::move(*machine);
  checking_ = machine_->checking();
  if (checked_ && checking_ == nullptr) return Fail("the machine has no checker");
  if (checking_ != nullptr) checking_->SetHostsSpeak(true);
  if (auto status = MakeProcesses(); !status) return status;
  if (auto status = MakeMemory(); !status) return status;
  return MakeKernels();
}

Status SectionRun::MakeProcesses() {
  processes_.clear();
  const int devices = test_.DeviceCount();
  for (int rank = 0; rank < (test_.ranks ? devices : 1); ++rank)
    processes_.push_back(machine_->AddProcess(rank, 0));
  if (test_.ranks) return Ok();
  for (int d = 0; d < devices; ++d)
    for (int peer = 0; peer < devices; ++peer)
      if (d != peer) NEEDS(machine_->EnablePeer(processes_[0], d, peer));
  return Ok();
}

Status SectionRun::MakeMemory() {
  auto laid_out = litmus::MakeKernels(test_, section_);
  if (!laid_out) return Fail(laid_out.error());
  offsets_.clear();
  memory_end_ = 0;
  for (const Memory& memory : test_.memories) {
    offsets_.push_back(memory_end_);
    memory_end_ += RoundedUp(memory.bytes());
  }
  // One allocation per device.
  std::map<int, std::uint64_t> sizes;
  for (int d = 0; d < test_.DeviceCount(); ++d) sizes[d] = memory_end_;
  for (KernelText& text : *laid_out) {
    LoadedKernel kernel;
    kernel.out = sizes[text.device];  // so far an offset
    sizes[text.device] += RoundedUp(std::uint64_t{text.slot_count} * 8);
    kernel.process = ProcessOf(text.device);
    kernel.text = std::move(text);
    kernels_.push_back(std::move(kernel));
  }
  for (const auto& [device, size] : sizes) {
    first_[device].assign(size + kApart, std::byte{0});
    const ProcessId owner = ProcessOf(device);
    NEEDS(machine_->Allocate(owner, device, size + kApart, &blocks_[device]));
    node::IpcHandle handle;
    if (test_.ranks) NEEDS(machine_->IpcExport(owner, blocks_[device], &handle));
    for (std::size_t r = 0; r < processes_.size(); ++r) {
      Address base = blocks_[device];
      if (processes_[r] != owner)
        NEEDS(machine_->IpcOpen(processes_[r], static_cast<int>(r), handle, &base));
      for (std::size_t m = 0; m < test_.memories.size(); ++m) {
        const Memory& memory = test_.memories[m];
        if (memory.home != Memory::Home::kDevice || memory.devices[0] != device) continue;
        Fill(memory, first_[device].data() + offsets_[m]);
        addresses_[{static_cast<int>(m), -1, processes_[r]}] = base + offsets_[m];
      }
    }
  }
  for (std::size_t m = 0; m < test_.memories.size(); ++m) {
    const Memory& memory = test_.memories[m];
    if (memory.home == Memory::Home::kMulticast) {
      if (auto status = MakeMulticast(m); !status) return status;
    }
    if (memory.home != Memory::Home::kPinned) continue;
    if (test_.ranks) return Fail("{}: pinned memory belongs to one process", test_.path);
    if (!first_.contains(-1)) {
      node::PinnedMemory pinned;
      NEEDS(machine_->AllocatePinned(processes_[0], memory_end_, false, &pinned));
      pinned_ = pinned.address;
      mapped_bytes_ = pinned.size;
      void* mapped = mmap(nullptr, pinned.size, PROT_READ | PROT_WRITE, MAP_SHARED, pinned.fd, 0);
      if (mapped == MAP_FAILED) return Fail("{}: pinned memory cannot be mapped", test_.path);
      mapped_ = static_cast<std::byte*>(mapped);
      first_[-1].assign(memory_end_, std::byte{0});
    }
    Fill(memory, first_[-1].data() + offsets_[m]);
    addresses_[{static_cast<int>(m), -1, processes_[0]}] = pinned_ + offsets_[m];
  }
  for (LoadedKernel& kernel : kernels_) kernel.out += blocks_[kernel.text.device];
  return Ok();
}

Status SectionRun::MakeMulticast(std::size_t m) {
  if (test_.ranks) return Fail("{}: a multicast object belongs to one process", test_.path);
  const Memory& memory = test_.memories[m];
  node::VirtualMemory& vmm = machine_->virtual_memory();
  const ProcessId process = processes_[0];
  constexpr std::uint64_t kSize = node::VirtualMemory::kGranularity;
  const auto map = [&](node::HandleId handle, Address* address) -> Status {
    NEEDS(vmm.Reserve(process, kSize, 0, 0, address));
    NEEDS(vmm.Map(process, *address, kSize, 0, handle));
    for (int d = 0; d < test_.DeviceCount(); ++d)
      NEEDS(vmm.SetAccess(process, *address, kSize, d, node::AccessRight::kReadWrite));
    return Ok();
  };
  node::HandleId all = 0;
  NEEDS(vmm.CreateMulticast(process, static_cast<std::uint32_t>(memory.devices.size()), kSize, 0,
                            &all));
  for (const int device : memory.devices) NEEDS(vmm.AddDevice(process, all, device));
  const auto put = [&](int view, Address base) {
    addresses_[{static_cast<int>(m), view, process}] = base + offsets_[m];
  };
  Address base = 0;
  for (const int device : memory.devices) {
    node::HandleId one = 0;
    NEEDS(vmm.Create(process, device, kSize, 0, &one));
    NEEDS(vmm.Bind(process, all, 0, one, 0, kSize));
    if (auto status = map(one, &base); !status) return status;
    put(device, base);
  }
  if (auto status = map(all, &base); !status) return status;
  put(-1, base);
  return Ok();
}

Status SectionRun::MakeKernels() {
  for (LoadedKernel& kernel : kernels_) {
    const KernelText& text = kernel.text;
    node::Status status = node::Status::kSuccess;
    auto module = machine_->LoadModule(kernel.process, text.device,
                                       std::as_bytes(std::span(text.ptx)), &status);
    if (!module) return Fail("{}: {}\n{}", test_.path, module.error().message, text.ptx);
    node::KernelInfo info;
    NEEDS(machine_->GetKernel(*module, text.name, &info));
    kernel.request.kernel = info.id;
    kernel.request.grid = {text.blocks, 1, 1};
    kernel.request.block = {text.threads, 1, 1};
    kernel.request.cluster = {test_.cluster, 1, 1};
    kernel.request.params.resize(info.param_bytes);
    std::memcpy(kernel.request.params.data() + info.param_offsets[0], &kernel.out, 8);
    for (std::size_t a = 0; a < text.arguments.size(); ++a) {
      const Argument& argument = text.arguments[a];
      const Address address = AddressOf(argument.memory, argument.view, kernel.process);
      if (address == 0)
        return Fail("{}: {} cannot reach {}", test_.path, text.name,
                    test_.memories[static_cast<std::size_t>(argument.memory)].name);
      std::memcpy(kernel.request.params.data() + info.param_offsets[a + 1], &address, 8);
    }
    NEEDS(machine_->CreateStream(kernel.process, text.device, true, 0, &kernel.stream));
  }
  return Ok();
}

Status SectionRun::Reset() {
  for (const auto& [device, bytes] : first_) {
    const Address to = device < 0 ? pinned_ : blocks_[device];
    if (!machine_->Poke(device < 0 ? processes_[0] : ProcessOf(device), to, bytes))
      return Fail("{}: memory cannot be written", test_.path);
  }
  for (std::size_t m = 0; m < test_.memories.size(); ++m) {
    const Memory& memory = test_.memories[m];
    if (memory.home != Memory::Home::kMulticast) continue;
    std::vector<std::byte> bytes(memory.bytes());
    Fill(memory, bytes.data());
    for (const int device : memory.devices)
      if (!machine_->Poke(processes_[0], AddressOf(static_cast<int>(m), device, processes_[0]),
                          bytes))
        return Fail("{}: memory cannot be written", test_.path);
  }
  return Ok();
}

Result<std::string> SectionRun::LaunchAll(Draw& draw) {
  std::vector<OpId> ops;
  for (LoadedKernel& kernel : kernels_) {
    OpId op = 0;
    NEEDS(machine_->Launch(kernel.process, kernel.stream, kernel.request,
                           machine_->now() + draw.Delay(), &op));
    ops.push_back(op);
  }
  // No WhenDone: a host that waits for a kernel knows of its end while others still run.
  while (machine_->RunUntil(machine_->now() + Ms(1)) && !machine_->Stuck()) {
  }
  return machine_->Done(ops) ? std::string() : Deadlock();
}

Result<Ending> SectionRun::Run(std::uint64_t seed) {
  if (auto status = Reset(); !status) return Fail(status.error());
  if (checking_ != nullptr) {
    checking_->HostsMeet();
    checking_->SetSchedule({.seed = seed});
  }
  Draw draw(seed);
  Ending ending;
  std::map<std::string, std::uint64_t> of_hosts;
  Result<std::string> hang =
      section_.hosts.empty() ? LaunchAll(draw) : HostPart(*this, draw).Do(checking_, &of_hosts);
  if (!hang) return Fail(hang.error());
  ending.hang = std::move(*hang);
  for (const node::Fault& fault : machine_->TakeFaults()) ending.fault += fault.message + "\n";
  if (checking_ != nullptr) ending.findings = checking_->TakeFindings();
  if (!ending.hang.empty() || !ending.fault.empty()) return ending;
  ending.values.reserve(places_.size());
  for (const Place& place : places_) ending.values.push_back(ValueAt(place, of_hosts));
  return ending;
}

std::uint64_t SectionRun::ValueAt(const Place& place,
                                  const std::map<std::string, std::uint64_t>& of_hosts) {
  std::uint64_t value = 0;
  const auto peek = [&](ProcessId process, Address address, std::uint32_t bytes) {
    machine_->Peek(process, address, std::as_writable_bytes(std::span(&value, 1)).first(bytes));
    return value;
  };
  if (place.host >= 0) {
    const auto it = of_hosts.find(fmt::format("{}.{}{}", place.host, place.bank, place.number));
    return it == of_hosts.end() ? 0 : it->second;
  }
  if (place.memory >= 0) {
    const Memory& memory = test_.memories[static_cast<std::size_t>(place.memory)];
    const ProcessId process =
        memory.home == Memory::Home::kPinned ? processes_[0] : ProcessOf(memory.devices[0]);
    return peek(
        process,
        AddressOf(place.memory, place.view, process) + std::uint64_t{place.number} * memory.width,
        memory.width);
  }
  for (const LoadedKernel& kernel : kernels_)
    for (const Slot& slot : kernel.text.slots)
      if (slot.thread == place.thread && slot.bank == place.bank && slot.number == place.number)
        return peek(kernel.process, kernel.out + 8 * (slot.first + place.lane), 8);
  return 0;
}

int SectionRun::MemoryOf(const node::FindingAccess& access) const {
  for (std::size_t m = 0; m < offsets_.size(); ++m)
    if (!test_.memories[m].shared() && access.offset >= offsets_[m] &&
        access.offset < offsets_[m] + test_.memories[m].bytes())
      return static_cast<int>(m);
  return -1;
}

ProcessId SectionRun::ProcessOf(int device) const {
  return processes_[test_.ranks ? static_cast<std::size_t>(device) : 0];
}

Address SectionRun::AddressOf(int memory, int view, ProcessId process) const {
  const auto it = addresses_.find({memory, view, process});
  return it == addresses_.end() ? 0 : it->second;
}

std::byte* SectionRun::HostBytes(Address address) const {
  return mapped_ != nullptr && address >= pinned_ && address < pinned_ + mapped_bytes_
             ? mapped_ + (address - pinned_)
             : nullptr;
}

LoadedKernel* SectionRun::KernelNamed(const std::string& name) {
  const auto it = std::find_if(kernels_.begin(), kernels_.end(), [&](const LoadedKernel& kernel) {
    return kernel.text.name == name;
  });
  return it == kernels_.end() ? nullptr : &*it;
}

bool SectionRun::PassTime(const bool& done) {
  while (!done) {
    const bool alive = machine_->RunUntil(machine_->now() + Ms(1));
    if (!done && (!alive || machine_->Stuck())) return false;
  }
  return true;
}

std::string SectionRun::Deadlock() const {
  std::string text;
  for (const node::Waiter& waiter : machine_->Waiters())
    text += fmt::format("  {}, block {}, warp {}, lanes {:08x} waits: {}, {} + {}, seen {}\n",
                        waiter.kernel, waiter.block_index.x, waiter.warp, waiter.lanes, waiter.what,
                        waiter.object, waiter.offset, waiter.seen);
  return text.empty() ? "  nobody waits, but not all has ended\n" : text;
}

}  // namespace allranks::litmus
