// CTAs on SMs; see residency.h.
#include "node/exec/residency.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "node/check/checker.h"
#include "node/check/errors.h"
#include "node/code/lanes.h"
#include "node/code/special.h"
#include "node/exec/bulk.h"
#include "node/exec/cluster.h"
#include "node/exec/simulator.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kMaxResidentBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kMaxSpareBytes = std::uint64_t{64} << 20;  // of register files of one size

std::int64_t RoundUp(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

// In 64 bits: registers come from a cubin and dynamic shared memory from a client.
std::int64_t RegistersPerCta(const Profile& profile, const Code& code, std::uint32_t warps) {
  return RoundUp(std::int64_t{std::max(1u, code.registers)} * kLanes,
                 profile.sm.register_granularity) *
         warps;
}

std::int64_t SharedPerCta(const Profile& profile, const Code& code, std::uint32_t dynamic_shared) {
  return RoundUp(
      std::int64_t{code.counted_shared} + dynamic_shared + profile.sm.shared_reserved_per_cta,
      profile.sm.shared_granularity);
}

// One per slot. A compare's predicate operands are looked up like slots, so as many as there are of
// either.
std::size_t ReadyTimes(const Code& code) {
  return static_cast<std::size_t>(std::max(code.slots, code.predicates)) + 4;
}

// Bytes of one warp's registers, ready times and predicates.
std::size_t StorePerWarp(const Code& code) {
  return (static_cast<std::size_t>(code.slots) * kSlotBytes + ReadyTimes(code) * sizeof(Time) +
          static_cast<std::size_t>(code.predicates) * 4 + 63) /
         64 * 64;
}

// How many CTAs of a launch an SM still has room for.
int Room(const Sm& sm, const Launch& launch) {
  int room = std::min(sm.ctas, sm.warps / static_cast<int>(launch.warps_per_cta));
  room = std::min(room, sm.threads / static_cast<int>(launch.warps_per_cta * kLanes));
  room = std::min(room, sm.registers / static_cast<int>(launch.registers_per_cta));
  return std::min(room, sm.shared / static_cast<int>(std::max(1u, launch.shared_per_cta)));
}

// Takes (or, with ctas < 0, gives back) what CTAs of a launch need of an SM.
void Occupy(const Launch& launch, int sm_index, int ctas) {
  Sm& sm = launch.device->sms[static_cast<std::size_t>(sm_index)];
  sm.ctas -= ctas;
  sm.threads -= ctas * static_cast<int>(launch.warps_per_cta * kLanes);
  sm.warps -= ctas * static_cast<int>(launch.warps_per_cta);
  sm.registers -= ctas * static_cast<int>(launch.registers_per_cta);
  sm.shared -= ctas * static_cast<int>(launch.shared_per_cta);
}

}  // namespace

void FillLaunchConstants(Launch& launch, std::size_t first) {
  for (const ConstantRef& ref : launch.code->refs) {
    if (ref.source != ConstantRef::Source::kSpecial || ref.slot < first) continue;
    const auto value = LaunchWide(ref.special, launch.request.grid, launch.request.block);
    CHECK(value.has_value());
    Broadcast(launch.constants.at(ref.slot), *value, ref.bytes);
  }
}

