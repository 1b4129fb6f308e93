// The end of a failed CHECK: one line on stderr, then abort(). No allocation beyond what the caller
// did, no exception, no handler: whoever supervises this process sees SIGABRT.
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace allranks::base_internal {

void CheckFailed(const char* file, int line, std::string_view condition,
                 const std::string& detail) {
  std::fprintf(stderr, "%s:%d: CHECK(%.*s) failed%s%s\n", file, line,
               static_cast<int>(condition.size()), condition.data(), detail.empty() ? "" : ": ",
               detail.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace allranks::base_internal
