// What goes wrong on purpose: a link at a fraction of its rate, a link, a NIC or a rank that dies,
// at a virtual time. Part of MachineOptions; written as text on the command line.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "node/time.h"

namespace allranks::node {

struct PlannedFault {
  std::string name;  // of a link ("gpu0-nvswitch") or of a vertex, meaning all its links
  int rank = -1;     // or a rank that dies
  double rate = 0;   // what is left of the links' rate; 0: they are dead
  Time at = 0;
};

// "link:gpu0-nvswitch=0.25@10us", "link:gpu0-nvswitch=dead", "nic:nic0=dead@1ms", "gpu:gpu3=dead",
// "rank:2=dead@50us"; without a time from the start on.
Result<PlannedFault> ParseFault(std::string_view text);

}  // namespace allranks::node
