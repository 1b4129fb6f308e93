// reference.lock: how fast a problem's reference, baseline and NCCL are, by profile and case, so
// that judging need not run them and a sealed problem need not ship it. Written by `allranks
// problems check --update`. It names what it was made from: changed since, it is stale.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace allranks::problem {

struct LockedTimes {
  double isolated_ns = 0;  // one call, ranks entering together; exact to the picosecond
  double call_ns = 0;      // of a burst: (last close - first open) / calls
  std::uint64_t thread_instructions = 0;
  bool operator==(const LockedTimes&) const = default;
};

struct LockEntry {
  LockedTimes reference, baseline;
  std::optional<LockedTimes> nccl;  // of nccl.cu, where there is one
  bool operator==(const LockEntry&) const = default;
};

struct Lock {
  static constexpr int kSchema = 1;
  // HashOf reference.cu, baseline.cu and what decides in problem.toml; empty if there is no lock.
  // And of nccl.cu; empty if there is none.
  std::string reference, baseline, problem, nccl;
  std::map<std::string, std::map<std::string, LockEntry>> profiles;  // by profile and case

  bool empty() const { return profiles.empty(); }
  const LockEntry* Find(const std::string& profile, const std::string& one) const;
  // Of the reference, over all cases; 0 if there is none.
  std::uint64_t MostInstructions(const std::string& profile) const;
};

// A number for noticing change; no defence against anybody.
std::string HashOf(std::string_view text);

// The part of problem.toml that verdicts and times depend on: not title, level and the like.
std::string Deciding(std::string_view toml);

struct Problem;

// "reference.lock", of a variant "reference.bf16.lock".
std::filesystem::path LockPath(const Problem& problem);
// Without that file an empty one.
Result<Lock> LoadLock(const Problem& problem);
std::string Render(const Lock& lock);
// Why it is stale, or nothing.
std::string StaleBecause(const Lock& lock, const std::filesystem::path& folder);

}  // namespace allranks::problem
