// The order of what happens at one time; faults.
#include "node/exec/simulator.h"

#include <bit>

#include "node/check/errors.h"
#include "node/exec/wait.h"

namespace allranks::node {
Simulator::~Simulator() = default;

// One-to-one, with 0 as the only number that becomes 0.
std::uint64_t Simulator::Permuted(std::uint64_t ticket) const {
  for (const std::uint64_t factor : {order_seed | 1, std::uint64_t{0x9e3779b97f4a7c15}}) {
    ticket *= factor;
    ticket ^= ticket >> 32;
  }
  return ticket;
}

void Simulator::Fault(const Path& path, Status status, const std::string& what, const FaultAt& at) {
  if (errors != nullptr) errors->OnFault(path, status, what, at);
  const Cta& cta = *path.warp->cta;
  Launch& launch = *cta.launch;
  const SourceLine& line = launch.code->lines[path.pc];
  std::string message =
      fmt::format("{} in kernel {}, block ({},{},{}), warp {}", what, launch.code->name,
                  cta.index.x, cta.index.y, cta.index.z, path.warp->id);
  // An assertion, a trap: of all lanes that execute it, the first.
  if (what.find(", thread ") == std::string::npos && (at.lane >= 0 || path.mask != 0)) {
    const int lane = at.lane >= 0 ? at.lane : std::countr_zero(path.mask);
    const Dim3& block = launch.request.block;
    const std::uint32_t thread = path.warp->id * kLanes + static_cast<std::uint32_t>(lane);
    message += fmt::format(", thread ({},{},{})", thread % block.x, thread / block.x % block.y,
                           thread / (block.x * block.y));
  }
  if (line.line != 0) message += fmt::format(", {}:{}", line.file, line.line);
  if (!line.inlined_at.empty()) message += fmt::format(" (inlined at {})", line.inlined_at);
  on_fault(launch, status, std::move(message));
}

}  // namespace allranks::node
