#include <allranks/flags.h>

// For each version four kernels: store all parts, meet all ranks, answer, meet again.
struct Control {
  std::uint32_t meetings, reached[kMaxRanks];
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.mapped);
  Control* peer = reinterpret_cast<Control*>(args.mapped_peers[threadIdx.x]);
  const std::uint32_t meeting = mine->meetings + 1;
  allranks::StoreReleaseSys(&peer->reached[args.rank], meeting);
  allranks::WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  __syncwarp((1u << args.world) - 1);
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Push(Args args, int v) {
  const std::int64_t all = args.world * args.rows * args.part, columns = args.world * args.part;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all;
       i += gridDim.x * blockDim.x) {
    const std::int64_t row = i / args.part, target = row / args.rows;
    auto* words = reinterpret_cast<std::uint32_t*>(args.mapped_peers[target] + 2048);
    words[row % args.rows * columns + args.rank * args.part + i % args.part] = args.in[v * all + i];
  }
}

__global__ void Answer(Args args, int v) {
  const std::int64_t columns = args.world * args.part;
  const int lane = threadIdx.x % 32;
  for (std::int64_t i = blockIdx.x * blockDim.x / 32 + threadIdx.x / 32;
       i < args.rows * args.queries; i += gridDim.x * blockDim.x / 32) {
    const auto* words = reinterpret_cast<std::uint32_t*>(args.mapped + 2048);
    std::uint32_t sum = 0;
    for (std::int64_t c = lane; c < columns; c += 32) {
      sum += words[i % args.rows * columns + c] * args.x[i / args.rows * columns + c];
    }
    sum = __reduce_add_sync(~0u, sum);
    if (lane == 0) args.out[v * args.rows * args.queries + i] = sum;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int v = 0; v < args.versions; ++v) {
    Push<<<32, 256, 0, stream>>>(args, v);
    Meet<<<1, args.world, 0, stream>>>(args);
    Answer<<<32, 64, 0, stream>>>(args, v);
    Meet<<<1, args.world, 0, stream>>>(args);
  }
}
