// The simulated hardware as data: a Profile is read from a TOML file under profiles/ once, when a
// node starts, and is constant from then on. Nothing else in src/node knows a figure of a real
// machine. Each value in the TOML names its public source or says "estimate"; `validated` says how
// far the whole has been compared with published measurements.
//
// In the file a time is in nanoseconds or SM cycles, as its key says (`one_way_ns`, `alu` in
// [latency]); in the structs below nanoseconds have become Time (ps) and cycles stay cycles,
// because the engine counts a device's work in cycles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/hardware/topology.h"
#include "node/time.h"

namespace allranks::node {

struct Profile {
  std::string name;
  std::string what;          // one line for people
  std::int64_t version = 0;  // of the file's format; kVersion is the only one read
  // How far the whole was compared with hardware: "fitted" (against published measurements,
  // docs/fidelity.md), "rough" (constants are of the right size) or "untested".
  std::string validated;

  static constexpr std::int64_t kVersion = 2;

  struct Machine {
    std::int64_t hosts = 0;
    std::int64_t devices_per_host = 0;
  } machine;

  struct Device {
    std::string name;
    std::int32_t compute_major = 0;  // from `compute_capability = "9.0"`
    std::int32_t compute_minor = 0;
    std::int64_t clock_mhz = 0;  // SM clock under load; the unit of every "cycle" in the profile
    std::int64_t memory_clock_mhz = 0;
    std::int64_t memory_bus_bits = 0;
    std::int32_t sms = 0;
    std::int32_t gpcs = 0;
    std::vector<std::int32_t> gpc_sms;  // SMs of each GPC: where a cluster must fit
    std::int64_t memory_bytes = 0;
    std::int64_t l2_bytes = 0;
    std::int64_t total_const_mem = 0;
    std::int32_t max_threads_per_cta = 0;
    std::int64_t max_grid_x = 0;
    std::int64_t max_grid_yz = 0;
    std::int32_t max_cta_xy = 0;  // largest blockDim.x and blockDim.y
    std::int32_t max_cta_z = 0;
    std::int32_t max_cluster_size = 0;  // without opting in to a non-portable size
    std::int32_t max_cluster_size_opt_in = 0;
    bool vector16_atomic = false;  // a 16-byte access is single-copy atomic (LL protocols)
  } device;

  struct Sm {
    std::int32_t max_threads = 0;
    std::int32_t max_warps = 0;
    std::int32_t max_ctas = 0;
    std::int32_t registers = 0;             // 32-bit registers
    std::int32_t register_granularity = 0;  // registers are given to a warp in multiples of this
    std::int32_t max_registers_per_thread = 0;
    std::int32_t shared_bytes = 0;             // all an SM can give to its CTAs
    std::int32_t shared_per_cta_bytes = 0;     // with cudaFuncAttributeMaxDynamicSharedMemorySize
    std::int32_t shared_default_bytes = 0;     // without it
    std::int32_t shared_reserved_per_cta = 0;  // the system's part, counted for every CTA
    std::int32_t shared_granularity = 0;
    std::int32_t schedulers = 0;
    std::int32_t issue_per_cycle = 0;  // warp instructions per SM and cycle
  } sm;

  // From issue to the first cycle in which a dependent instruction can issue, without queueing.
  struct Latency {
    std::int32_t alu = 0;
    std::int32_t fp64 = 0;
    std::int32_t sfu = 0;
    std::int32_t shared = 0;
    std::int32_t constant = 0;
    std::int32_t l1 = 0;
    std::int32_t l2 = 0;
    std::int32_t hbm = 0;
    std::int32_t atomic = 0;   // at L2, on top of `l2`: occupies the line, so it also serialises
    std::int32_t barrier = 0;  // bar.sync once the last warp has arrived
    std::int32_t fence_cta = 0;
    std::int32_t fence_gpu = 0;  // with nothing outstanding; outstanding stores are waited for
    std::int32_t fence_sys = 0;
    std::int32_t cluster = 0;  // shared memory of another SM of the cluster
  } latency;

