// Runs one section of a litmus test again and again on one machine, each time under another seed:
// memory is reset, the checker is told the seed and that all hosts know everything, then the
// kernels are launched and what they leave is read. host_part.h does what a host is told to do.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "litmus_file.h"
#include "node/checking.h"
#include "node/machine.h"
#include "ptx_text.h"

namespace allranks::litmus {

// A kernel that can be launched.
struct LoadedKernel {
  KernelText text;
  node::LaunchRequest request;
  node::ProcessId process = 0;
  node::StreamId stream = 0;  // its own
  node::Address out = 0;
};

// How one run ended. Values are those of SectionRun::places(), in that order.
struct Ending {
  std::vector<std::uint64_t> values;
  std::vector<node::Finding> findings;
  std::string hang;   // who waits where; empty: all ended
  std::string fault;  // empty: none
};

// Small, quick, and the same on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed), zero_(seed == 0) {}
  std::uint64_t Next();
  // A span of time of any magnitude up to a few microseconds; 0 if the seed is 0.
  node::Time Delay();

 private:
  std::uint64_t state_;
  bool zero_;
};

class SectionRun {
 public:
  // `profile`, `test` and `section` outlive it. Without `checked`, a machine that only runs.
  SectionRun(const node::Profile& profile, const Test& test, const Section& section, bool checked);

  ~SectionRun();
  SectionRun(const SectionRun&) = delete;
  SectionRun& operator=(const SectionRun&) = delete;

  // Makes the machine and everything on it; again after a hang or a fault.
  Status Prepare();
  Result<Ending> Run(std::uint64_t seed);

  const std::vector<Place>& places() const { return places_; }
  // Which memory a finding is about; -1: none that is known.
  int MemoryOf(const node::FindingAccess& access) const;

  // --- for the host's part
  node::Machine& machine() { return *machine_; }
  const Test& test() const { return test_; }
  const Section& section() const { return section_; }
  node::ProcessId ProcessOf(int device) const;
  node::Address AddressOf(int memory, int view, node::ProcessId process) const;
  // Where a host finds pinned memory; null: that is another kind.
  std::byte* HostBytes(node::Address address) const;
  LoadedKernel* KernelNamed(const std::string& name);
  // Lets time pass until `done`, which a callback sets before it stops the machine. False: it never
  // will be.
  bool PassTime(const bool& done);
  std::string Deadlock() const;
  // Streams, events and graphs by what their lines call them; they live as long as the machine.
  std::map<std::string, std::uint64_t> made;

 private:
  void Unmap();
  Status MakeProcesses();
  Status MakeMemory();
  Status MakeMulticast(std::size_t memory);
  Status MakeKernels();
  Status Reset();
  Result<std::string> LaunchAll(Draw& draw);
  std::uint64_t ValueAt(const Place& place, const std::map<std::string, std::uint64_t>& of_hosts);

  const node::Profile& profile_;
  const Test& test_;
  const Section& section_;
  const bool checked_;
  std::vector<Place> places_;
  std::unique_ptr<node::Machine> machine_;
  node::Checking* checking_ = nullptr;
  std::vector<node::ProcessId> processes_;  // by rank
  // By memory, by view (a device, or none), by process.
  std::map<std::tuple<int, int, node::ProcessId>, node::Address> addresses_;
  std::vector<std::uint64_t> offsets_;           // by memory: the same in every allocation
  std::uint64_t memory_end_ = 0;                 // offset behind the last of them
  std::map<int, node::Address> blocks_;          // by device: its memories, then its outputs
  std::map<int, std::vector<std::byte>> first_;  // by device; -1: pinned
  node::Address pinned_ = 0;
  std::byte* mapped_ = nullptr;  // pinned memory as a host has it
  std::uint64_t mapped_bytes_ = 0;
  std::vector<LoadedKernel> kernels_;
};

}  // namespace allranks::litmus
