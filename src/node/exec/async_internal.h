// What the parts of asynchronous operations share: addresses → bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "node/exec/simulator.h"
#include "node/state/lane_values.h"
#include "node/state/memory.h"

namespace allranks::node {

// Bytes of the shared memory of a CTA of the cluster.
struct SharedPlace {
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
  std::byte* data() const { return cta->shared.data() + offset; }
};

// Where `size` bytes at a lane's address are; false: the path has faulted.
// `own`: only the executing CTA's own shared memory will do.
bool ResolveShared(Simulator& sim, const Path& path, const AsyncAddress& a, int lane,
                   std::uint64_t size, std::uint64_t align, bool own, SharedPlace* place);
bool ResolveGlobal(Simulator& sim, const Path& path, const AsyncAddress& a, int lane,
                   std::uint64_t size, std::uint64_t align, bool write, Place* place);

bool ResolveGlobalAt(Simulator& sim, const Path& path, Address address, int lane,
                     std::uint64_t size, std::uint64_t align, bool write, Place* place);

// The CTA with that number still runs: what was planned for it may be done.
inline bool StillThere(const Cta* cta, std::uint64_t number) {
  return cta->number == number && cta->live_threads != 0;
}

void FaultWith(Simulator& sim, const Path& path, const std::string& what, int lane);
// For what goes wrong at completion; `pc` is the instruction that began it.
void FaultLater(Simulator& sim, const Cta& cta, std::uint32_t pc, const std::string& what);

}  // namespace allranks::node
