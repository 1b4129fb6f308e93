// Everything that NCCL's installed device headers offer, instantiated once: teams, pointers,
// windows, LSA barriers, LL all-to-all, GIN with both back ends, hybrid barriers. Compiled to PTX
// only.
#include <nccl_device.h>

namespace {

constexpr auto kRelaxed = cuda::memory_order_relaxed;
constexpr auto kAcquire = cuda::memory_order_acquire;
constexpr auto kRelease = cuda::memory_order_release;
constexpr auto kAcqRel = cuda::memory_order_acq_rel;

template <typename Coop>
__device__ void Bcast(Coop coop, unsigned* out) {
  out[0] += ncclCoopBcast(coop, out[1], 3);
  ulong2 wide{out[2], out[3]};
  wide = ncclCoopBcast(coop, wide, 0, /*entrySync=*/false);
  out[4] = static_cast<unsigned>(wide.x + wide.y + coop.size() + coop.num_threads());
  out[5] = ncclCoopGetLaneMask(coop) + ncclCoopIsThread(coop) + ncclCoopWithinWarp(coop);
  auto some = ncclCoopCoalesced(coop);
  some.sync();
  out[6] = some.thread_rank();
}

}  // namespace

__global__ void Coops(unsigned* out) {
  Bcast(ncclCoopTile<8>(), out);
  Bcast(ncclCoopThread(), out);
  Bcast(ncclCoopWarp(), out);
  Bcast(ncclCoopLanes(out[9]), out);
  Bcast(ncclCoopCoalesced(), out);
  Bcast(ncclCoopWarpSpan(1, 2, 3), out);
  Bcast(ncclCoopCta(), out);
  out[7] = nccl::utility::opaqueZero();
}

__global__ void Teams(ncclDevComm comm, int peer, int* out) {
  const ncclTeam world = ncclTeamWorld(comm), lsa = ncclTeamLsa(comm), rail = ncclTeamRail(comm);
  out[0] = ncclTeamRankIsMember(world, lsa, peer);
  out[1] = ncclTeamRankToTeam(rail, lsa, peer);
  out[2] = ncclTeamRankToWorld(comm, rail, peer);
  out[3] = ncclTeamRankToLsa(comm, lsa, peer);
  out[4] = ncclTeamInnerFactor(world, peer).rank;
  out[5] = ncclTeamOuterFactor(world, peer).stride;
  out[6] = ncclTeamRankInDifference(world, lsa, peer);
  unsigned long long quotient, rest;
  nccl::utility::idivmodFast64(reinterpret_cast<uint64_t*>(&quotient),
                               reinterpret_cast<uint64_t*>(&rest), out[7], peer,
                               nccl::utility::idivRcp64_upto64(peer));
  out[8] = static_cast<int>(quotient + rest);
  out[9] = nccl::utility::imulRcp32(out[10], out[11], out[12], out[13]);
  out[14] = static_cast<int>(nccl::utility::imulRcp64(out[10], out[11], out[12], out[13]));
  out[15] = nccl::utility::idivRcp32_upto64(peer) + nccl::utility::imodFast32(peer, 7, out[16]);
}

template <typename T>
__device__ void Pointers(ncclDevComm const& comm, ncclWindow_t window, int peer, T* out) {
  ncclSymPtr<T> at(window, 64);
  at += peer;
  at = at + 3ul - 1;
  out[0] = *at.localPtr();
  out[1] = *at.lsaPtr(peer);
  out[2] = *at.peerPtr(peer);
  out[3] = *at.peerPtr(ncclTeamRail(comm), peer);
  *at.multimemPtr(comm.lsaMultimem) = out[4];
  *at.lsaMultimemPtr(comm) = out[5];
  const ncclSymPtr<char> buffer = ncclGetResourceBuffer(comm, 3);
  *buffer.localPtr() = 1;
}

