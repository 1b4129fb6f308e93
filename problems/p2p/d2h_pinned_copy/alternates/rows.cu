#include <allranks/flags.h>
#include <cstring>

// Nothing is shifted: a warp brings the aligned vectors in which a row lies to a place of its own,
// and what else is in them comes along. The host finds the row's beginning, and puts it without
// gaps. Flags by groups of rows, one group for each host thread at a time.
constexpr int kThreads = 256, kMaxBlocks = 32, kHosts = 16;

struct Landing {
  std::uint32_t call;
  std::uint32_t flags[2047];  // by group: the last call whose rows are there
  __host__ __device__ std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

// Rows of a group: about 2 KiB, at most 2047 groups.
__host__ __device__ std::int64_t GroupOf(const Args& args) {
  const std::int64_t least = (args.rows + 2046) / 2047, good = 2048 / args.width + 1;
  return least > good ? least : good;
}
__host__ __device__ std::int64_t StrideOf(const Args& args) { return (args.width + 30) / 16 * 16; }
// Of a row's first byte from the vector in which it lies.
__host__ __device__ std::int64_t PhaseOf(const Args& args, std::int64_t row) {
  return (row * (args.left + args.width + args.right) + args.left) % 16;
}

__global__ void __launch_bounds__(kThreads) Copy(Args args, std::uint32_t call) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  const std::int64_t pitch = args.left + args.width + args.right, size = args.rows * pitch;
  const std::int64_t group = GroupOf(args), stride = StrideOf(args);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (std::int64_t g = blockIdx.x; g * group < args.rows; g += gridDim.x) {
    const std::int64_t end = min(args.rows, (g + 1) * group);
    for (std::int64_t row = g * group + warp; row < end; row += kThreads / 32) {
      const std::int64_t phase = PhaseOf(args, row), from = row * pitch + args.left - phase;
      std::uint8_t* to = landing->data() + row * stride;
      for (std::int64_t i = 16 * lane; i < phase + args.width; i += 512) {
        if (from + i + 16 <= size) {
          *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(args.in + from + i);
        } else {
          for (std::int64_t k = i; from + k < size; ++k) to[k] = args.in[from + k];
        }
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) allranks::StoreReleaseSys(&landing->flags[g], call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t groups = (args.rows + GroupOf(args) - 1) / GroupOf(args);
  const int blocks = groups < kMaxBlocks ? static_cast<int>(groups) : kMaxBlocks;
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  Copy<<<blocks, kThreads, 0, stream>>>(args, ++landing->call);
}

extern "C" void host(const Args& args, int thread) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  const std::uint32_t call = landing->call;
  const std::int64_t group = GroupOf(args), stride = StrideOf(args);
  for (std::int64_t g = thread; g * group < args.rows; g += kHosts) {
    while (__atomic_load_n(&landing->flags[g], __ATOMIC_ACQUIRE) != call) {
    }
    for (std::int64_t row = g * group; row < args.rows && row < (g + 1) * group; ++row) {
      std::memcpy(args.out + row * args.width, landing->data() + row * stride + PhaseOf(args, row),
                  args.width);
    }
  }
}
