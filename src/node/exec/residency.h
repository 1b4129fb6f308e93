// Residency: which CTAs fit on which SM, and their coming and going.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "node/code/code.h"
#include "node/machine.h"
#include "node/state/device.h"
#include "node/state/launch.h"
#include "node/state/warp.h"
#include "node/status.h"
#include "node/time.h"

namespace allranks::node {

class Simulator;

// Special registers that are the same for all threads of a launch are constants of it: fills those
// from slot `first` on.
void FillLaunchConstants(Launch& launch, std::size_t first);

class Residency {
 public:
  explicit Residency(Simulator& sim) : sim_(sim) {}

  Status CheckLaunch(const Code& code, const LaunchRequest& request,
                     std::uint32_t dynamic_shared_limit) const;
  int CtasPerSm(const Code& code, std::uint32_t threads, std::uint32_t dynamic_shared) const;
  // Clusters that fit on an empty device at the same time, each within one GPC.
  int MaxActiveClusters(const Code& code, std::uint32_t threads, std::uint32_t dynamic_shared,
                        const Dim3& cluster) const;
  // The cluster of a launch: as asked for, or as compiled; 0 if these differ.
  Dim3 ClusterSize(const Code& code, const Dim3& asked) const;
  void Dispatch(Device& device, Time at);
  void OpenRegisters(Warp& warp);
  void CloseRegisters(Warp& warp);
  void CtaDone(Cta& cta);
  // CTAs of a launch come to an SM, or go (negative).
  void Reside(Launch& launch, int sm_index, int ctas);
  std::function<void(Launch&, Time)> on_launch_done;
  std::function<void(Launch&, Time)> on_started;  // its last CTA has begun
  // Ends a launch at once: its CTAs are gone, nothing it queued will happen.
  void Kill(Launch& launch);

 private:
  void ReleaseCta(Cta& cta);
  Cta* NewCta(Launch& launch, std::uint64_t number, int sm, Time at);
  bool FindCluster(const Device& device, const Launch& launch, std::vector<int>* sms) const;
  bool StartCluster(Device& device, Launch& launch, Time at);
  bool FindSm(const Device& device, const Launch& launch, int* sm) const;

  Simulator& sim_;
  std::deque<Cta> cta_pool_;
  std::vector<Cta*> free_ctas_;
  std::map<std::size_t, RegisterPool> register_pools_;  // by size
  std::uint64_t cta_numbers_ = 0;
};

}  // namespace allranks::node
