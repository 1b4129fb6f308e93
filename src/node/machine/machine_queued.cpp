// What is queued in which stream, for a report of where a run stands.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "node/machine/machine_impl.h"

namespace allranks::node {
namespace {

// Empty: the node's own, which no program has asked for.
std::string WhatIs(const Operation& op) {
  switch (op.kind) {
    case Operation::Kind::kKernel:
      return "kernel";
    case Operation::Kind::kCopy:
      return fmt::format("copy of {} bytes", op.size);
    case Operation::Kind::kMemset:
      return fmt::format("memset of {} bytes", op.size);
    case Operation::Kind::kFree:
      return "cudaFreeAsync";
    case Operation::Kind::kMove:
      return "move of managed memory";
    case Operation::Kind::kRecord:
      return "event record";
    case Operation::Kind::kHost:
      return "host function";
    case Operation::Kind::kValues:
      return op.watch != 0 ? "wait for a value in memory" : "stream memory operation";
    case Operation::Kind::kGraph:
      return "graph launch";
    case Operation::Kind::kJoin:
    case Operation::Kind::kAct:
      break;
  }
  return "";
}

}  // namespace

std::vector<QueuedWork> MachineImpl::Queued() const {
  // Streams by number: the default one is 0.
  std::map<StreamId, int> numbers;
  std::map<std::pair<ProcessId, int>, int> last;
  for (const auto& [id, stream] : streams_)
    numbers[id] = stream.legacy ? 0 : ++last[{stream.process, stream.device}];
  std::map<std::tuple<ProcessId, int, int>, QueuedWork> streams;
  for (const auto& [id, op] : operations_) {
    const std::string what = WhatIs(op);
    const auto number = numbers.find(op.stream);
    if (what.empty() || op.voided || op.finished || number == numbers.end()) continue;
    QueuedWork& work = streams[{op.process, op.device, number->second}];
    std::tie(work.process, work.device, work.stream) =
        std::tuple(op.process, op.device, number->second);
    work.items.push_back(
        {what, op.kind == Operation::Kind::kKernel ? op.code->name : "", op.started});
  }
  std::vector<QueuedWork> all;
  for (auto& [key, work] : streams) all.push_back(std::move(work));
  return all;
}

}  // namespace allranks::node
