// What a Core is started with: the bounds of what processes may have, the ways out to the operating
// system, and the judge's side of a judged run. node_process.cpp fills it; tests do so by hand.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/frame.h"
#include "wire/op.h"

namespace allranks::server {

class Trace;  // trace.h

struct CoreLimits {
  int processes = 1024;           // alive at a time
  int threads = 1024;             // of a process
  std::size_t children = 65'536;  // of a process, whose end it has not asked for
  std::size_t objects = 1 << 20;  // streams, events, modules and allocations of a process, each
  std::uint64_t image_bytes = 1ull << 30;
  std::uint64_t queued_bytes = 256ull << 20;  // of copies under way; what is beyond waits
  std::size_t keys = 1024;                    // registrations of a thread
};

struct JudgedOptions {
  int world = 0;                      // as many listening sockets there are
  std::span<const std::byte> inputs;  // written by the judge
  std::span<std::byte> outputs;       // read by it
  // The files of which these are the bytes: what `split` makes maps them. -1: there is no `split`.
  int inputs_fd = -1, outputs_fd = -1;
  std::vector<std::string> libraries;  // files whose images ranks may load
  // A frame for the judge.
  std::function<void(wire::Op, std::uint64_t sequence, const wire::Blob& payload)> send;
  // Splits the process for one graph window: true in the copy, false in the original, once the copy
  // has ended. Without it windows of a case follow each other in one process.
  std::function<bool()> split;
  // The copy's end; does not return.
  std::function<void(bool trace)> leave;
};

struct CoreOptions {
  std::int64_t patience_ms = 3'000;
  // Ranks of a launcher fill the simulated hosts one after the other, so many on each; 0: one for
  // each device.
  int ranks_per_host = 0;
  bool check = false;  // the machine was made to check: its findings are asked for
  CoreLimits limits;
  std::function<void(const std::string&)> log;
  // A process is known by this pid from now on. True: ProcessExited will be called when it has
  // ended and everything it had open is closed. Else the end of its connections counts for that.
  std::function<bool(pid_t)> watch_process;
  std::function<void(pid_t)> kill_process;  // for ranks that a planned fault ends
  const std::atomic<bool>* interrupt = nullptr;
  Trace* trace = nullptr;               // is told of calls; null: nobody asked
  std::optional<JudgedOptions> judged;  // a judged run; pids mean nothing then
};

}  // namespace allranks::server
