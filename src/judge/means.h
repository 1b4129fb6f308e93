// What to tell the person when this machine cannot make a sandbox. (Means() itself is in
// sandbox.h.)
#pragma once

#include <string>

namespace allranks::judge {

// To be added to bubblewrap's own last words; may be empty.
std::string Remedy(const std::string& said);
// What can be done without a sandbox, to be added to why there is none.
std::string TrustedRemedy();

}  // namespace allranks::judge
