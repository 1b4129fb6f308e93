#include "judge/orders.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "judge/filter.h"
#include "judge/launch_config.h"

namespace allranks::judge {

namespace {
constexpr std::uint64_t kMemoryFile = 1 << 20;
}

Result<std::string> RenderOrders(const SandboxSpec& spec, bool in_group, int status,
                                 const std::vector<wire::Fd>& collected) {
  const SandboxLimits& limits = spec.limits;
  const auto config = std::make_unique<LaunchConfig>();
  config->status = status;
  config->no_address_randomization = spec.no_address_randomization;
  config->files = limits.file_bytes > 0 ? limits.files : 0;
  config->collect_bytes = limits.file_bytes;
  // Behind the judge's own count, for the time between two of its looks; the kernel counts by
  // ticks, and may count more.
  config->cpu_seconds = static_cast<std::uint64_t>(limits.cpu.count()) / 900 + 4;
  // Files in memory are files, too. The node has pinned memory in them, which counts as memory.
  config->file_bytes = spec.filter == SandboxSpec::Filter::kNode
                           ? limits.memory_bytes
                           : std::max<std::uint64_t>(limits.file_bytes, kMemoryFile);
  config->descriptors = limits.descriptors;
  if (!in_group) {
    config->processes = limits.processes;
    config->data_bytes = limits.memory_bytes;
  }
  if (spec.filter != SandboxSpec::Filter::kCompiler) {
    config->locked = true;
    // Compiled once: a millisecond each.
    static const Result<Filter> kRank = LockedFilter({});
    // The node runs each window in a copy of itself.
    static const Result<Filter> kNode = LockedFilter({.listens = true, .forks = true});
    static const Result<Filter> kTeam = LockedFilter({.listens = true, .network = true});
    const Result<Filter>& filter = spec.filter == SandboxSpec::Filter::kNode   ? kNode
                                   : spec.filter == SandboxSpec::Filter::kTeam ? kTeam
                                                                               : kRank;
    if (!filter) return Fail(filter.error());
    if (filter->size() > LaunchConfig::kMostFilter) return Fail("the filter is too long");
    config->filter_length = static_cast<std::uint32_t>(filter->size());
    std::copy(filter->begin(), filter->end(), config->filter);
  }
  if (spec.descriptors.size() > LaunchConfig::kMostKept ||
      collected.size() > LaunchConfig::kMostCollected) {
    return Fail("{}: too many descriptors or results", spec.name);
  }
  config->kept_count = static_cast<std::uint32_t>(spec.descriptors.size());
  std::copy(spec.descriptors.begin(), spec.descriptors.end(), config->kept);
  config->collected_count = static_cast<std::uint32_t>(collected.size());
  for (std::size_t i = 0; i < collected.size(); ++i) config->collected[i] = collected[i].get();

  std::string text(spec.folder.c_str(), spec.folder.size() + 1);
  const auto add = [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) text.append(word.c_str(), word.size() + 1);
    return static_cast<std::uint32_t>(words.size());
  };
  config->arguments = add(spec.command);
  config->variables = add(spec.environment);
  add(spec.collect);
  if (spec.command.empty() || text.size() > LaunchConfig::kMostText ||
      config->arguments >= LaunchConfig::kMostWords ||
      config->variables >= LaunchConfig::kMostWords) {
    return Fail("{}: no command, or one that is too long", spec.name);
  }
  std::copy(text.begin(), text.end(), config->text);
  return std::string(reinterpret_cast<const char*>(config.get()),
                     offsetof(LaunchConfig, text) + text.size());
}

}  // namespace allranks::judge
