// Bulk copies: cp.async.bulk and cp.reduce.async.bulk between global and shared memory and between
// CTAs of a cluster, st.async, red.async and st.bulk; tensor_copy.h does the same for tensors.
//
// A transfer reads its source at one time and has its effect at a later one. Both are known at
// issue, see async.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "node/check/clock.h"
#include "node/exec/async_internal.h"
#include "node/exec/simulator.h"

namespace allranks::node {

struct Transfer {
  Simulator* sim = nullptr;
  std::uint32_t pc = 0;  // of the instruction, for faults
  std::vector<std::byte> buffer;
  bool lost = false;  // the source was gone when it was to be read
  // Fills the buffer, or says that its source is gone.
  std::function<bool(std::byte* buffer)> read;
  Cta* source = nullptr;  // whose shared memory it reads
  // Either to global memory ...
  std::function<void(const std::byte* buffer)> write;
  // ... or to shared memory of these CTAs, whose mbarriers then count the bytes.
  struct Target {
    SharedPlace to, bar;
    std::uint64_t number = 0, bar_number = 0;  // of the CTAs
    check::ClockRef done;                      // what the mbarrier then knows, for the checker
  };
  std::vector<Target> targets;
  std::uint64_t bytes = 0;  // to be counted
  AtomicOp reduce = AtomicOp::kNone;
  Number number = Number::kU32;
};

// Plans both halves of a transfer.
void StartTransfer(Simulator& sim, const std::shared_ptr<Transfer>& transfer, Time read, Time done);

// Reads what open copies have not yet read of a CTA's shared memory, which is about to end. PTX
// wants their threads to wait for that; hardware delivers the bytes all the same.
void ReadOpenCopies(Cta& cta);

// Adds the CTAs that a lane's operation is for: that of its destination, or those of the multicast
// mask. False: the path has faulted.
bool AddTargets(Simulator& sim, const Path& path, const AsyncOp& a, int lane, std::uint64_t bytes,
                std::uint64_t align, Transfer* transfer);

// Tells the checker, if there is one, of both ends of a transfer: its sources, and the targets or
// global memory that it goes to.
void CheckSource(Simulator& sim, const Path& path, int lane, const Transfer& transfer,
                 Object& object, std::uint64_t offset, std::uint64_t size);
void CheckTargets(Simulator& sim, const Path& path, int lane, Transfer& transfer,
                  std::uint64_t size);
void CheckGlobal(Simulator& sim, const Path& path, int lane, const Transfer& transfer,
                 Object& object, std::uint64_t offset, std::uint64_t size);

// Notes the transfer in the lane's open bulk group.
void JoinGroup(Path& path, int lane, Time read, Time done);

// A store to all replicas of a multicast range: when the last one has it, and (raising
// `acknowledged`) when that is known.
Time ChargeMulticast(Simulator& sim, const Cta& cta, const Place& to, Time at, Time* acknowledged);

// How long shared memory needs for so many bytes.
Time SharedTime(const Simulator& sim, std::uint64_t bytes);

// Bytes written to an object by nobody in particular.
void TellWritten(Simulator& sim, Object& object, std::uint64_t offset, std::uint64_t size);

Simulator::AsyncNext ExecuteBulk(Simulator& sim, Path& path, const AsyncOp& a, std::uint32_t lanes);

}  // namespace allranks::node
