// The launcher's orders (launch_config.h) for a spec.
#pragma once

#include <string>
#include <vector>

#include "judge/sandbox.h"
#include "wire/frame.h"

namespace allranks::judge {

// As bytes. `in_group`: a control group bounds memory and processes, so rlimits need not. `status`
// is the launcher's end of its pipe, `collected` where results go.
Result<std::string> RenderOrders(const SandboxSpec& spec, bool in_group, int status,
                                 const std::vector<wire::Fd>& collected);

}  // namespace allranks::judge
