// Kernel by kernel: meet, gather all rows, make the hidden layer, multiply it by `down`, meet, add
// up the partial sums of the own rows from all ranks. Who meets for the next call has read all.
#include <allranks/flags.h>
#include <allranks/numbers.h>
#include <allranks/tile_mma.h>

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};
constexpr int kBlocks = 8, kThreads = 128, kFloats = 64 * 32;
using Half = std::uint16_t;

// Behind the flags: partial sums of all rows, all rows, and the hidden layer.
__device__ float* Parts(std::uint8_t* scratch) { return reinterpret_cast<float*>(scratch + 8192); }
__device__ Half* Rows(const Args& args) {
  const std::int64_t floats = args.world * args.tiles * args.cols * kFloats;
  return reinterpret_cast<Half*>(Parts(args.scratch) + floats);
}
__device__ Half* Hidden(const Args& args) {
  return Rows(args) + args.world * args.tiles * args.depth * 4096;
}

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Gather(Args args) {
  const int size = static_cast<int>(args.tiles * args.depth * 512);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < args.world * size;
       i += kBlocks * kThreads) {
    const uint4* from = reinterpret_cast<const uint4*>(args.x_peers[i / size]);
    reinterpret_cast<uint4*>(Rows(args))[i] = from[i % size];
  }
}

__global__ void Gate(Args args) {
  __shared__ allranks::TileStage stage;
  __shared__ float gate[kFloats], up[kFloats];
  allranks::TileProduct product(stage);
  const std::int64_t k = args.depth * 64, f = args.inner * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles * f / 32; i += kBlocks) {
    const std::int64_t row = i / (f / 32) * 64, col = i % (f / 32) * 32;
    product.Clear();
    product.Add(Rows(args) + row * k, k, reinterpret_cast<const Half*>(args.gate) + col * k, k, k);
    product.Store(gate, 32);
    product.Clear();
    product.Add(Rows(args) + row * k, k, reinterpret_cast<const Half*>(args.up) + col * k, k, k);
    product.Store(up, 32);
    __syncthreads();
    for (int n = threadIdx.x; n < kFloats; n += kThreads) {
      const float g = gate[n] / 8, u = up[n] / 8;
      Hidden(args)[(row + n / 32) * f + col + n % 32] =
          allranks::Number<__half>::FromFloat(g / (1 + __expf(-g)) * u);
    }
    __syncthreads();
  }
}

__global__ void Multiply(Args args) {
  __shared__ allranks::TileStage stage;
  allranks::TileProduct product(stage);
  const std::int64_t f = args.inner * 64;
  for (std::int64_t i = blockIdx.x; i < args.world * args.tiles * args.cols; i += kBlocks) {
    const Half* down = reinterpret_cast<const Half*>(args.down) + i % args.cols * 32 * f;
    product.Clear();
    product.Add(Hidden(args) + i / args.cols * 64 * f, f, down, f, f);
    product.Store(Parts(args.scratch) + i * kFloats, 32);
  }
}

__global__ void Sum(Args args) {
  const int tiles = static_cast<int>(args.tiles * args.cols), cols = static_cast<int>(args.cols);
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < tiles * kFloats; i += kBlocks * kThreads) {
    const int tile = i / kFloats, row = tile / cols * 64 + i % kFloats / 32;
    float sum = 0;
    for (int r = 0; r < args.world; ++r) {
      sum += Parts(args.scratch_peers[r])[args.rank * tiles * kFloats + i];
    }
    args.y[row * cols * 32 + tile % cols * 32 + i % 32] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Gather<<<kBlocks, kThreads, 0, stream>>>(args);
  Gate<<<kBlocks, kThreads, 0, stream>>>(args);
  Multiply<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
}
