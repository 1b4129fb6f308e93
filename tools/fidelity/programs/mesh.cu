// Collectives over peer pointers, without multicast: all-gather and all-to-all that push, a
// one-shot all-reduce that pulls, and small all-to-alls that end in a barrier or in polling.
// Unless said otherwise sizes are bytes per rank.
#include "flags.cuh"

namespace {

constexpr int kRanks = 8;
constexpr int kSlots = 256;

// Every block meets its namesakes on the peers, then warps take turns over the peers and push
// chunks of this rank's share into the same place of each peer's buffer.
__global__ void __launch_bounds__(1024)
    GatherKernel(PerRank<uint4> buffers, Inbox inbox, int rank, size_t share, uint32_t* epochs) {
  const uint32_t epoch = epochs[blockIdx.x] + 1;
  inbox.Barrier<false>(rank, kRanks, blockIdx.x, epoch);
  if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
  const int peers = kRanks - 1;
  const int lane = threadIdx.x % 32;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int warps = gridDim.x * blockDim.x / 32;
  const int peer = (rank + 1 + warp % peers) % kRanks;
  const int among = warp / peers;                                      // this warp's place among
  const int fellows = warps / peers + (warp % peers < warps % peers);  // those of its peer
  const size_t vectors = share / sizeof(uint4);
  // Four vectors per thread and chunk where that still gives every warp work.
  const int depth = vectors >= size_t(fellows) * 128 ? 4 : 1;
  const uint4* from = buffers.at[rank] + rank * vectors;
  uint4* to = buffers.at[peer] + rank * vectors;
  const size_t step = size_t(fellows) * 32 * depth;
  for (size_t at = size_t(among) * 32 * depth + lane; at < vectors; at += step) {
    uint4 value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < depth && at + i * 32 < vectors) value[i] = from[at + i * 32];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < depth && at + i * 32 < vectors) to[at + i * 32] = value[i];
    }
  }
}

// Size: MiB of the gathered whole.
double Gather(double mib) {
  const size_t share = size_t(mib * kMiB) / kRanks / 16 * 16;
  const PerRank<uint4> buffers = AllocateOnAll<uint4>(kRanks, share * kRanks);
  const Inbox inbox = NewInbox(kRanks, kSlots);
  const PerRank<uint32_t> epochs = AllocateOnAll<uint32_t>(kRanks, kSlots * sizeof(uint32_t));
  Meeting meet(kRanks);
  const int launches = mib <= 4 ? 6 : mib <= 12 ? 3 : 2;
  const double us = OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, launches, [&] { meet(rank, stream); },
        [&](int) {
          GatherKernel<<<24, 1024, 0, stream>>>(buffers, inbox, rank, share, epochs.at[rank]);
        });
  });
  FreeOnAll(kRanks, buffers);
  return us;
}

// Every block copies its slice of each destination's chunk, sixteen vectors in flight per thread.
__global__ void __launch_bounds__(256)
    ScatterKernel(PerRank<uint4> from, PerRank<uint4> to, int rank, size_t chunk) {
  const size_t slice = chunk / gridDim.x;
  constexpr int kDepth = 16;
  for (int turn = 0; turn < kRanks; ++turn) {
    const int peer = (rank + turn) % kRanks;
    const uint4* source = from.at[rank] + peer * chunk + blockIdx.x * slice;
    uint4* target = to.at[peer] + rank * chunk + blockIdx.x * slice;
    for (size_t at = threadIdx.x; at < slice; at += kDepth * blockDim.x) {
      uint4 value[kDepth];
#pragma unroll
      for (int i = 0; i < kDepth; ++i) {
        if (at + i * blockDim.x < slice) value[i] = source[at + i * blockDim.x];
      }
#pragma unroll
      for (int i = 0; i < kDepth; ++i) {
        if (at + i * blockDim.x < slice) target[at + i * blockDim.x] = value[i];
      }
    }
  }
}