Status Residency::CheckLaunch(const Code& code, const LaunchRequest& request,
                              std::uint32_t dynamic_shared_limit) const {
  const Dim3& g = request.grid;
  const Dim3& b = request.block;
  const auto& d = sim_.profile.device;
  if (g.x == 0 || g.y == 0 || g.z == 0 || b.x == 0 || b.y == 0 || b.z == 0)
    return Status::kInvalidValue;
  if (g.x > d.max_grid_x || g.y > d.max_grid_yz || g.z > d.max_grid_yz)
    return Status::kInvalidValue;
  if (b.x > static_cast<std::uint32_t>(d.max_cta_xy) ||
      b.y > static_cast<std::uint32_t>(d.max_cta_xy) ||
      b.z > static_cast<std::uint32_t>(d.max_cta_z) ||
      b.Count() > static_cast<std::uint64_t>(d.max_threads_per_cta)) {
    return Status::kInvalidValue;
  }
  if (b.Count() > code.max_threads) return Status::kInvalidValue;
  const Dim3 cluster = ClusterSize(code, request.cluster);
  if (cluster.x == 0 || cluster.Count() > static_cast<std::uint64_t>(d.max_cluster_size_opt_in))
    return Status::kInvalidClusterSize;
  if (g.x % cluster.x != 0 || g.y % cluster.y != 0 || g.z % cluster.z != 0)
    return Status::kInvalidValue;
  if (std::uint64_t{request.dynamic_shared} + code.counted_shared >
      std::max<std::uint64_t>(dynamic_shared_limit,
                              static_cast<std::uint64_t>(sim_.profile.sm.shared_default_bytes))) {
    return Status::kInvalidValue;
  }
  const int resident =
      CtasPerSm(code, static_cast<std::uint32_t>(b.Count()), request.dynamic_shared);
  if (resident == 0) return Status::kLaunchOutOfResources;
  if (cluster.Count() > 1 && MaxActiveClusters(code, static_cast<std::uint32_t>(b.Count()),
                                               request.dynamic_shared, cluster) == 0) {
    return Status::kInvalidClusterSize;
  }
  // Registers and local memory are backed for every resident thread.
  const std::uint64_t ctas =
      std::min(g.Count(), static_cast<std::uint64_t>(resident) * static_cast<std::uint64_t>(d.sms));
  const std::uint64_t warps = (b.Count() + kLanes - 1) / kLanes;
  if (ctas * warps * (StorePerWarp(code) + std::uint64_t{code.local_bytes} * kLanes) >
      kMaxResidentBytes) {
    return Status::kOutOfMemory;
  }
  return Status::kSuccess;
}

int Residency::CtasPerSm(const Code& code, std::uint32_t threads,
                         std::uint32_t dynamic_shared) const {
  const std::uint32_t warps = (threads + kLanes - 1) / kLanes;
  if (warps == 0) return 0;
  const auto& sm = sim_.profile.sm;
  std::int64_t fit = std::min<std::int64_t>(sm.max_ctas, sm.max_warps / warps);
  fit = std::min<std::int64_t>(fit, sm.max_threads / (warps * kLanes));
  fit = std::min(fit, sm.registers / RegistersPerCta(sim_.profile, code, warps));
  fit = std::min(fit, sm.shared_bytes / SharedPerCta(sim_.profile, code, dynamic_shared));
  return static_cast<int>(fit);
}

Dim3 Residency::ClusterSize(const Code& code, const Dim3& asked) const {
  const Dim3 request = {std::max(1u, asked.x), std::max(1u, asked.y), std::max(1u, asked.z)};
  if (code.cluster[0] == 0) return request;
  const Dim3 compiled = {code.cluster[0], std::max(1u, code.cluster[1]),
                         std::max(1u, code.cluster[2])};
  const bool same = request.x == compiled.x && request.y == compiled.y && request.z == compiled.z;
  return request.Count() == 1 || same ? compiled : Dim3{0, 0, 0};
}

int Residency::MaxActiveClusters(const Code& code, std::uint32_t threads,
                                 std::uint32_t dynamic_shared, const Dim3& cluster) const {
  const std::int64_t fit = CtasPerSm(code, threads, dynamic_shared);
  const auto size = static_cast<std::int64_t>(std::max<std::uint64_t>(1, cluster.Count()));
  std::int64_t clusters = 0;
  for (const std::int32_t sms : sim_.profile.device.gpc_sms) clusters += sms * fit / size;
  return static_cast<int>(clusters);
}

