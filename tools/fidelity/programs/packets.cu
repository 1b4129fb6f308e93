// A two-shot all-reduce by packets that carry their own flag, for messages too small for a barrier.
// Sizes are bytes per rank.
#include "flags.cuh"

namespace {

constexpr int kRanks = 8, kPeers = kRanks - 1, kBlocksPerPeer = 3;
constexpr int kBlocks = kPeers * kBlocksPerPeer, kThreads = 512;

// Eight bytes of data, each four followed by the flag: sixteen bytes arrive as one.
__device__ void Put(uint4* slot, uint2 data, uint32_t flag) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(slot), "r"(data.x),
               "r"(data.y), "r"(flag)
               : "memory");
}

__device__ uint2 Get(const uint4* slot, uint32_t flag) {
  uint4 value;
  do {
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(slot)
                 : "memory");
  } while (value.y != flag || value.w != flag);
  return {value.x, value.z};
}

// Every rank sends each peer that peer's share, adds up its own, and sends the sum to all. The
// scratch is used in two halves in turn.
__global__ void __launch_bounds__(kThreads)
    PacketReduceKernel(uint2* data, PerRank<uint4> scratch, int rank, int share, uint32_t* epochs) {
  const uint32_t flag = epochs[blockIdx.x] + 1;
  const int peer_index = blockIdx.x / kBlocksPerPeer;
  const int peer = peer_index < rank ? peer_index : peer_index + 1;
  const int first = blockIdx.x % kBlocksPerPeer * kThreads + threadIdx.x;
  const size_t half = size_t(flag & 1) * 2 * kRanks * share;
  const size_t sums = half + size_t(kRanks) * share;
  for (int i = first; i < share; i += kBlocksPerPeer * kThreads)
    Put(scratch.at[peer] + half + rank * share + i, data[peer * share + i], flag);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < share; i += kBlocks * kThreads) {
    uint2 sum = data[rank * share + i];
    for (int p = 0; p < kPeers; ++p) {
      const int from = p < rank ? p : p + 1;
      const uint2 value = Get(scratch.at[rank] + half + from * share + i, flag);
      sum.x += value.x;
      sum.y += value.y;
    }
    data[rank * share + i] = sum;
    for (int p = 0; p < kPeers; ++p)
      Put(scratch.at[p < rank ? p : p + 1] + sums + rank * share + i, sum, flag);
  }
  for (int i = first; i < share; i += kBlocksPerPeer * kThreads)
    data[peer * share + i] = Get(scratch.at[rank] + sums + peer * share + i, flag);
  if (threadIdx.x == 0) epochs[blockIdx.x] = flag;
}

double PacketReduce(double size) {
  const int share = int(size) / int(sizeof(uint2)) / kRanks;
  const PerRank<uint2> data = AllocateOnAll<uint2>(kRanks, size_t(size));
  const PerRank<uint4> scratch =
      AllocateOnAll<uint4>(kRanks, size_t(share) * kRanks * 4 * sizeof(uint4));
  const PerRank<uint32_t> epochs = AllocateOnAll<uint32_t>(kRanks, kBlocks * sizeof(uint32_t));
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, 8, [&] { meet(rank, stream); },
        [&](int) {
          PacketReduceKernel<<<kBlocks, kThreads, 0, stream>>>(data.at[rank], scratch, rank, share,
                                                               epochs.at[rank]);
        });
  });
}

}  // namespace

int main(int argc, char** argv) {
  EnablePeers(kRanks);
  return RunExperiments(argc, argv, {{"packet_reduce", PacketReduce}});
}
