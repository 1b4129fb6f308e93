// Collectives in the switch: sums fetched with multimem.ld_reduce, values given to all with
// multimem.st. Unless said otherwise sizes are MiB in each rank's buffer.
#include "multicast.cuh"

namespace {

constexpr int kRanks = 8;
constexpr int kDepth = 16;  // vectors in flight per thread of the copying kernels

// `count` vectors by one CTA, kDepth loads before their stores.
template <class Load, class Store>
__device__ void Stream(size_t count, Load load, Store store) {
  for (size_t at = threadIdx.x; at < count; at += kDepth * blockDim.x) {
    float4 value[kDepth];
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      if (at + i * blockDim.x < count) value[i] = load(at + i * blockDim.x);
    }
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
      if (at + i * blockDim.x < count) store(at + i * blockDim.x, value[i]);
    }
  }
}

__global__ void __launch_bounds__(256)
    ReduceAllKernel(const float4* send, float4* receive, int rank, size_t vectors) {
  const size_t share = vectors / kRanks, slice = share / gridDim.x;
  const size_t first = rank * share + blockIdx.x * slice;
  Stream(
      slice, [&](size_t i) { return LoadSum(send + first + i); },
      [&](size_t i, float4 value) { StoreAll(receive + first + i, value); });
}

__global__ void __launch_bounds__(256)
    ReduceOwnKernel(const float4* send, float4* receive, int rank, size_t vectors) {
  const size_t share = vectors / kRanks, slice = share / gridDim.x;
  Stream(
      slice, [&](size_t i) { return LoadSum(send + rank * share + blockIdx.x * slice + i); },
      [&](size_t i, float4 value) { receive[blockIdx.x * slice + i] = value; });
}

__global__ void __launch_bounds__(256)
    GiveAllKernel(const float4* send, float4* receive, int rank, size_t vectors) {
  const size_t slice = vectors / gridDim.x;
  Stream(
      slice, [&](size_t i) { return send[blockIdx.x * slice + i]; },
      [&](size_t i, float4 value) {
        StoreAll(receive + rank * vectors + blockIdx.x * slice + i, value);
      });
}

enum class Streamed { kReduceAll, kReduceOwn, kGiveAll };

// Kernels of 64 CTAs with 256 threads, back to back and without a barrier between them.
template <Streamed kind>
double StreamedKernel(double mib) {
  const size_t bytes = size_t(mib * kMiB), vectors = bytes / sizeof(float4);
  const auto send = NewSymmetric<float4>(kRanks, bytes);
  const auto receive =
      NewSymmetric<float4>(kRanks, kind == Streamed::kGiveAll ? bytes * kRanks : bytes);
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    return BackToBack(
        stream, 1, 4, [&] { meet(rank, stream); },
        [&](int) {
          if (kind == Streamed::kReduceAll)
            ReduceAllKernel<<<64, 256, 0, stream>>>(send.all, receive.all, rank, vectors);
          else if (kind == Streamed::kReduceOwn)
            ReduceOwnKernel<<<64, 256, 0, stream>>>(send.all, receive.own.at[rank], rank, vectors);
          else
            GiveAllKernel<<<64, 256, 0, stream>>>(send.own.at[rank], receive.all, rank, vectors);
        });
  });
}

// One pair of bfloat16 per thread and no loop: as many CTAs as it takes.
__global__ void PairReduceAllKernel(uint32_t* all, int rank, size_t pairs) {
  const size_t at = pairs / kRanks * rank + size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  StoreAllPair(all + at, LoadSumPair(all + at));
}

__global__ void PairReduceOwnKernel(const uint32_t* all, uint32_t* own, int rank, size_t pairs) {
  const size_t at = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  own[at] = LoadSumPair(all + pairs / kRanks * rank + at);
}

// Size: MB (10^6) of each rank's matrix. Three launches make one call: barrier, work, barrier.
template <bool kAll>
double PairKernel(double megabytes) {
  const size_t pairs = size_t(megabytes * 1e6 / 4 + 0.5) / 4096 * 4096;
  const auto data = NewSymmetric<uint32_t>(kRanks, pairs * 4);
  const auto counter = NewSymmetric<uint32_t>(kRanks, 4);
  const PerRank<uint32_t> own = AllocateOnAll<uint32_t>(kRanks, pairs * 4 / kRanks);
  constexpr int kThreads = kAll ? 256 : 128;
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    return BackToBack(
        stream, 1, 3, [&] { meet(rank, stream); },
        [&](int) {
          CountedBarrierKernel<<<1, 1, 0, stream>>>(counter, rank, kRanks);
          const int blocks = int(pairs / kRanks / kThreads);
          if (kAll)
            PairReduceAllKernel<<<blocks, kThreads, 0, stream>>>(data.all, rank, pairs);
          else
            PairReduceOwnKernel<<<blocks, kThreads, 0, stream>>>(data.all, own.at[rank], rank,
                                                                 pairs);
          CountedBarrierKernel<<<1, 1, 0, stream>>>(counter, rank, kRanks);
        });
  });
}

// Small all-reduces by 4 CTAs of 1024 threads in a graph; sizes are bytes per rank.
constexpr int kSmallBlocks = 4, kSmallThreads = 1024;

__global__ void __launch_bounds__(kSmallThreads)
    OneShotKernel(const float4* send, float4* own, size_t vectors) {
  const size_t step = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors; i += step)
    own[i] = LoadSum(send + i);
}

struct Slice {
  size_t first, count, blocks;
};

