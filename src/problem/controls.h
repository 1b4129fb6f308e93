// Controls: solutions that must fail, whatever the problem. They show that its oracle looks.
//
//   zeros          fills the outputs with zeros
//   local          fills them with this rank's first input, over and over
//   previous_call  gives what the reference gave one call earlier; its first call is right
//
// These are made from problem.toml and the reference. They need kernels, device memory and one
// entry point; a problem without these has files in controls/, as has one with further controls. A
// file takes the place of the one with its name.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "problem/problem.h"

namespace allranks::problem {

struct Control {
  std::string name;
  std::string verdict;  // that it must get
  std::string region;
  std::string error;  // why it cannot be judged
};

// Sorted by name.
std::vector<Control> ControlsOf(const Problem& problem);

}  // namespace allranks::problem
