// The ways in which NVIDIA's multi-GPU samples let devices work together. p2p: copies between
// devices, then kernels that read a peer's memory (simpleP2P). pool: stream-ordered memory whose
// pool the peers may access, ordered by events (streamOrderedAllocationP2P). solver: a cooperative
// kernel per device; grids meet by grid.sync() and a byte per device in host memory, which the
// first device collects and resets; partial sums by atomics of system scope
// (conjugateGradientMultiDeviceCG). ipc: every process works on the buffer of every other one in
// turn, ordered by events that all have opened (simpleIPC). pool_ipc: memory of a pool that other
// processes have imported (streamOrderedAllocationIPC).
//
// All of it is in order by PTX.
//
// run p2p.two: --devices 2 | 2 threads p2p
// run p2p.eight: --devices 8 | 8 threads p2p
// run pool.two: --devices 2 | 2 threads pool
// run pool.eight: --devices 8 | 8 threads pool
// run solver.two: --devices 2 | 2 threads solver
// run solver.four: --devices 4 | 4 threads solver
// run solver.eight: --devices 8 | 8 threads solver
// run ipc.two: --devices 2 | 2 processes ipc
// run ipc.four: --devices 4 | 4 processes ipc
// run ipc.eight: --devices 8 | 8 processes ipc
// run pool_ipc.two: --devices 2 | 2 processes pool_ipc
// run pool_ipc.four: --devices 4 | 4 processes pool_ipc
// run pool_ipc.eight: --devices 8 | 8 processes pool_ipc
#include <cooperative_groups.h>

#include <cmath>

#include "descriptors.h"
#include "ptx.h"
#include "world.h"

namespace {

constexpr int kThreads = 64, kBlocks = 3, kCount = 1000, kCalls = 3;

__global__ void Double(const float* from, float* to) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kCount; i += gridDim.x * kThreads)
    to[i] = from[i] * 2;
}

__global__ void AddTo(float* buffer, float more) {
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kCount; i += gridDim.x * kThreads)
    buffer[i] += more;
}

std::vector<float> Numbers(int rank, int call) {
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i) values.push_back(float((rank * 31 + call * 7 + i) % 1001));
  return values;
}

// One host thread drives all devices, as in the sample.
void P2p(World& world) {
  const auto buffers = world.Share<float>(kCount);
  for (int call = 0; world.rank() == 0 && call < kCalls; ++call) {
    Upload(buffers[0], Numbers(0, call).data(), kCount);
    for (int r = 1; r < world.ranks(); ++r)
      CUDA_CHECK(cudaMemcpy(buffers[r], buffers[r - 1], kCount * 4, cudaMemcpyDefault));
    CUDA_CHECK(cudaDeviceSynchronize());  // copies between devices return before they are done
    float factor = 1;
    for (int r = 0; r < world.ranks(); ++r) {
      const int next = (r + 1) % world.ranks();
      CUDA_CHECK(cudaSetDevice(next));
      Double<<<kBlocks, kThreads>>>(buffers[r], buffers[next]);
      CUDA_CHECK_LAUNCH();
      CUDA_CHECK(cudaDeviceSynchronize());
      factor *= 2;
    }
    CUDA_CHECK(cudaSetDevice(0));
    const std::vector<float> expected = Numbers(0, call);
    RequireElements(world, "p2p", call, world.Result(buffers[0], kCount),
                    [&](int i) { return factor * expected[i]; });
  }
  world.Barrier();
}

// Rank 0 allocates from its pool, the others read it behind an event.
void Pool(World& world) {
  for (int call = 0; world.rank() == 0 && call < kCalls; ++call) {
    cudaMemPool_t pool;
    CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    for (int r = 1; r < world.ranks(); ++r) {
      cudaMemAccessDesc access{};
      access.location.type = cudaMemLocationTypeDevice;
      access.location.id = r;
      access.flags = cudaMemAccessFlagsProtReadWrite;
      CUDA_CHECK(cudaMemPoolSetAccess(pool, &access, 1));
    }
    CUDA_CHECK(cudaSetDevice(0));
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocAsync(&memory, kCount * 4, world.stream()));
    float* source = static_cast<float*>(memory);
    const std::vector<float> values = Numbers(0, call);
    CUDA_CHECK(
        cudaMemcpyAsync(source, values.data(), kCount * 4, cudaMemcpyHostToDevice, world.stream()));
    cudaEvent_t filled;
    CUDA_CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventRecord(filled, world.stream()));
    for (int r = 1; r < world.ranks(); ++r) {
      CUDA_CHECK(cudaSetDevice(r));
      cudaStream_t stream;
      CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      void* result = nullptr;
      CUDA_CHECK(cudaMallocAsync(&result, kCount * 4, stream));
      CUDA_CHECK(cudaStreamWaitEvent(stream, filled));
      Double<<<kBlocks, kThreads, 0, stream>>>(source, static_cast<float*>(result));
      CUDA_CHECK_LAUNCH();
      std::vector<float> got(kCount);
      CUDA_CHECK(cudaMemcpyAsync(got.data(), result, kCount * 4, cudaMemcpyDeviceToHost, stream));
      CUDA_CHECK(cudaFreeAsync(result, stream));
      cudaEvent_t read;
      CUDA_CHECK(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
      CUDA_CHECK(cudaEventRecord(read, stream));
      CUDA_CHECK(cudaStreamSynchronize(stream));
      RequireElements(world, "pool", call, got, [&](int i) { return 2 * values[i]; });
      CUDA_CHECK(cudaSetDevice(0));
      CUDA_CHECK(cudaStreamWaitEvent(world.stream(), read));
      CUDA_CHECK(cudaEventDestroy(read));
      CUDA_CHECK(cudaStreamDestroy(stream));
    }
    CUDA_CHECK(cudaSetDevice(0));
    CUDA_CHECK(cudaFreeAsync(source, world.stream()));
    CUDA_CHECK(cudaStreamSynchronize(world.stream()));
    CUDA_CHECK(cudaEventDestroy(filled));
  }
  world.Barrier();
}