// The SMs of one GPC for all CTAs of a cluster, spread as evenly as what is free permits.
bool Residency::FindCluster(const Device& device, const Launch& launch,
                            std::vector<int>* sms) const {
  const auto size = static_cast<std::size_t>(launch.request.cluster.Count());
  const auto& gpcs = sim_.profile.device.gpc_sms;
  for (std::size_t i = 0; i < gpcs.size(); ++i) {
    const std::size_t gpc = (static_cast<std::size_t>(device.next_gpc) + i) % gpcs.size();
    const int first =
        std::accumulate(gpcs.begin(), gpcs.begin() + static_cast<std::ptrdiff_t>(gpc), 0);
    std::vector<int> room(static_cast<std::size_t>(gpcs[gpc]));
    int total = 0;
    for (std::size_t s = 0; s < room.size(); ++s) {
      room[s] = Room(device.sms[static_cast<std::size_t>(first) + s], launch);
      total += room[s];
    }
    if (total < static_cast<int>(size)) continue;
    sms->clear();
    while (sms->size() < size) {
      const auto best = std::max_element(room.begin(), room.end());
      --*best;
      sms->push_back(first + static_cast<int>(best - room.begin()));
    }
    return true;
  }
  return false;
}

bool Residency::StartCluster(Device& device, Launch& launch, Time at) {
  std::vector<int> sms;
  if (!FindCluster(device, launch, &sms)) return false;
  device.next_gpc = (device.next_gpc + 1) % static_cast<int>(sim_.profile.device.gpc_sms.size());
  const Dim3& grid = launch.request.grid;
  const Dim3& size = launch.request.cluster;
  const std::uint64_t number = launch.next_cta / sms.size();
  const Dim3 clusters = {grid.x / size.x, grid.y / size.y, grid.z / size.z};
  auto cluster = std::make_shared<Cluster>();
  cluster->index = {static_cast<std::uint32_t>(number % clusters.x),
                    static_cast<std::uint32_t>(number / clusters.x % clusters.y),
                    static_cast<std::uint32_t>(number / clusters.x / clusters.y)};
  for (std::uint32_t rank = 0; rank < sms.size(); ++rank) {
    const Dim3 index = {cluster->index.x * size.x + rank % size.x,
                        cluster->index.y * size.y + rank / size.x % size.y,
                        cluster->index.z * size.z + rank / size.x / size.y};
    const std::uint64_t linear =
        index.x + (index.y + std::uint64_t{index.z} * grid.y) * std::uint64_t{grid.x};
    Cta* cta = NewCta(launch, linear, sms[rank], at);
    cta->cluster = cluster;
    cta->rank = rank;
    if (sim_.checker != nullptr)
      sim_.checker->JoinCluster(*cta,
                                cluster->ctas.empty() ? cta->number : cluster->ctas[0]->number);
    cluster->ctas.push_back(cta);
    ++launch.next_cta;
  }
  return true;
}

bool Residency::FindSm(const Device& device, const Launch& launch, int* sm) const {
  const int count = static_cast<int>(device.sms.size());
  const auto threads = static_cast<int>(launch.warps_per_cta * kLanes);
  for (int i = 0; i < count; ++i) {
    const int candidate = (device.next_sm + i) % count;
    const Sm& s = device.sms[static_cast<std::size_t>(candidate)];
    if (s.ctas >= 1 && s.threads >= threads && s.warps >= static_cast<int>(launch.warps_per_cta) &&
        s.registers >= static_cast<int>(launch.registers_per_cta) &&
        s.shared >= static_cast<int>(launch.shared_per_cta)) {
      *sm = candidate;
      return true;
    }
  }
  return false;
}

void Residency::Dispatch(Device& device, Time at) {
  // Launches in order; a later one may fill what an earlier one cannot use only when all CTAs of
  // the earlier have started, as hardware's block scheduler does.
  for (Launch& launch : device.launches) {
    if (launch.warps_per_cta == 0) {
      launch.warps_per_cta =
          static_cast<std::uint32_t>((launch.request.block.Count() + kLanes - 1) / kLanes);
      launch.registers_per_cta = static_cast<std::uint32_t>(
          RegistersPerCta(sim_.profile, *launch.code, launch.warps_per_cta));
      launch.shared_per_cta = static_cast<std::uint32_t>(
          SharedPerCta(sim_.profile, *launch.code, launch.request.dynamic_shared));
      FillLaunchConstants(launch, 0);
      const std::size_t lines = StorePerWarp(*launch.code) / sizeof(RegisterPool::Line);
      launch.registers = &register_pools_[lines];
      launch.registers->lines = lines;
    }
    while (launch.next_cta < launch.total_ctas) {
      if (launch.request.cluster.Count() > 1) {
        if (!StartCluster(device, launch, at)) return;
      } else {
        int sm = 0;
        if (!FindSm(device, launch, &sm)) return;
        device.next_sm = (sm + 1) % static_cast<int>(device.sms.size());
        NewCta(launch, launch.next_cta++, sm, at);
      }
      if (launch.next_cta == launch.total_ctas && on_started) on_started(launch, at);
    }
  }
}