// Size: MiB in each rank's send buffer.
double Scatter(double mib) {
  const size_t bytes = size_t(mib * kMiB);
  const PerRank<uint4> from = AllocateOnAll<uint4>(kRanks, bytes);
  const PerRank<uint4> to = AllocateOnAll<uint4>(kRanks, bytes);
  Meeting meet(kRanks);
  const double us = OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    return BackToBack(
        stream, 1, 4, [&] { meet(rank, stream); },
        [&](int) {
          ScatterKernel<<<64, 256, 0, stream>>>(from, to, rank, bytes / kRanks / sizeof(uint4));
        });
  });
  FreeOnAll(kRanks, from);
  FreeOnAll(kRanks, to);
  return us;
}

struct alignas(128) Counter {
  uint32_t arrived;
  uint32_t base;
};

// One warp per peer adds to the peer's counter of this block; the owner waits for all.
template <bool kStart>
__device__ void MeetByCounters(PerRank<Counter> counters, int rank) {
  if (!kStart) __syncthreads();
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0 && warp < kRanks) {
    Counter& counter = counters.at[warp][blockIdx.x];
    asm volatile("{ .reg .u32 t; atom.global.add.u32 t, [%0], 1; }" ::"l"(&counter.arrived)
                 : "memory");
    if (warp == rank) {
      const uint32_t target = kRanks * (kStart ? 1 : 2);
      const uint32_t base = counter.base;
      uint32_t seen;
      do {
        asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(seen) : "l"(&counter.arrived));
      } while (seen - base < target);
      if (!kStart) counter.base = base + target;
    }
  }
  if (kStart) __syncthreads();
}

__device__ float2 AddPairs(uint32_t bits, float2 sum) {
  sum.x += __uint_as_float(bits << 16);
  sum.y += __uint_as_float(bits & 0xffff0000u);
  return sum;
}

__device__ uint32_t RoundPair(float2 value) {
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(value.y), "f"(value.x));
  return bits;
}

// Every rank reads the same sixteen bytes of all ranks at once, adds them in single precision and
// keeps the sum.
__global__ void __launch_bounds__(1024, 1)
    PullReduceKernel(PerRank<uint4> inputs, uint4* output, PerRank<Counter> counters, int rank,
                     uint32_t vectors) {
  MeetByCounters<true>(counters, rank);
  for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < vectors;
       at += gridDim.x * blockDim.x) {
    uint4 value[kRanks];
#pragma unroll
    for (int i = 0; i < kRanks; ++i) value[i] = inputs.at[i][at];
    float2 sum[4] = {};
#pragma unroll
    for (int i = 0; i < kRanks; ++i) {
      sum[0] = AddPairs(value[i].x, sum[0]);
      sum[1] = AddPairs(value[i].y, sum[1]);
      sum[2] = AddPairs(value[i].z, sum[2]);
      sum[3] = AddPairs(value[i].w, sum[3]);
    }
    output[at] = {RoundPair(sum[0]), RoundPair(sum[1]), RoundPair(sum[2]), RoundPair(sum[3])};
  }
  MeetByCounters<false>(counters, rank);
}

double PullReduce(double size) {
  const size_t bytes = size_t(size);
  const PerRank<uint4> inputs = AllocateOnAll<uint4>(kRanks, bytes);
  const PerRank<uint4> outputs = AllocateOnAll<uint4>(kRanks, bytes);
  const PerRank<Counter> counters = AllocateOnAll<Counter>(kRanks, kSlots * sizeof(Counter));
  Meeting meet(kRanks);
  int sms = 0;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const uint32_t vectors = uint32_t(bytes / sizeof(uint4));
  const int blocks = std::min<int>((vectors + 255) / 256, sms);
  const int launches = bytes <= (64 << 10) ? 8 : bytes <= (512 << 10) ? 3 : 2;
  const double us = OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, launches, [&] { meet(rank, stream); },
        [&](int) {
          PullReduceKernel<<<blocks, 256, 0, stream>>>(inputs, outputs.at[rank], counters, rank,
                                                       vectors);
        });
  });
  FreeOnAll(kRanks, inputs);
  FreeOnAll(kRanks, outputs);
  return us;
}

