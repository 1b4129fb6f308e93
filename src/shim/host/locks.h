// What other files need of the interposed locks.
#pragma once

namespace allranks::shim {

// In a forked child: nobody waits in this process any more.
void ForgetWaiters();

}  // namespace allranks::shim