__global__ void Windows(ncclDevComm comm, ncclWindow_t window, int peer, int* out) {
  Pointers<int>(comm, window, peer, out);
  Pointers<double>(comm, window, peer, reinterpret_cast<double*>(out));
  Pointers<char>(comm, window, peer, reinterpret_cast<char*>(out));
  Pointers<short>(comm, window, peer, reinterpret_cast<short*>(out));
  int* p = static_cast<int*>(ncclGetLocalPointer(window, 16));
  p[0] = *static_cast<int*>(ncclGetLsaPointer(window, 32, peer));
  p[1] = *static_cast<int*>(ncclGetPeerPointer(window, 32, peer));
  p[2] = *static_cast<int*>(ncclGetPeerPointer(window, 32, ncclTeamLsa(comm), peer));
  p[3] = *static_cast<int*>(ncclGetMultimemPointer(window, 32, comm.lsaMultimem));
  p[4] = *static_cast<int*>(ncclGetLsaMultimemPointer(window, 32, comm));
  p[5] = *static_cast<int*>(ncclGetResourceBufferLsaPointer(comm, 2, peer));
  p[6] = *static_cast<int*>(ncclGetResourceBufferLsaMultimemPointer(comm, 2));
  p[7] = static_cast<int>(ncclGetResourceBufferOffset(7));
  p[8] = ncclFindWindow(ncclCoopCta(), comm, out) == window;
  p[9] = ncclFindWindow(ncclCoopThread(), comm, out) == window;
  p[10] = ncclFindWindow(ncclCoopLanes(out[3]), comm, out) == window;
}

__global__ void Consts(char const* p, char* out) {
  struct Bytes {
    char at[3];
  };
  struct alignas(16) Wide {
    int at[8];
  };
  struct Shorts {
    short at[3];
  };
  *reinterpret_cast<Bytes*>(out) = nccl::utility::loadConst(reinterpret_cast<Bytes const*>(p));
  *reinterpret_cast<Wide*>(out + 16) = nccl::utility::loadConst(reinterpret_cast<Wide const*>(p));
  *reinterpret_cast<Shorts*>(out + 64) =
      nccl::utility::loadConst(reinterpret_cast<Shorts const*>(p));
}

template <typename T>
__device__ void Atomics(T* p, cuda::memory_order order, cuda::thread_scope scope) {
  nccl::utility::atomicStore(p, nccl::utility::atomicLoad(p + 1, order, scope), order, scope);
}

__global__ void AtomicsOf(int order, int scope, unsigned* p) {
  Atomics(p, static_cast<cuda::memory_order>(order), static_cast<cuda::thread_scope>(scope));
  Atomics(reinterpret_cast<uint64_t*>(p), static_cast<cuda::memory_order>(order),
          static_cast<cuda::thread_scope>(scope));
}

template <typename Coop>
__device__ void LsaBarrier(Coop coop, ncclDevComm const& comm, bool multimem,
                           cuda::memory_order order) {
  ncclLsaBarrierSession<Coop> bar(coop, comm, ncclTeamTagLsa(), blockIdx.x, multimem);
  bar.sync(coop, kRelaxed);
  bar.arrive(coop, kRelease);
  bar.wait(coop, kAcquire);
  bar.sync(coop, kAcqRel);
  bar.sync(coop, order);
}

__global__ void LsaBarriers(ncclDevComm comm, bool multimem, int order) {
  LsaBarrier(ncclCoopCta(), comm, multimem, static_cast<cuda::memory_order>(order));
  LsaBarrier(ncclCoopWarp(), comm, multimem, static_cast<cuda::memory_order>(order));
  LsaBarrier(ncclCoopThread(), comm, multimem, static_cast<cuda::memory_order>(order));
  LsaBarrier(ncclCoopLanes(), comm, multimem, static_cast<cuda::memory_order>(order));
  LsaBarrier(ncclCoopWarpSpan(0, 2, 1), comm, multimem, static_cast<cuda::memory_order>(order));
}

template <typename T, typename Coop>
__device__ void LowLatency(Coop coop, ncclDevComm const& comm, ncclLLA2AHandle handle,
                           bool multimem, T* data) {
  const ncclTeam team = ncclTeamLsa(comm);
  ncclLLA2ASession<Coop> session(coop, comm, team, handle, blockIdx.x, 128, multimem,
                                 comm.lsaMultimem);
  session.send(data[0] > T(0) ? 1 : 0, threadIdx.x, data[threadIdx.x]);
  session.bcast(threadIdx.x, data[1]);
  data[2] = session.template recv<T>(threadIdx.x);
  T got[4];
  session.template recvUnrolled<1, 4>(0, static_cast<int>(data[3]), 8, got);
  data[4] = got[0] + got[1] + got[2] + got[3];
  data[5] = session.template recvReduce<4, T>(
      0, team.nRanks, 8, [](T x) { return x; }, [](T x, T y) { return x + y; });
  session.endEpoch(coop);
}

