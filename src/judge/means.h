// What to tell the person when this machine cannot make a sandbox. (Means() itself is in
// sandbox.h.)
#pragma once

#include <string>

namespace allranks::judge {

// To be added to bubblewrap's own last words; may be empty.
std::string Remedy(const std::string& said);

}  // namespace allranks::judge
