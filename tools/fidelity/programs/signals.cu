// Signals: what one device needs to tell another something, and threads of a CTA each other. Sizes
// are numbers of devices, of rounds or of threads.
#include <chrono>

#include "flags.cuh"

namespace {

// Every rank adds to its own row and takes from its peers' rows, then waits for its row to drain.
__global__ void CounterBarriers(PerRank<int> rows, int rank, int ranks, int rounds) {
  volatile int* own = rows.at[rank];
  for (int round = 0; round < rounds; ++round) {
    __threadfence_system();
    __syncthreads();
    const bool member = int(threadIdx.x) < ranks;
    if (member) {
      atomicAdd_system(&rows.at[rank][threadIdx.x], 1);
      atomicSub_system(&rows.at[threadIdx.x][rank], 1);
    }
    while (__ballot_sync(0xffffffffu, member && own[threadIdx.x] > 0) != 0) {
    }
    __syncthreads();
  }
}

// One host thread launches everything and takes its own clock, as the published run did.
double BarrierOfDevices(double size) {
  const int ranks = int(size);
  const PerRank<int> rows = AllocateOnAll<int>(ranks, kMaxRanks * sizeof(int));
  constexpr int kRounds = 200;
  double us = 0;
  for (const int rounds : {10, kRounds}) {
    const auto start = std::chrono::steady_clock::now();
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(cudaSetDevice(rank));
      CounterBarriers<<<1, 32>>>(rows, rank, ranks, rounds);
      CHECK(cudaGetLastError());
    }
    for (int rank = 0; rank < ranks; ++rank) {
      CHECK(cudaSetDevice(rank));
      CHECK(cudaDeviceSynchronize());
    }
    const auto stop = std::chrono::steady_clock::now();
    us = std::chrono::duration<double, std::micro>(stop - start).count() / rounds;
  }
  FreeOnAll(ranks, rows);
  return us;
}

__device__ void SignalOnce(int* flag) {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
  asm volatile("red.relaxed.sys.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
}

__device__ void AwaitOne(int* flag) {
  int value;
  do {
    asm volatile("ld.global.acquire.sys.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  } while (value != 1);
}

__global__ void PingPongKernel(int side, int flags, int* flag) {
  for (int i = 0; i < flags; i += 2) {
    if (threadIdx.x == 0) {
      if (side == 0) {
        SignalOnce(flag + i);
        AwaitOne(flag + i + 1);
      } else {
        AwaitOne(flag + i);
        SignalOnce(flag + i + 1);
      }
    }
    __syncthreads();
  }
}

// Both ways' flags live on device 1, so device 0 polls over the link.
double PingPong(double size) {
  const int rounds = int(size);
  int* flags = AllocateOn<int>(1, size_t(rounds) * 2 * sizeof(int));
  cudaStream_t stream[2];
  cudaEvent_t start[2], stop[2];
  double us = 0;
  for (int side = 0; side < 2; ++side) {
    CHECK(cudaSetDevice(side));
    stream[side] = NewStream();
    CHECK(cudaEventCreate(&start[side]));
    CHECK(cudaEventCreate(&stop[side]));
  }
  for (int side = 0; side < 2; ++side) {
    CHECK(cudaSetDevice(side));
    CHECK(cudaEventRecord(start[side], stream[side]));
    PingPongKernel<<<1, 32, 0, stream[side]>>>(side, 2 * rounds, flags);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(stop[side], stream[side]));
  }
  for (int side = 0; side < 2; ++side) {
    CHECK(cudaSetDevice(side));
    CHECK(cudaDeviceSynchronize());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start[side], stop[side]));
    us += ms * 1000.0 / rounds / 2;
  }
  CHECK(cudaFree(flags));
  return us;
}

// Every rank takes tickets from one counter on rank 0, each after the one before has come back,
// and writes its number into the ticket's slot.
__global__ void TicketKernel(unsigned long long* counter, unsigned long long* slots, int rank,
                             int count, long long* cycles) {
  const long long start = clock64();
  for (int i = 0; i < count; ++i) slots[atomicAdd_system(counter, 1ull)] = rank;
  *cycles = clock64() - start;
}

double Tickets(double size) {
  constexpr int kRanks = 8;
  const int count = int(size);
  auto* counter = AllocateOn<unsigned long long>(0, sizeof(unsigned long long));
  auto* slots = AllocateOn<unsigned long long>(0, size_t(count) * kRanks * 8);
  const PerRank<long long> cycles = AllocateOnAll<long long>(kRanks, sizeof(long long));
  int khz = 0;
  CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
  Meeting meet(kRanks);
  const double us = OnRanks(kRanks, Over::kMean, [&](int rank) {
    cudaStream_t stream = NewStream();
    meet(rank, stream);
    TicketKernel<<<1, 1, 0, stream>>>(counter, slots, rank, count, cycles.at[rank]);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    long long taken = 0;
    CHECK(cudaMemcpy(&taken, cycles.at[rank], sizeof taken, cudaMemcpyDeviceToHost));
    return double(taken) / khz * 1000.0 / count;
  });
  FreeOnAll(kRanks, cycles);
  return us;
}

constexpr int kMostThreads = 256, kBatch = 8;

__device__ uint32_t SharedAddress(const void* pointer) {
  return uint32_t(__cvta_generic_to_shared(pointer));
}

// Producers fill a tile and arrive on an mbarrier; thread 0 probes it and writes the tile out.
__global__ void ProducersKernel(int* out, unsigned long long* probes, int rounds) {
  __shared__ uint64_t barrier;
  __shared__ int tile[kMostThreads];
  const int producers = blockDim.x - 1;
  unsigned long long tried = 0;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(SharedAddress(&barrier)),
                   "r"(producers));
    __syncthreads();
    if (threadIdx.x > 0) {
      tile[threadIdx.x - 1] = round * producers + threadIdx.x - 1;
      asm volatile(
          "{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(SharedAddress(&barrier))
          : "memory");
    } else {
      int done = 0;
      while (done == 0) {
        ++tried;
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
            "selp.b32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(SharedAddress(&barrier))
            : "memory");
      }
      // In batches, as the machine code has it: loads are independent of stores elsewhere.
      int* target = out + round * (kMostThreads - 1);
      for (int i = 0; i < producers; i += kBatch) {
        int value[kBatch];
#pragma unroll
        for (int j = 0; j < kBatch; ++j) value[j] = tile[i + j];
#pragma unroll
        for (int j = 0; j < kBatch; ++j) {
          if (i + j < producers) target[i + j] = value[j];
        }
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *probes = tried;
}

double ProducersInCta(double size) {
  constexpr int kRounds = 4096;
  int* out = AllocateOn<int>(0, size_t(kRounds) * kMostThreads * sizeof(int));
  auto* probes = AllocateOn<unsigned long long>(0, sizeof(unsigned long long));
  double best = 1e30;
  for (int i = 0; i < 2; ++i) {
    const double us = EventMicroseconds(
        nullptr, [&] { ProducersKernel<<<1, int(size)>>>(out, probes, kRounds); });
    best = std::min(best, us / kRounds);
  }
  CHECK(cudaFree(out));
  CHECK(cudaFree(probes));
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices > 1) EnablePeers(std::min(devices, kMaxRanks));
  return RunExperiments(argc, argv,
                        {{"barrier", BarrierOfDevices},
                         {"pingpong", PingPong},
                         {"tickets", Tickets},
                         {"producers", ProducersInCta}});
}
