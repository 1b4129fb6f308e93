// What went on in the machine: for reports, statistics and listeners. The machine prints nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "node/ids.h"
#include "node/requests.h"
#include "node/status.h"
#include "node/time.h"
#include "node/traffic.h"

namespace allranks::node {

struct KernelRecord {
  std::string name;
  int device = 0;  // machine-wide number
  ProcessId process = 0;
  Dim3 grid, block;
  Time start = 0, end = 0;  // end < 0: did not end
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;  // global memory, as requested by lanes
  std::uint64_t remote_bytes = 0;                   // of these: of other devices or of hosts
  // How long what it moved takes at full rate: payload on the direction of a link that it used
  // most, and bytes of HBM on the device whose HBM it used most.
  Time link_busy = 0, hbm_busy = 0;
};

struct CopyRecord {
  int src_device, dst_device;
  std::uint64_t bytes;
  Time start, end;
};

struct Stats {
  std::uint64_t warp_instructions = 0, thread_instructions = 0;
  std::vector<KernelRecord> kernels;
  std::vector<CopyRecord> copies;
  std::uint64_t checked_accesses = 0, checked_bytes = 0;  // of warps, by the checker
  std::uint64_t chosen_loads = 0;        // strong loads that a schedule gave an older value
  std::uint64_t skipped_iterations = 0;  // of spin loops that were parked
  std::uint32_t ptx_above = 0;           // the highest target of PTX that is above the device's
  std::vector<LinkRecord> links;         // that carried something
  std::array<MoverRecord, kMovers> movers{};
};

// Who waits where: one line of a deadlock report. Also used for kernels that cannot become
// resident.
struct Waiter {
  int device = 0;
  ProcessId process = 0;
  std::string kernel;  // empty: no kernel but a stream waits
  Dim3 block_index;
  bool resident = true;
  std::uint32_t warp = 0, lanes = 0;  // lanes: mask
  std::string file;                   // source position of the wait, if known
  int line = 0;
  std::string inlined_at;  // calls it was inlined through: "a.cu:12, b.cu:40"
  std::string what;        // "ld.acquire.sys.u32", "bar.sync", "not resident", ...
  std::string object;      // "pinned#3", "device 1 allocation#7"
  std::uint64_t offset = 0;
  std::uint64_t seen = 0;  // value seen there
  bool has_object = false;
  std::string writer;  // last kernel known to have written there: "Send on device 1, a.cu:12, ..."
  int others = 0;      // further equal waiters folded into this one
};

// The work of a stream that is not done, in the order in which it was given.
struct QueuedWork {
  struct Item {
    std::string what;    // "kernel", "copy of 64 bytes", ...
    std::string kernel;  // its name; empty: it is none
    bool running = false;
  };
  ProcessId process = 0;
  int device = 0;
  int stream = 0;  // of the process and device, in the order of their creation; 0: the default one
  std::vector<Item> items;
};

// A kernel or copy that failed. The owning context is poisoned, as on hardware.
struct Fault {
  ProcessId process = 0;
  int device = 0;
  Status status = Status::kSuccess;
  std::string message;  // what, kernel, block, thread, file:line
};

// What kernels of a process have printed and nobody has taken yet.
struct DeviceText {
  std::string out, err;
};

// What cuCtxSetLimit sets of a device; the numbers are those of CUlimit.
enum class DeviceLimit : int { kPrintfFifo = 1, kMallocHeap = 2 };

}  // namespace allranks::node
