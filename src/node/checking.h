// The checker of a machine, for those who use it: Machine::checking(). MachineOptions::seed is its
// first schedule.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "node/finding.h"
#include "node/host_site.h"
#include "node/ids.h"
#include "node/time.h"

namespace allranks::node {

// Seed 0: strong loads return the newest value and nothing is perturbed. Else a strong load may
// return any value that coherence and causality permit, blocks begin and waits end a little late,
// and some blocks stall; the seed says which.
struct Schedule {
  std::uint64_t seed = 0;
  // Until then everything happens exactly as under schedule 0, so that nothing can tell the two
  // apart before.
  Time from = 0;
  // Stalls of up to 16 us instead of 1 ms: about as long as a call, and cheaper where others poll.
  // Of a directed schedule: 200 us instead of 2 ms.
  bool brief = false;
  // Not 0: a directed schedule. Nothing is drawn; at the `place`-th place of this level somebody is
  // late (state/delays.h).
  std::uint32_t level = 0;
  std::uint64_t place = 0;
  // Places are counted, for whoever chooses directed schedules by them.
  bool places = false;
  // Not 0: of large memory, weak accesses to one page of 128 are looked at, drawn from this.
  // Whoever cannot foresee which has to order all of them.
  std::uint64_t sample = 0;
};

// How many places of each level a run has come to at which somebody could have been late.
inline constexpr std::uint32_t kPlaceLevels = 5;
using PlaceCounts = std::array<std::uint64_t, kPlaceLevels>;

// Schedules by number, as users give them: 0; below a million drawn from the number; from there on
// directed: level * 1,000,000 + place.
inline constexpr std::uint64_t kDirected = 1'000'000;
Schedule ScheduleOf(std::uint64_t number);

class Checking {
 public:
  virtual ~Checking() = default;

  // Whether what happens from now on is checked. Only while no work is unfinished; what was known
  // of memory before is forgotten.
  virtual void SetChecking(bool on) = 0;
  // Only while no work is unfinished.
  virtual void SetSchedule(const Schedule& schedule) = 0;
  virtual PlaceCounts Places() const = 0;
  // What has been found since the last call, in the order of first occurrence but for what explains
  // others (FoldConsequences).
  virtual std::vector<Finding> TakeFindings() = 0;

  // Order between hosts. A process's host code is one thread to the checker: it knows of the work
  // that it has waited for. Here it meets the others: it learns what those know that have met
  // before, and tells them what it knows.
  virtual void HostMeets(ProcessId process) = 0;
  // All hosts know everything that has happened so far.
  virtual void HostsMeet() = 0;

  // Whether hosts tell of their own accesses to memory that devices see. If they do not, what
  // devices release to the system there counts as heard by the memory's owner, and what devices
  // acquire as said by it.
  virtual void SetHostsSpeak(bool on) = 0;
  // A host is about to access memory, by C++'s orders. No bytes: a fence.
  enum class HostOrder : std::uint8_t { kPlain, kRelaxed, kAcquire, kRelease, kBoth };
  virtual void HostAccess(ProcessId process, Address address, std::uint64_t size, bool write,
                          HostOrder order) = 0;
  // An instruction of host code that does not tell of its accesses has touched memory: by which
  // order is not known, so against strong device accesses of system scope it counts as strong, else
  // as plain. `site`: where it stands.
  virtual void HostTouches(ProcessId process, Address address, std::uint64_t size, bool write,
                           SiteId site) = 0;
  // Whether work of the process is over that its host has not waited for.
  virtual bool HostBehind(ProcessId process) const = 0;

  // What resolves sites for findings; must outlive the machine. Null: nothing does.
  virtual void SetSites(HostSites* sites) = 0;
  // The program is several processes, also where only one has used a device yet.
  virtual void SetSeveral() = 0;
  // The host's call that is being carried out: work and memory that it makes have this site.
  virtual void SetCaller(SiteId site) = 0;
  // The work of a graph's node was asked for where the node was made.
  virtual void SetNodeSite(GraphId graph, std::uint32_t place, SiteId site) = 0;
};

}  // namespace allranks::node
