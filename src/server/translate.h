// Parts of messages as the machine wants them, for those handlers that share them: a graph's nodes
// are made of the same parts as the streams' work.
#pragma once

#include <vector>

#include "node/requests.h"
#include "server/records.h"
#include "wire/messages.h"

namespace allranks::server {

node::Rows RowsOf(const wire::Rows& rows);
std::vector<node::ValueOp> ValuesOf(const std::vector<wire::ValueOp>& messages);
node::HostFunction FunctionOf(const wire::HostFunction& function);
wire::HostFunction FunctionOf(const node::HostFunction& function);
// False: it names what the process has not.
bool Translate(const Process& process, wire::Launch& message, node::LaunchRequest* launch);
bool Translate(const Process& process, wire::GraphNode& message, node::GraphNode* node);

}  // namespace allranks::server
