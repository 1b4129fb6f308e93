// The node's side of a connection.
#pragma once

#include <string>

#include "base/result.h"
#include "wire/frame.h"

namespace allranks::wire {

// A Unix socket at `path` at which others can connect, up to `backlog` at a time before they are
// accepted. Who connects is known by its credentials.
Result<Fd> Listen(const std::string& path, int backlog);

}  // namespace allranks::wire