__device__ Slice SliceOf(int rank, size_t vectors) {
  const size_t share = vectors / kRanks;
  const size_t slice = (share + gridDim.x - 1) / gridDim.x;
  const size_t start = blockIdx.x * slice;
  if (start >= share) return {0, 0, 0};
  return {rank * share + start, min(slice, share - start), (share + slice - 1) / slice};
}

__device__ void ReduceSlice(Slice slice, const float4* send, float4* receive) {
  for (size_t i = threadIdx.x; i < slice.count; i += blockDim.x)
    StoreAll(receive + slice.first + i, LoadSum(send + slice.first + i));
}

__global__ void __launch_bounds__(kSmallThreads)
    TwoShotBarrierKernel(const float4* send, float4* receive, Inbox inbox, uint32_t* epochs,
                         int rank, size_t vectors) {
  const Slice slice = SliceOf(rank, vectors);
  if (slice.count == 0) return;
  ReduceSlice(slice, send, receive);
  const uint32_t epoch = epochs[blockIdx.x] + 1;
  inbox.Barrier<true>(rank, kRanks, blockIdx.x, epoch);
  if (threadIdx.x == 0) epochs[blockIdx.x] = epoch;
}

constexpr uint32_t kPoison = 0xFFFAFFFAu;

__global__ void __launch_bounds__(kSmallThreads)
    TwoShotPollKernel(const float4* send, float4* receive, float4* own, float4* clear, int rank,
                      size_t vectors) {
  const Slice slice = SliceOf(rank, vectors);
  if (slice.count == 0) return;
  ReduceSlice(slice, send, receive);
  const size_t part = (vectors + slice.blocks - 1) / slice.blocks;
  const size_t last = min((blockIdx.x + 1) * part, vectors);
  for (size_t i = blockIdx.x * part + threadIdx.x; i < last; i += blockDim.x) {
    while (LoadRelaxed(reinterpret_cast<const uint32_t*>(&own[i].w)) == kPoison) {
    }
  }
  for (size_t i = threadIdx.x; i < slice.count; i += blockDim.x)
    clear[slice.first + i].w = __uint_as_float(kPoison);
}

__global__ void PoisonKernel(float4* buffer, size_t count) {
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) buffer[i].w = __uint_as_float(kPoison);
}

int SmallLaunches(size_t bytes) { return bytes <= (64 << 10) ? 12 : 3; }

double OneShot(double size) {
  const size_t bytes = size_t(size);
  const auto send = NewSymmetric<float4>(kRanks, bytes);
  const PerRank<float4> own = AllocateOnAll<float4>(kRanks, bytes);
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMax, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, SmallLaunches(bytes), [&] { meet(rank, stream); },
        [&](int) {
          OneShotKernel<<<kSmallBlocks, kSmallThreads, 0, stream>>>(send.all, own.at[rank],
                                                                    bytes / sizeof(float4));
        });
  });
}

double TwoShotBarrier(double size) {
  const size_t bytes = size_t(size);
  const auto send = NewSymmetric<float4>(kRanks, bytes);
  const auto receive = NewSymmetric<float4>(kRanks, bytes);
  const Inbox inbox = NewInbox(kRanks, kSmallBlocks);
  const PerRank<uint32_t> epochs = AllocateOnAll<uint32_t>(kRanks, kSmallBlocks * 4);
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMax, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, SmallLaunches(bytes), [&] { meet(rank, stream); },
        [&](int) {
          TwoShotBarrierKernel<<<kSmallBlocks, kSmallThreads, 0, stream>>>(
              send.all, receive.all, inbox, epochs.at[rank], rank, bytes / sizeof(float4));
        });
  });
}

double TwoShotPoll(double size) {
  const size_t bytes = size_t(size), vectors = bytes / sizeof(float4);
  const auto send = NewSymmetric<float4>(kRanks, bytes);
  Symmetric<float4> receive[3];
  for (Symmetric<float4>& buffer : receive) {
    buffer = NewSymmetric<float4>(kRanks, bytes);
    for (int rank = 0; rank < kRanks; ++rank) {
      CHECK(cudaSetDevice(rank));
      PoisonKernel<<<1, 1024>>>(buffer.own.at[rank], vectors);
      CHECK(cudaDeviceSynchronize());
    }
  }
  Meeting meet(kRanks);
  return OnRanks(kRanks, Over::kMax, [&](int rank) {
    cudaStream_t stream = NewStream();
    return Graphed(
        stream, SmallLaunches(bytes), [&] { meet(rank, stream); },
        [&](int i) {
          TwoShotPollKernel<<<kSmallBlocks, kSmallThreads, 0, stream>>>(
              send.all, receive[i % 3].all, receive[i % 3].own.at[rank],
              receive[(i + 2) % 3].own.at[rank], rank, vectors);
        });
  });
}

}  // namespace

int main(int argc, char** argv) {
  EnablePeers(kRanks);
  return RunExperiments(argc, argv,
                        {{"reduce_all", StreamedKernel<Streamed::kReduceAll>},
                         {"reduce_own", StreamedKernel<Streamed::kReduceOwn>},
                         {"give_all", StreamedKernel<Streamed::kGiveAll>},
                         {"pair_reduce_all", PairKernel<true>},
                         {"pair_reduce_own", PairKernel<false>},
                         {"one_shot", OneShot},
                         {"two_shot_barrier", TwoShotBarrier},
                         {"two_shot_poll", TwoShotPoll}});
}
