#include <allranks/flags.h>
#include <allranks/numbers.h>

// A kernel stages rotated keys and values in symmetric memory, all ranks meet, a kernel copies from
// all peers element by element, and all meet again before the stage may be overwritten.

using Key = allranks::Number<__nv_bfloat16>;
constexpr int kData = 1024;

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Rotate(Args args) {
  const unsigned dim = args.dim, half = dim / 2, all = args.tokens * args.heads * dim;
  const auto* k = reinterpret_cast<const std::uint16_t*>(args.k);
  auto* stage = reinterpret_cast<std::uint16_t*>(args.scratch + kData);
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
    const unsigned at = i % dim, pair = at % half;
    const float* turn = args.turns + i / (args.heads * dim) * dim;
    const float low = Key::ToFloat(k[i - at + pair]), high = Key::ToFloat(k[i - at + half + pair]);
    const float c = turn[pair], s = turn[half + pair];
    stage[i] = Key::FromFloat(at < half ? low * c - high * s : high * c + low * s);
    stage[all + i] = reinterpret_cast<const std::uint16_t*>(args.v)[i];
  }
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

__global__ void Copy(Args args) {
  const unsigned row = args.heads * args.dim, all = args.tokens * row;
  auto* keys = reinterpret_cast<std::uint16_t*>(args.k_cache) + args.past * row;
  auto* values = reinterpret_cast<std::uint16_t*>(args.v_cache) + args.past * row;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < args.world * all;
       i += gridDim.x * blockDim.x) {
    const auto* stage = reinterpret_cast<const std::uint16_t*>(args.scratch_peers[i / all] + kData);
    keys[i] = stage[i % all];
    values[i] = stage[all + i % all];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Rotate<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Copy<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
