#include "judge/process_tree.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace allranks::judge {

TreeUse LookAtTree(pid_t root) {
  constexpr std::size_t kMost = 4096;  // looking must end, whatever they start meanwhile
  static const double kTick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  static const auto kPage = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  TreeUse use;
  std::vector<pid_t> all = {root};
  for (std::size_t i = 0; i < all.size() && i < kMost; ++i) {
    std::ifstream stat(fmt::format("/proc/{}/stat", all[i]));
    std::string text;
    if (!std::getline(stat, text)) continue;
    const std::size_t end_of_name = text.rfind(')');
    if (end_of_name == std::string::npos) continue;
    std::istringstream fields(text.substr(end_of_name + 1));
    std::string skipped;
    std::uint64_t user = 0, system = 0, threads = 0;
    std::int64_t waited_user = 0, waited_system = 0;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    fields >> user >> system >> waited_user >> waited_system >> skipped >> skipped >> threads;
    use.cpu_seconds += static_cast<double>(user + system) * kTick;
    // What ended children used counts where they were waited for.
    use.cpu_seconds += static_cast<double>(waited_user + waited_system) * kTick;
    use.processes += static_cast<std::uint32_t>(threads);
    std::ifstream statm(fmt::format("/proc/{}/statm", all[i]));
    std::uint64_t size = 0, resident = 0;
    if (statm >> size >> resident) use.memory += resident * kPage;
    std::ifstream children(fmt::format("/proc/{}/task/{}/children", all[i], all[i]));
    for (pid_t child; children >> child;) all.push_back(child);
  }
  return use;
}

}  // namespace allranks::judge