// The share of a block's chunk that this warp pushes to its destination.
__device__ void PushChunks(const uint4* from, PerRank<uint4> to, int rank, int count, int start,
                           int length) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int warps = blockDim.x / 32;
  const int fellows = max(1, warps / kRanks);
  const int part = (length + fellows - 1) / fellows;
  const int first = (warp / kRanks) % fellows * part;
  const int last = min(first + part, length);
  const int peer = warp % kRanks;
  for (int i = first + lane; i < last; i += 32)
    to.at[peer][rank * count + start + i] = from[peer * count + start + i];
}

__global__ void ExchangeBarrierKernel(const uint4* from, PerRank<uint4> to, Inbox inbox, int rank,
                                      int count, uint32_t* epochs) {
  const int chunk = (count + gridDim.x - 1) / gridDim.x;
  const int start = blockIdx.x * chunk;
  if (start >= count) return;
  PushChunks(from, to, rank, count, start, min(chunk, count - start));
  const uint32_t epoch = epochs[blockIdx.x] + 1;
  __syncthreads();
  __threadfence_system();
  inbox.Barrier<false>(rank, kRanks, blockIdx.x, epoch);
  if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
}

constexpr uint32_t kPoison = 0xFFFAFFFAu;

// Arrival is seen in the data: a slot whose last word is no longer the poison has been written.
// Three buffers take turns; the one of two calls ago is poisoned again.
__global__ void ExchangePollKernel(const uint4* from, PerRank<uint4> to, uint4* clear, int rank,
                                   int count) {
  const int chunk = (count + gridDim.x - 1) / gridDim.x;
  const int start = blockIdx.x * chunk;
  if (start >= count) return;
  const int length = min(chunk, count - start);
  PushChunks(from, to, rank, count, start, length);
  for (int i = threadIdx.x; i < kRanks * length; i += blockDim.x) {
    const uint32_t* word = &to.at[rank][i / length * count + start + i % length].w;
    while (LoadRelaxed(word) == kPoison) {
    }
  }
  for (int i = threadIdx.x; i < kRanks * length; i += blockDim.x)
    clear[i / length * count + start + i % length].w = kPoison;
}

__global__ void PoisonKernel(uint4* buffer, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) buffer[i].w = kPoison;
}

// Size: bytes for each pair of ranks.
double ExchangeBarrier(double size) {
  const int count = int(size) / 16;
  const PerRank<uint4> from = AllocateOnAll<uint4>(kRanks, size_t(count) * kRanks * 16);
  const PerRank<uint4> to = AllocateOnAll<uint4>(kRanks, size_t(count) * kRanks * 16);
  const PerRank<uint32_t> epochs = AllocateOnAll<uint32_t>(kRanks, kSlots * sizeof(uint32_t));
  const Inbox inbox = NewInbox(kRanks, kSlots);
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMax, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, 12, [&] { meet(rank, stream); },
        [&](int) {
          ExchangeBarrierKernel<<<4, 256, 0, stream>>>(from.at[rank], to, inbox, rank, count,
                                                       epochs.at[rank]);
        });
  });
}

double ExchangePoll(double size) {
  const int count = int(size) / 16;
  const PerRank<uint4> from = AllocateOnAll<uint4>(kRanks, size_t(count) * kRanks * 16);
  PerRank<uint4> buffers[3];
  for (PerRank<uint4>& buffer : buffers) {
    buffer = AllocateOnAll<uint4>(kRanks, size_t(count) * kRanks * 16);
    for (int rank = 0; rank < kRanks; ++rank) {
      CHECK(cudaSetDevice(rank));
      PoisonKernel<<<1, 256>>>(buffer.at[rank], count * kRanks);
      CHECK(cudaDeviceSynchronize());
    }
  }
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMax, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, 12, [&] { meet(rank, stream); },
        [&](int i) {
          ExchangePollKernel<<<4, 256, 0, stream>>>(from.at[rank], buffers[i % 3],
                                                    buffers[(i + 2) % 3].at[rank], rank, count);
        });
  });
}

}  // namespace

int main(int argc, char** argv) {
  EnablePeers(kRanks);
  return RunExperiments(argc, argv,
                        {{"gather", Gather},
                         {"scatter", Scatter},
                         {"pull_reduce", PullReduce},
                         {"exchange_barrier", ExchangeBarrier},
                         {"exchange_poll", ExchangePoll}});
}
