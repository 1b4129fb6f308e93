// Setting up the machine room, and questions about it.
#include "node/state/state.h"

#include <fmt/format.h>

#include <algorithm>

namespace allranks::node {
namespace {

constexpr std::size_t kSmRing = 1024;  // buckets of an SM's servers: there are a thousand of them
// Accesses of an SM's warps are less than a stall apart, and its port is asked for each: a short
// ring stays in the cache.
constexpr std::size_t kPortRing = 256;

}  // namespace

State::State(const Profile& p, int count, std::uint64_t memory_limit)
    : profile(p),
      fabric(profile, profile.CyclesToTime(profile.time.bucket_cycles)),
      backing(memory_limit),
      livelock(*this) {
  livelock.End();
  const auto cycles = [&](std::int64_t n) { return profile.CyclesToTime(n); };
  costs.cycle = cycles(1);
  // A warp's instructions depend on each other about every second time.
  costs.step = cycles(std::max(1, profile.latency.alu / 2));
  costs.shared = cycles(profile.latency.shared);
  costs.l1 = cycles(profile.latency.l1);
  costs.l2 = cycles(profile.latency.l2);
  costs.hbm = cycles(profile.latency.hbm);
  costs.atomic = cycles(profile.latency.atomic);
  costs.barrier = cycles(profile.latency.barrier);
  costs.fence_cta = cycles(profile.latency.fence_cta);
  costs.fence_gpu = cycles(profile.latency.fence_gpu);
  costs.fence_sys = cycles(profile.latency.fence_sys);
  costs.cluster = cycles(profile.latency.cluster);
  costs.host = fabric.HostOf(0) < 0 ? 0 : fabric.Way(fabric.HostOf(0), 0).latency;
  l2_stamps = static_cast<std::uint32_t>(profile.device.l2_bytes / (128 * 32));
  costs.quantum = cycles(profile.time.quantum_cycles);

  const Time bucket = cycles(profile.time.bucket_cycles);
  // GB/s are bytes per ns.
  const auto bytes = [&](double gbs) { return gbs * static_cast<double>(bucket) / 1000.0; };
  devices.resize(static_cast<std::size_t>(count));
  heads.resize(devices.size(), kTimeNever);
  for (int d = 0; d < count; ++d) {
    Device& device = devices[static_cast<std::size_t>(d)];
    device.number = d;
    device.host = static_cast<int>(d / profile.machine.devices_per_host);
    device.l2 = Server(bucket, bytes(profile.bandwidth.l2_gbs));
    device.hbm =
        Server(bucket, bytes(profile.bandwidth.hbm_gbs * profile.bandwidth.hbm_efficiency));
    device.engines.resize(static_cast<std::size_t>(profile.copy_engine.count));
    device.sms.resize(static_cast<std::size_t>(profile.device.sms));
    for (Sm& sm : device.sms) {
      sm.threads = profile.sm.max_threads;
      sm.warps = profile.sm.max_warps;
      sm.ctas = profile.sm.max_ctas;
      sm.registers = profile.sm.registers;
      sm.shared = profile.sm.shared_bytes;
      sm.port = Server(bucket, bytes(profile.bandwidth.sm_l2_gbs), kPortRing);
      sm.tensor = Server(bucket, 4.0 * static_cast<double>(profile.time.bucket_cycles), kSmRing);
      // A pass gives each bank's word once: 128 bytes.
      sm.banks = Server(bucket,
                        static_cast<double>(profile.time.bucket_cycles) *
                            profile.bandwidth.shared_bytes_per_cycle / 128,
                        kPortRing);
      sm.issue = Server(bucket,
                        static_cast<double>(profile.sm.issue_per_cycle) *
                            static_cast<double>(profile.time.bucket_cycles),
                        kSmRing);
    }
  }
}

bool State::SameFabric(int host, int other) const {
  const auto per_host = static_cast<int>(profile.machine.devices_per_host);
  const int pair[] = {host * per_host, other * per_host};
  return host == other || fabric.SharesSwitch(pair);
}

std::string State::NoAccess(const Process& process, const Mapping& mapping, int device) const {
  const int home = mapping.object->device;
  const int peer = home < 0 ? -1 : OrdinalOf(process, home);
  const std::string whose = peer < 0 ? "" : fmt::format(" of device {}", peer);
  return fmt::format("accesses {}{} without {} from device {}", mapping.object->name, whose,
                     mapping.Grant(), OrdinalOf(process, device));
}

}  // namespace allranks::node