struct Shared {
  uint8_t arrived[kMaxRanks];  // of devices 1, 2, ...
};

__device__ uint8_t LoadArrived(const uint8_t* arrived) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u8 %0, [%1];" : "=r"(value) : "l"(arrived) : "memory");
  return uint8_t(value);
}
__device__ void StoreArrived(uint8_t* arrived, uint32_t value) {
  asm volatile("st.release.sys.global.u8 [%0], %1;" ::"l"(arrived), "r"(value) : "memory");
}

__device__ void SyncDevices(cooperative_groups::grid_group grid, Shared* shared, int rank,
                            int ranks) {
  grid.sync();
  if (grid.thread_rank() == 0) {
    if (rank == 0) {
      for (int r = 1; r < ranks; ++r) {
        while (LoadArrived(&shared->arrived[r]) == 0) {
        }
      }
      for (int r = 1; r < ranks; ++r) StoreArrived(&shared->arrived[r], 0);
    } else {
      StoreArrived(&shared->arrived[rank], 1);
      while (LoadArrived(&shared->arrived[rank]) == 1) {
      }
    }
  }
  grid.sync();
}

struct Vectors {
  float x[2][kCount];
  double sum;
};

// Every element becomes the sum of its neighbours, modulo a number that keeps floats exact; the
// vectors are on device 0, and the sum of all elements is told after every step.
__global__ void Solve(Vectors* vectors, Shared* shared, double* device_sum, int rank, int ranks,
                      int first, double* sums) {
  const auto grid = cooperative_groups::this_grid();
  const int begin = rank * grid.size() + grid.thread_rank(), stride = ranks * grid.size();
  for (int step = first; step < first + 4; ++step) {
    float* now = vectors->x[step % 2];
    float* next = vectors->x[(step + 1) % 2];
    double sum = 0;
    for (int i = begin; i < kCount; i += stride) {
      next[i] = fmodf(now[(i + 1) % kCount] + now[(i + kCount - 1) % kCount] + 1, 1009);
      sum += next[i];
    }
    if (rank == 0 && grid.thread_rank() == 0) vectors->sum = 0;
    atomicAdd(device_sum, sum);
    SyncDevices(grid, shared, rank, ranks);
    if (grid.thread_rank() == 0) {
      atomicAdd_system(&vectors->sum, *device_sum);
      *device_sum = 0;
    }
    SyncDevices(grid, shared, rank, ranks);
    if (grid.thread_rank() == 0) sums[step] = vectors->sum;
    SyncDevices(grid, shared, rank, ranks);
  }
}

void Solver(World& world) {
  const auto vectors = world.Share<Vectors>();
  Shared* shared = nullptr;
  if (world.rank() == 0) {
    CUDA_CHECK(cudaHostAlloc(&shared, sizeof *shared, cudaHostAllocPortable));
    std::memset(shared, 0, sizeof *shared);
    Upload(vectors[0]->x[0], Numbers(0, 0).data(), kCount);
  }
  shared = world.AllGather(shared)[0];
  double* device_sum = world.Allocate<double>();
  double* sums = world.Allocate<double>(4 * kCalls);
  Vectors* all = vectors[0];
  int rank = world.rank(), ranks = world.ranks();
  for (int first = 0; first < 4 * kCalls; first += 4) {
    void* arguments[] = {&all, &shared, &device_sum, &rank, &ranks, &first, &sums};
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Solve), dim3(kBlocks),
                                           dim3(kThreads), arguments, 0, world.stream()));
  }
  std::vector<float> x = Numbers(0, 0), next(kCount);
  std::vector<double> expected;
  for (int step = 0; step < 4 * kCalls; ++step) {
    for (int i = 0; i < kCount; ++i)
      next[i] = std::fmod(x[(i + 1) % kCount] + x[(i + kCount - 1) % kCount] + 1, 1009.0f);
    x = next;
    double sum = 0;
    for (float value : x) sum += value;
    expected.push_back(sum);
  }
  RequireElements(world, "solver", 0, world.Result(sums, 4 * kCalls),
                  [&](int step) { return expected[step]; });
  world.Barrier();
  if (world.rank() == 0) CUDA_CHECK(cudaFreeHost(shared));
}

