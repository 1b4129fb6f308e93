// Whether a fault of --fault names something of the machine that a run is going to have.
#pragma once

#include <string>

#include "base/result.h"
#include "node/hardware/profile.h"

namespace allranks::cli {

// `ranks`: of --ranks; 0 if a launcher of the program's own decides. The message names what there
// is.
Status CheckFault(const std::string& text, const node::Profile& profile, int ranks);

}  // namespace allranks::cli