  // GB/s are 10^9 bytes per second.
  struct Bandwidth {
    double hbm_gbs = 0;
    double hbm_efficiency = 0;  // the part of hbm_gbs that a streaming kernel reaches
    double l2_gbs = 0;
    std::int32_t l1_bytes_per_cycle = 0;      // per SM
    std::int32_t shared_bytes_per_cycle = 0;  // per SM
    std::int32_t l2_sector_bytes = 0;
    std::int32_t line_bytes = 0;
    double sm_l2_gbs = 0;  // of one SM, to its L2 and beyond
  } bandwidth;

  // Links and what they join (topology.h); from [links.*] and [topology].
  Topology topology;

  // What a switch does with a multicast object (multimem instructions).
  struct Multicast {
    bool supported = false;
    double efficiency = 0;  // of a port's rate, for replicated stores and reductions
    Time reduce = 0;        // `reduce_ns`: the switch's own time for a reduction
  } multicast;

  struct CopyEngine {
    std::int32_t count = 0;  // of a device
    Time startup = 0;        // `startup_ns`: from its turn in the stream to its first byte
    double gbs = 0;          // of one engine
  } copy_engine;

  struct Launch {
    Time kernel = 0;         // `kernel_ns`: from a free stream head to the first instruction
    Time between = 0;        // `between_ns`: end of a kernel to the start of the next in its stream
    Time host_call = 0;      // `host_call_ns`: CPU time of a launch
    Time api_call = 0;       // `api_call_ns`: CPU time of another call that enqueues or queries
    Time sync = 0;           // `sync_ns`: from completion to the return of a host's synchronise
    Time event = 0;          // `event_ns`: a device's cost to record an event or honour a wait
    Time cta = 0;            // `cta_ns`: a free slot to the first instruction of the next CTA
    Time host_function = 0;  // `host_function_ns`: a stream's turn to the call on the host
    Time graph = 0;          // `graph_ns`: from a free stream head to a graph's first operation
    Time graph_call = 0;     // `graph_call_ns`: CPU time of a graph's launch
  } launch;

  struct Host {
    Time poll = 0;  // `poll_ns`: period of a host thread that spins on mapped memory
  } host;

  struct TimeModel {
    std::int32_t quantum_cycles = 0;     // how far a warp may run ahead of the queue
    std::int32_t bucket_cycles = 0;      // width of a capacity server's bucket
    Time globaltimer_resolution = 0;     // `globaltimer_resolution_ns`
    std::vector<Time> globaltimer_skew;  // `globaltimer_skew_ns`: one per device of a host, added
  } time;

  std::int64_t DeviceCount() const { return machine.hosts * machine.devices_per_host; }

  // Start of the cycle after `cycles` cycles, in ps, rounded to nearest. Computed from the count
  // and never by adding rounded cycles up, so an hour of cycles is still exact to a picosecond.
  Time CyclesToTime(std::int64_t cycles) const {
    const std::int64_t whole = cycles / device.clock_mhz;
    const std::int64_t rest = cycles % device.clock_mhz;
    return whole * 1'000'000 + (rest * 1'000'000 + device.clock_mhz / 2) / device.clock_mhz;
  }

  // The last cycle that has begun at `at`; CyclesToTime's inverse.
  std::int64_t TimeToCycles(Time at) const {
    const std::int64_t whole = at / 1'000'000;
    const std::int64_t rest = at % 1'000'000;
    std::int64_t cycles = whole * device.clock_mhz + rest * device.clock_mhz / 1'000'000;
    if (CyclesToTime(cycles + 1) <= at) ++cycles;
    return cycles;
  }

  Time SkewOf(std::int64_t device_index) const {
    if (time.globaltimer_skew.empty()) return 0;
    return time
        .globaltimer_skew[static_cast<std::size_t>(device_index) % time.globaltimer_skew.size()];
  }
};

// Reads and checks a profile. Every key must be present, of its type and within its range, and no
// other key may be: the message names the file, the line, the key and what is expected there.
// A file may extend another one beside it (`extends = "h100x8"`): what it does not say itself is as
// there.
Result<Profile> LoadProfile(const std::string& path);

// The same from text; `origin` stands for the path in messages.
Result<Profile> ParseProfile(std::string_view text, const std::string& origin);

}  // namespace allranks::node