void Ipc(World& world) {
  const int rank = world.rank(), ranks = world.ranks();
  const auto buffers = world.Share<float>(kCount);
  cudaEvent_t mine;
  CUDA_CHECK(cudaEventCreateWithFlags(&mine, cudaEventDisableTiming | cudaEventInterprocess));
  cudaIpcEventHandle_t handle;
  CUDA_CHECK(cudaIpcGetEventHandle(&handle, mine));
  const auto handles = world.AllGather(handle);
  std::vector<cudaEvent_t> events(ranks, mine);
  for (int r = 0; r < ranks; ++r) {
    if (r != rank) CUDA_CHECK(cudaIpcOpenEventHandle(&events[r], handles[r]));
  }
  for (int call = 0; call < kCalls; ++call) {
    for (int step = 0; step < ranks; ++step) {
      const int target = (rank + step) % ranks;
      CUDA_CHECK(cudaStreamWaitEvent(world.stream(), events[target]));
      AddTo<<<kBlocks, kThreads, 0, world.stream()>>>(buffers[target], float(rank + 1));
      CUDA_CHECK_LAUNCH();
      CUDA_CHECK(cudaEventRecord(events[target], world.stream()));
      world.Barrier();  // no one waits for an event before it was recorded
    }
  }
  CUDA_CHECK(cudaStreamSynchronize(world.stream()));
  world.Barrier();
  RequireElements(world, "ipc", 0, world.Result(buffers[rank], kCount),
                  [&](int) { return float(kCalls * ranks * (ranks + 1) / 2); });
  for (cudaEvent_t event : events) CUDA_CHECK(cudaEventDestroy(event));
}

void PoolIpc(World& world) {
  const int rank = world.rank(), ranks = world.ranks();
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = world.device();
  cudaMemPool_t pool;
  CUDA_CHECK(cudaMemPoolCreate(&pool, &properties));
  void* memory = nullptr;
  CUDA_CHECK(cudaMallocFromPoolAsync(&memory, kCount * 4, pool, world.stream()));
  CUDA_CHECK(cudaMemsetAsync(memory, 0, kCount * 4, world.stream()));
  CUDA_CHECK(cudaStreamSynchronize(world.stream()));
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    int fd = -1;
    CUDA_CHECK(
        cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    SendDescriptor(world.link(r), fd);
    close(fd);
  }
  std::vector<cudaMemPool_t> pools(ranks, pool);
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    const int fd = ReceiveDescriptor(world.link(r));
    CUDA_CHECK(cudaMemPoolImportFromShareableHandle(
        &pools[r], reinterpret_cast<void*>(intptr_t(fd)), cudaMemHandleTypePosixFileDescriptor, 0));
    close(fd);
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = world.device();
    access.flags = cudaMemAccessFlagsProtReadWrite;
    CUDA_CHECK(cudaMemPoolSetAccess(pools[r], &access, 1));
  }
  cudaMemPoolPtrExportData data;
  CUDA_CHECK(cudaMemPoolExportPointer(&data, memory));
  const auto all = world.AllGather(data);
  std::vector<float*> buffers(ranks, static_cast<float*>(memory));
  for (int r = 0; r < ranks; ++r) {
    void* theirs = memory;
    cudaMemPoolPtrExportData copy = all[r];
    if (r != rank) CUDA_CHECK(cudaMemPoolImportPointer(&theirs, pools[r], &copy));
    buffers[r] = static_cast<float*>(theirs);
  }
  for (int call = 0; call < kCalls; ++call) {
    for (int step = 0; step < ranks; ++step) {
      AddTo<<<kBlocks, kThreads, 0, world.stream()>>>(buffers[(rank + step) % ranks],
                                                      float(rank + 1));
      CUDA_CHECK_LAUNCH();
      CUDA_CHECK(cudaStreamSynchronize(world.stream()));
      world.Barrier();
    }
  }
  RequireElements(world, "pool_ipc", 0, world.Result(buffers[rank], kCount),
                  [&](int) { return float(kCalls * ranks * (ranks + 1) / 2); });
  world.Barrier();
  for (int r = 0; r < ranks; ++r) {
    if (r != rank) CUDA_CHECK(cudaFreeAsync(buffers[r], world.stream()));
  }
  CUDA_CHECK(cudaStreamSynchronize(world.stream()));
  world.Barrier();  // importers free before the exporter
  CUDA_CHECK(cudaFreeAsync(memory, world.stream()));
  CUDA_CHECK(cudaStreamSynchronize(world.stream()));
  for (cudaMemPool_t one : pools) CUDA_CHECK(cudaMemPoolDestroy(one));
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const std::string& scheme = setup.scheme;
  const auto body = scheme == "p2p"      ? P2p
                    : scheme == "pool"   ? Pool
                    : scheme == "solver" ? Solver
                    : scheme == "ipc"    ? Ipc
                                         : PoolIpc;
  return RunWorld(setup, body);
}
