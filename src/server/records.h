// What the node keeps of connections, threads and processes: plain data. Roster holds the records,
// Desk hands them to the handlers.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "node/host_site.h"
#include "node/hosts.h"
#include "node/ids.h"
#include "node/module_image.h"
#include "node/time.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace allranks::server {

class Link;  // link.h

// A connection.
struct Session {
  pid_t pid = 0;
  node::HostThread thread;  // rank < 0: none (yet, or any more)
  bool said_hello = false;
  int judged = -1;  // the rank whose socket it came through, in a judged run
};

// A key that a thread watches (wire::WatchKey).
struct Registration {
  wire::Key key;
  bool woken = false;
};

// A thread: its request, and what that waits for; released when it is answered or ends.
struct ThreadRecord {
  Link* link = nullptr;
  pid_t tid = 0;
  bool asked = false;  // a request is under way
  wire::Op op = wire::Op::kNone;
  std::uint64_t sequence = 0;
  // Only for the trace: when the call began, what it was given, where it was made.
  std::optional<node::Time> since;
  std::string args;
  node::SiteId site = 0;
  std::vector<wire::Fd> fds;
  std::vector<std::int16_t> fd_events;
  std::uint64_t when_done = 0, watch = 0;
  // The last poll of memory.
  struct Parked {
    std::vector<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>> watches;  // sorted
    bool timed = false;
    node::Time since = 0, at = 0;  // of the first and the last of a series of the same
    int doubts = 0;
    std::uint64_t doubted_acts = 0;  // Hosts::acts() at the last doubt
  } parked;
  std::vector<Registration> keys;
  bool in_wait_key = false;
  wire::Key wait_key;
  // A series of equal queries, all answered "not ready".
  struct Series {
    wire::Op op = wire::Op::kNone;
    std::uint64_t object = 0;
    int device = 0;
    int count = 0;
    node::Time first = 0, last = 0, period = 0;
  } series;
};

struct Child {
  std::int32_t rank = -1;
  pid_t pid = 0;
  bool ended = false;
  std::uint64_t end_order = 0;
};

// A fat binary on its way to the node, or all of it.
struct Image {
  std::uint64_t total = 0;
  wire::Blob bytes;  // none of an image that lies in a file
  std::optional<node::ModuleImage> whole;
};

struct Process {
  std::int32_t rank = -1, parent = -1;
  std::int32_t host = 0;    // the simulated one
  std::int32_t label = -1;  // the rank that a launcher gave it, for people to read
  std::uint64_t token = 0;
  pid_t pid = 0;
  bool watched = false;          // its end will be told by pid
  std::uint64_t exec_token = 0;  // between Exec and the new image's Hello
  node::HostThread exec_thread;
  std::vector<Child> children;
  std::optional<node::ProcessId> machine;  // made at the first call that needs a device
  bool pinned = false;
  bool shares_host_memory = false;  // whose contents other processes may change, too
  std::map<std::uint64_t, Image> images;
  std::uint64_t image_bytes = 0, queued_bytes = 0;
  std::unordered_set<std::uint64_t> modules;
  std::unordered_map<std::uint64_t, std::uint64_t> kernels;       // to their modules
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> loaded;  // (device, image) -> module
  std::unordered_map<std::uint64_t, int> streams, events;         // to their devices
  std::size_t allocations = 0;
};

// Threads that wait for what changes without a message. PollCalls enters them; they leave when they
// are answered or end.
struct Polls {
  std::set<node::HostThread> descriptors;  // in a WaitFd
  std::set<node::HostThread> memory;       // in a HostPoll
  bool ran_natively = false;               // somebody has, since descriptors were last looked at
};

}  // namespace allranks::server
