// What a judged run asks of the Core beside what any handler does: connections as a whole, and how
// the run stands. The Core implements it, Judged uses it.
#pragma once

#include <vector>

#include "node/finding.h"
#include "node/records.h"
#include "server/report.h"

namespace allranks::server {

class RunControl {
 public:
  virtual ~RunControl() = default;

  // Closes every connection.
  virtual void CloseLinks() = 0;
  // Devices have stopped for ever.
  virtual void DeclareDeadlock() = 0;
  // Faults of devices so far, in their order.
  virtual const std::vector<node::Fault>& faults() const = 0;
  virtual RunReport Report() = 0;
  // What the checker has found since the last call: readable names, paths below the current folder
  // without it.
  virtual std::vector<node::Finding> TakeFindings() = 0;
};

}  // namespace allranks::server