Cta* Residency::NewCta(Launch& launch, std::uint64_t number, int sm_index, Time at) {
  if (free_ctas_.empty()) {
    cta_pool_.emplace_back();
    free_ctas_.push_back(&cta_pool_.back());
  }
  Cta& cta = *free_ctas_.back();
  free_ctas_.pop_back();
  const Code& code = *launch.code;
  const Dim3& grid = launch.request.grid;
  cta.launch = &launch;
  cta.index = {static_cast<std::uint32_t>(number % grid.x),
               static_cast<std::uint32_t>(number / grid.x % grid.y),
               static_cast<std::uint32_t>(number / grid.x / grid.y)};
  cta.number = ++cta_numbers_;
  cta.sm = sm_index;
  cta.live_threads = static_cast<std::uint32_t>(launch.request.block.Count());
  cta.shared.assign(code.static_shared + launch.request.dynamic_shared, std::byte{kPoison});
  cta.shared_object = {};
  cta.shared_object.kind = Object::Kind::kShared;
  cta.shared_object.device = launch.device->number;
  cta.shared_object.size = cta.shared.size();
  cta.shared_object.data = cta.shared.data();
  cta.shared_object.name = "shared memory";
  if (sim_.errors != nullptr) check::Errors::WatchShared(cta.shared_object);
  cta.barriers.clear();
  cta.store_arrival = 0;
  cta.end = at;
  cta.triggered = false;
  cta.mbarriers.clear();
  cta.cluster = nullptr;
  cta.rank = 0;

  const Time held = sim_.checker == nullptr || !sim_.delays.on()
                        ? 0
                        : sim_.delays.At({Delays::Kind::kBlock, launch.code.get(), 0,
                                          launch.device->number, number},
                                         at, sim_.stats.kernels[launch.record].start);
  cta.warps.resize(launch.warps_per_cta);
  std::uint32_t threads = cta.live_threads;
  for (std::uint32_t w = 0; w < launch.warps_per_cta; ++w) {
    Warp& warp = cta.warps[w];
    warp.cta = &cta;
    warp.id = w;
    warp.live = threads >= kLanes ? kAllLanes : (1u << threads) - 1;
    threads -= std::min<std::uint32_t>(threads, kLanes);
    warp.pending_until = 0;
    warp.paths.clear();
    warp.joins.clear();
    warp.copies.clear();
    warp.cluster_arrived = 0;
    warp.seldom_edges = 0;
    warp.local.assign(std::size_t{code.local_bytes} * kLanes, std::byte{kPoison});
    warp.local_bytes = code.local_bytes;
    warp.slots = static_cast<std::uint32_t>(code.slots);
    warp.predicate_count = static_cast<std::uint32_t>(code.predicates);
    const Time late =
        sim_.order_seed == 0
            ? held
            : static_cast<Time>(sim_.Permuted((number * 64 + w + 1) ^ launch.schedule) % 512) *
                  sim_.costs.cycle;
    Path* path = sim_.NewPath(warp, warp.live, 0, at + late, -1);
    sim_.QueuePath(*path, at + late);
  }
  cta.clocks = nullptr;
  cta.stall = sim_.stalls.OfBlock(launch.schedule, number, launch.total_ctas);
  if (sim_.checker != nullptr && launch.clocks != nullptr) sim_.checker->BeginCta(cta);
  Reside(launch, sm_index, 1);
  launch.ctas.push_back(&cta);
  ++launch.live_ctas;
  sim_.last_change = std::max(sim_.last_change, at);
  sim_.timer_wakes = 0;
  return &cta;
}

