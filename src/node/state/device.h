// Where work happens and for whom: a device with its SMs, what each has free and when it is busy,
// and what the machine room knows of a process. Plain data of the Simulator.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "node/hardware/servers.h"
#include "node/ids.h"
#include "node/state/launch.h"
#include "node/state/memory.h"
#include "node/state/path_queue.h"
#include "node/status.h"
#include "node/time.h"

namespace allranks::node {

struct Sm {
  std::int32_t threads = 0, warps = 0, ctas = 0, registers = 0, shared = 0;  // free
  Server issue;
  Server port;    // to the L2 and beyond: bytes
  Server tensor;  // tensor cores: cycles of a quarter of the SM
  Server banks;   // shared memory: passes over its banks
};

struct Device {
  int number = 0;  // machine-wide
  int host = 0;
  std::vector<Sm> sms;
  int next_sm = 0, next_gpc = 0;
  std::list<Launch> launches;  // started and not finished, oldest first
  PathQueue queue;
  Server l2, hbm;
  std::uint64_t l2_filled = 0;  // lines that have come into the L2
  std::vector<Time> engines;    // copy engines: when each is free
  std::vector<Time> atomics;    // units at the L2, by address: when each is free; made on first use
  std::uint64_t allocated = 0;
};

// What the machine room knows of a process.
struct Process {
  ProcessId id = 0;
  int rank = 0, host = 0;
  bool alive = false;
  std::vector<int> visible;   // machine-wide numbers of its devices, in its own order
  std::vector<int> ordinals;  // the other way round, -1 for those it does not see
  AddressTable table;
  Arena pinned;
  std::vector<Arena> device_arenas;             // per visible device
  std::vector<DeviceSet> peers;                 // per visible device: the visible ones it may use
  std::vector<Status> sticky;                   // per visible device
  std::int64_t resident = 0, max_resident = 0;  // CTAs of all its kernels; most of them, 0: any
};

}  // namespace allranks::node
