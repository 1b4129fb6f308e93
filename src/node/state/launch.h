// A kernel launch on its way, its resident CTAs and clusters, and what their warps meet at. Plain
// data: residency.cpp begins and ends it, barriers.cpp, mbarrier.h and cluster.h are about the
// meeting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "node/code/code.h"
#include "node/ids.h"
#include "node/machine.h"
#include "node/state/memory.h"
#include "node/state/stalls.h"
#include "node/state/warp.h"
#include "node/time.h"

namespace allranks::node {

// Of the checker (node/check): null unless something is checked.
namespace check {
struct ClusterClocks;
struct CtaClocks;
struct LaunchClocks;
}  // namespace check

struct Cta;
struct Launch;
struct Device;

struct NamedBarrier {
  std::uint32_t warps = 0;              // that have arrived with all their threads
  std::uint32_t expected = 0;           // threads, as given; 0 = all of the CTA
  std::uint32_t votes = 0, voters = 0;  // bar.red
  std::uint32_t came = 0;               // bits of those warps
  Time latest = 0;
  std::vector<std::uint32_t> partial;  // by warp: lanes that wait for others of their warp
  std::vector<Path*> waiting;

  bool Used() const { return warps != 0 || !waiting.empty(); }
};

struct Transfer;  // bulk.h

// What is known of an mbarrier beside its bytes in shared memory (mbarrier.h).
struct MbarrierNote {
  Time completed = 0;          // when the end of the last phase can be seen
  Time latest = 0;             // when the present phase's arrivals so far can be seen
  std::uint32_t phases = 0;    // that have ended
  std::uint64_t expected = 0;  // bytes of the present phase, and those that have come
  std::uint64_t arrived = 0;
  std::vector<Path*> waiting;  // in try_wait
};

// CTAs that are resident together on one GPC (cluster.cpp).
struct Cluster {
  Dim3 index;
  std::vector<Cta*> ctas;  // by rank; nullptr: over
  Time latest = 0;         // arrival at the barrier's present phase
  Time ended = 0;          // the same of the phase before
  std::vector<Path*> waiting;
  std::shared_ptr<check::ClusterClocks> clocks;
};

struct Cta {
  Launch* launch = nullptr;
  Dim3 index;
  std::uint64_t number = 0;  // machine-wide, never reused
  int sm = 0;
  std::uint32_t live_threads = 0;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  Object shared_object;                // the same bytes, for those who wait for them
  std::vector<NamedBarrier> barriers;  // 16, made on first use
  Time store_arrival = 0;              // when the CTA's last store is known to have arrived
  Time end = 0;                        // latest exit of a lane
  bool triggered = false;              // griddepcontrol.launch_dependents, or over
  std::vector<std::weak_ptr<Transfer>> open_copies;  // that have yet to read its shared memory
  std::map<std::uint32_t, MbarrierNote> mbarriers;   // by offset in shared memory, since their init
  std::shared_ptr<Cluster> cluster;                  // of more than one CTA, else made on first use
  std::uint32_t rank = 0;                            // in the cluster
  std::shared_ptr<check::CtaClocks> clocks;
  Stall stall;
};

// One kernel launch on its way.
struct Launch {
  std::uint64_t number = 0;
  OpId op = 0;
  ProcessId process = 0;
  Device* device = nullptr;
  std::shared_ptr<const Code> code;
  bool trusted = false;  // ModuleImage::trusted
  LaunchRequest request;
  Bank constants;  // with parameters and addresses in place
  std::vector<std::byte> params;
  std::uint64_t next_cta = 0, total_ctas = 0, live_ctas = 0;
  std::uint32_t warps_per_cta = 0, registers_per_cta = 0, shared_per_cta = 0;
  Address workspace = 0;   // cooperative groups' grid workspace
  std::size_t record = 0;  // index into Stats::kernels
  // Bytes: payload by port of the fabric, then what went to and from HBM by device. Empty: none.
  std::vector<std::uint64_t> ledger;
  std::vector<Cta*> ctas;  // resident; owned by the Simulator's pool
  RegisterPool* registers = nullptr;
  Time end = 0;
  // Programmatic dependent launch: griddepcontrol.wait holds paths until the launch that this one
  // depends on is over; its own dependents may start when every CTA has triggered or ended.
  int priority = 0;  // lower numbers first
  bool primary_over = true;
  std::uint64_t triggered_ctas = 0;
  std::vector<Path*> grid_waiters;
  std::shared_ptr<check::LaunchClocks> clocks;
  std::uint64_t schedule = 0;  // Stalls::OfLaunch
  std::int64_t crowd = 0;      // CTAs resident with it, if these are more than its process may have
};

}  // namespace allranks::node