void Residency::OpenRegisters(Warp& warp) {
  const Code& code = *warp.cta->launch->code;
  RegisterPool& pool = *warp.cta->launch->registers;
  if (pool.spare.empty()) {
    warp.file = std::make_unique_for_overwrite<RegisterPool::Line[]>(pool.lines);
  } else {
    warp.file = std::move(pool.spare.back());
    pool.spare.pop_back();
  }
  std::byte* memory = warp.file[0].bytes;
  // Instructions on matrices read the registers of all lanes, also of those that have no thread; of
  // code that grows nobody knows yet what it reads. Nothing that was in this memory may be seen.
  if (code.reads_unset || !code.matrices.empty() || code.growing != nullptr)
    std::memset(memory, kPoison, pool.lines * sizeof(RegisterPool::Line));
  const std::size_t ready = ReadyTimes(code);
  warp.registers = memory;
  memory += static_cast<std::size_t>(code.slots) * kSlotBytes;
  warp.ready = reinterpret_cast<Time*>(memory);
  std::memset(warp.ready, 0, ready * sizeof(Time));
  warp.predicates = reinterpret_cast<std::uint32_t*>(memory + ready * sizeof(Time));
}

void Residency::CloseRegisters(Warp& warp) {
  warp.registers = nullptr;
  if (warp.file == nullptr) return;
  RegisterPool& pool = *warp.cta->launch->registers;
  if ((pool.spare.size() + 1) * pool.lines * sizeof(RegisterPool::Line) <= kMaxSpareBytes) {
    pool.spare.push_back(std::move(warp.file));
  }
  warp.file = nullptr;
}

void Residency::ReleaseCta(Cta& cta) {
  ReadOpenCopies(cta);
  for (Warp& warp : cta.warps) {
    CloseRegisters(warp);
    sim_.stack_bytes -= warp.stack.size() + warp.grown_local;
    warp.stack = {};
    if (warp.grown_local != 0) warp.local = {};
    warp.grown_local = 0;
  }
  cta.number = 0;  // what was planned for it is void
  cta.mbarriers.clear();
  cta.cluster = nullptr;
  free_ctas_.push_back(&cta);
}

void Residency::Reside(Launch& launch, int sm_index, int ctas) {
  Occupy(launch, sm_index, ctas);
  Process& process = sim_.ProcessOf(launch.process);
  process.resident += ctas;
  if (process.max_resident != 0 && process.resident > process.max_resident)
    launch.crowd = process.resident;
}

void Residency::CtaDone(Cta& cta) {
  Launch& launch = *cta.launch;
  sim_.TriggerGrid(cta, cta.end);
  LeaveCluster(sim_, cta);
  Reside(launch, cta.sm, -1);
  const auto it = std::find(launch.ctas.begin(), launch.ctas.end(), &cta);
  CHECK(it != launch.ctas.end());
  *it = launch.ctas.back();
  launch.ctas.pop_back();
  --launch.live_ctas;
  // A kernel is over when its stores have arrived.
  const Time end = std::max(cta.end, cta.store_arrival);
  launch.end = std::max(launch.end, end);
  sim_.last_change = std::max(sim_.last_change, cta.end);
  sim_.timer_wakes = 0;
  ReleaseCta(cta);
  if (launch.next_cta < launch.total_ctas || launch.device->launches.size() > 1) {
    Dispatch(*launch.device, cta.end + sim_.profile.launch.cta);
  }
  if (launch.live_ctas == 0 && launch.next_cta == launch.total_ctas)
    on_launch_done(launch, launch.end);
}

void Residency::Kill(Launch& launch) {
  sim_.livelock.End();
  launch.next_cta = launch.total_ctas;
  for (Cta* cta : launch.ctas) {
    for (Warp& warp : cta->warps) {
      while (!warp.paths.empty()) sim_.RemovePath(*warp.paths.back());
    }
    Reside(launch, cta->sm, -1);
    ReleaseCta(*cta);
  }
  launch.ctas.clear();
  launch.grid_waiters.clear();
  launch.live_ctas = 0;
  sim_.last_change = sim_.now;
  sim_.timer_wakes = 0;
}

}  // namespace allranks::node
