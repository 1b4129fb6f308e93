#include "cli/version.h"

#include <fmt/format.h>

#include <commit.inc>

#include "cli/check_record.h"
#include "wire/op.h"

namespace allranks::cli {

std::string Version() { return ALLRANKS_VERSION; }

std::string LongVersion() {
  return fmt::format("allranks {} (commit {}, node {}, wire {})", Version(), kCommit,
                     JudgingSources().substr(0, 12), wire::kProtocolVersion);
}

}  // namespace allranks::cli
