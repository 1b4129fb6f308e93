// The connection of one host thread, as the Core sees it: the socket is behind it
// (node_process.cpp), or a test.
#pragma once

#include <cstdint>

#include "wire/frame.h"
#include "wire/op.h"

namespace allranks::server {

class Link {
 public:
  virtual ~Link() = default;
  // `fd` need not stay open afterwards.
  virtual void Send(wire::Op op, std::uint64_t sequence, const wire::Blob& payload, int fd) = 0;
  // The core has forgotten the link already.
  virtual void Close() = 0;
};

}  // namespace allranks::server