__global__ void LowLatencies(ncclDevComm comm, ncclLLA2AHandle handle, bool multimem, void* data) {
  LowLatency(ncclCoopCta(), comm, handle, multimem, static_cast<int*>(data));
  LowLatency(ncclCoopWarp(), comm, handle, multimem, static_cast<double*>(data));
  LowLatency(ncclCoopCta(), comm, handle, multimem, static_cast<float*>(data));
}

template <typename Gin, typename Coop>
__device__ void GinSome(Coop coop, Gin gin, ncclTeam team, ncclWindow_t w, int peer, uint64_t n,
                        uint64_t* out, cuda::memory_order order) {
  __shared__ ncclGinDescriptorSmem descriptor;
  gin.put(team, peer, w, n, w, n, n, ncclGin_SignalInc{1}, ncclGin_CounterInc{2}, coop);
  gin.put(team, peer, w, n, w, n, n, ncclGin_SignalAdd{1, 5}, ncclGin_None{}, coop,
          ncclGin_DescriptorSmem{&descriptor});
  gin.put(team, peer, ncclSymPtr<float>(w, 1), ncclSymPtr<float>(w, 2), n, ncclGin_None{},
          ncclGin_CounterInc{1}, coop, ncclGin_None{}, cuda::thread_scope_system,
          cuda::thread_scope_thread);
  gin.put(team, peer, w, n, w, n, n);
  gin.putValue(team, peer, w, n, static_cast<unsigned>(n), ncclGin_SignalInc{3}, coop);
  gin.putValue(team, peer, ncclSymPtr<uint64_t>(w, 1), n, ncclGin_None{}, coop);
  gin.putValue(team, peer, ncclSymPtr<unsigned char>(w, 1), static_cast<unsigned char>(n));
  gin.signal(team, peer, ncclGin_SignalInc{0}, coop);
  gin.signal(team, peer, ncclGin_SignalAdd{0, n}, coop);
  gin.flush(coop);
  gin.flush(coop, order);
  gin.waitCounter(coop, 1, n);
  gin.waitCounter(coop, 1, n, 56, order);
  out[0] = gin.readCounter(1) + gin.readSignal(1) + gin.readCounter(2, 40, order);
  out[1] = *gin.getSignalShadowPtr(1);
  gin.increaseSignalShadow(1, n);
  gin.waitSignal(coop, 1, n, 32);
  gin.waitSignalMeetShadow(coop, 2);
  gin.waitSignalFollowShadow(coop, 2, n, &out[2], &out[3]);
  unsigned before, delta;
  gin.waitSignalFollowShadow(coop, 2, 1u, &before, &delta, 32);
  out[4] = before + delta;
  gin.resetCounter(1);
  gin.resetSignal(1);
}

// Signals and counters only compile for the mask of all back ends.
template <typename Coop>
__global__ void Gins(ncclDevComm comm, ncclWindow_t window, int peer, uint64_t n, uint64_t* out,
                     int order) {
  GinSome(Coop(), ncclGin(comm, blockIdx.x), ncclTeamWorld(comm), window, peer, n, out,
          static_cast<cuda::memory_order>(order));
}
template __global__ void Gins<ncclCoopThread>(ncclDevComm, ncclWindow_t, int, uint64_t, uint64_t*,
                                              int);
template __global__ void Gins<ncclCoopCta>(ncclDevComm, ncclWindow_t, int, uint64_t, uint64_t*,
                                           int);

__global__ void Barriers(ncclDevComm comm, bool multimem, int order) {
  const ncclCoopCta coop;
  ncclGin gin(comm, blockIdx.x);
  const auto some = static_cast<cuda::memory_order>(order);
  {
    ncclBarrierSession<ncclCoopCta> world(coop, ncclTeamTagWorld(), gin, blockIdx.x, multimem);
    world.sync(coop, kAcqRel, ncclGinFenceLevel::Relaxed);
    world.lsaBarrier().sync(coop, some);
    world.ginBarrier().sync(coop, some, ncclGinFenceLevel::Relaxed);
  }
  // The constructors for ncclTeamTagLsa and ncclTeamTagRail do not compile in this version of the
  // headers; the sessions they would hold are used by themselves.
  ncclGinBarrierSession<ncclCoopCta> own(coop, gin, ncclTeamTagRail(), blockIdx.x);
  own.sync(coop, kRelaxed, ncclGinFenceLevel::Relaxed);
}
