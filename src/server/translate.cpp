// Messages to requests of the machine. translate.h says for whom.
#include "server/translate.h"

#include <utility>

namespace allranks::server {

node::Rows RowsOf(const wire::Rows& rows) {
  return {rows.height, rows.depth, rows.dst_pitch, rows.dst_slice, rows.src_pitch, rows.src_slice};
}

std::vector<node::ValueOp> ValuesOf(const std::vector<wire::ValueOp>& messages) {
  std::vector<node::ValueOp> values;
  for (const wire::ValueOp& value : messages) {
    values.push_back({.kind = static_cast<node::ValueOp::Kind>(value.kind),
                      .compare = static_cast<node::ValueOp::Compare>(value.compare),
                      .width = value.width,
                      .address = value.address,
                      .value = value.value});
  }
  return values;
}

node::HostFunction FunctionOf(const wire::HostFunction& function) {
  return {.function = function.function,
          .argument = function.argument,
          .after_error = function.after_error};
}

wire::HostFunction FunctionOf(const node::HostFunction& function) {
  return {.function = function.function,
          .argument = function.argument,
          .after_error = function.after_error};
}

bool Translate(const Process& process, wire::Launch& message, node::LaunchRequest* launch) {
  if (!process.kernels.contains(message.kernel)) return false;
  if (message.trigger_event != 0 && !process.events.contains(message.trigger_event)) return false;
  launch->kernel = message.kernel;
  launch->grid = {message.grid.x, message.grid.y, message.grid.z};
  launch->block = {message.block.x, message.block.y, message.block.z};
  launch->cluster = {message.cluster.x, message.cluster.y, message.cluster.z};
  launch->dynamic_shared = message.dynamic_shared;
  launch->cooperative = message.cooperative;
  if (message.has_priority) launch->priority = message.priority;
  launch->programmatic = message.programmatic;
  launch->trigger_event = message.trigger_event;
  launch->trigger_at_start = message.trigger_at_start;
  launch->params = std::move(message.params);
  return true;
}

bool Translate(const Process& process, wire::GraphNode& message, node::GraphNode* node) {
  node->kind = static_cast<node::GraphNode::Kind>(message.kind);
  node->device = message.device;
  node->after = std::move(message.after);
  switch (message.kind) {
    case wire::GraphNode::Kind::kEmpty:
      return true;
    case wire::GraphNode::Kind::kKernel:
      return Translate(process, message.launch, &node->launch);
    case wire::GraphNode::Kind::kCopy:
      node->copy.dst = message.copy.dst;
      node->copy.src = message.copy.src;
      node->copy.size = message.copy.size;
      node->copy.rows = RowsOf(message.copy.rows);
      return node->copy.dst != 0 && node->copy.src != 0;
    case wire::GraphNode::Kind::kMemset:
      node->memset.dst = message.memset.dst;
      node->memset.value = message.memset.value;
      node->memset.width = message.memset.width;
      node->memset.count = message.memset.count;
      node->memset.rows = RowsOf(message.memset.rows);
      return true;
    case wire::GraphNode::Kind::kHost:
      node->host = FunctionOf(message.host);
      return true;
    case wire::GraphNode::Kind::kRecord:
    case wire::GraphNode::Kind::kWait:
      node->event = message.event;
      return process.events.contains(message.event);
    case wire::GraphNode::Kind::kValues:
      node->values = ValuesOf(message.values);
      return true;
  }
  return false;
}

}  // namespace allranks::server
