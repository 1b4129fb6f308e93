// The checker as its users see it (checking.h), and what of the machine's own work it is told.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "node/machine/machine_impl.h"

namespace allranks::node {

void MachineImpl::SetChecking(bool on) {
  if (checker_ == nullptr || on == (sim_.checker != nullptr)) return;
  CHECK(operations_.empty());
  if (other_engine_ == nullptr) other_engine_ = MakeEngine(sim_, on);
  std::swap(engine_, other_engine_);
  sim_.checker = on ? checker_.get() : nullptr;
  sim_.errors = on ? errors_.get() : nullptr;
  checker_->HostsMeet(true);
  errors_->Forget();  // what is written meanwhile is not seen
}

Schedule ScheduleOf(std::uint64_t number) {
  const std::uint64_t level = number / kDirected;
  if (level == 0) return {.seed = number, .places = number == 0};
  return {.level = static_cast<std::uint32_t>(std::min<std::uint64_t>(level, kPlaceLevels)),
          .place = number % kDirected};
}

void MachineImpl::SetSchedule(const Schedule& schedule) {
  if (checker_ == nullptr) return;
  const bool directed = schedule.level != 0;
  // Under a directed schedule older values are kept and nothing is drawn.
  const std::uint64_t seed = directed ? kDirected : schedule.seed;
  const Time from = directed ? kTimeNever : schedule.from;
  checker_->SetSchedule(seed, schedule.sample);
  sim_.delays = {};
  if (directed || schedule.places) sim_.delays.Set(schedule.level, schedule.place, schedule.brief);
  brief_ = schedule.brief;
  // Who is first among equal times cannot change midway: tickets of both orders would mix.
  sim_.order_seed = seed != 0 && from == 0 ? seed : options_.order_seed;
  scheduled_ = seed != 0;
  SetLateWakes(seed, from);
}

std::vector<Finding> MachineImpl::TakeFindings() {
  if (checker_ == nullptr) return {};
  if (sim_.errors != nullptr && Stuck()) errors_->OnStuck();
  return checker_->TakeFindings();
}

void MachineImpl::HostMeets(ProcessId process) {
  if (sim_.checker != nullptr) checker_->HostMeets(process);
}

void MachineImpl::SetHostsSpeak(bool on) {
  if (checker_ != nullptr) checker_->SetHostsSpeak(on);
}

// What of these bytes of a process the checker knows, object by object.
template <class F>
void MachineImpl::ForHostBytes(ProcessId process, Address address, std::uint64_t size, bool write,
                               F f) {
  Place place;
  const auto anybody = [](const Mapping&) { return RangeError::Reason::kNone; };
  if (FindRange(sim_.ProcessOf(process).table, address, size, write, &place, anybody).reason !=
      RangeError::Reason::kNone)
    return;
  place.ForParts(size, [&](Object& object, std::uint64_t offset, std::uint64_t,
                           std::uint64_t part) { f(object, offset, part); });
}

void MachineImpl::HostAccess(ProcessId process, Address address, std::uint64_t size, bool write,
                             HostOrder order) {
  if (sim_.checker == nullptr || Find(process) == nullptr) return;
  if (size == 0) return checker_->HostFence(process, order);
  ForHostBytes(process, address, size, write,
               [&](Object& object, std::uint64_t offset, std::uint64_t part) {
                 checker_->HostAccess(process, object, offset, part, write, order);
               });
}

void MachineImpl::HostTouches(ProcessId process, Address address, std::uint64_t size, bool write,
                              SiteId site) {
  if (sim_.checker == nullptr || Find(process) == nullptr) return;
  ForHostBytes(process, address, size, write,
               [&](Object& object, std::uint64_t offset, std::uint64_t part) {
                 checker_->HostTouches(process, object, offset, part, write, site);
               });
}

void MachineImpl::SetSites(HostSites* sites) {
  if (checker_ != nullptr) checker_->SetSites(sites);
}

void MachineImpl::SetCaller(SiteId site) {
  if (checker_ != nullptr) checker_->caller = site;
}

void MachineImpl::SetNodeSite(GraphId graph, std::uint32_t place, SiteId site) {
  const auto it = graphs_.find(graph);
  if (it == graphs_.end() || place >= it->second.nodes.size()) return;
  it->second.sites.resize(it->second.nodes.size());
  it->second.sites[place] = site;
}

bool MachineImpl::HostBehind(ProcessId process) const {
  return sim_.checker != nullptr && checker_->HostBehind(process);
}

void MachineImpl::HostsMeet() {
  if (sim_.checker != nullptr) checker_->HostsMeet(operations_.empty());
}

}  // namespace allranks::node
