// Kernel by kernel: all ranks meet, every rank fetches all keys and values number by number, all
// ranks meet again, and a block per query makes scores, then weighted sums.
#include <allranks/flags.h>
#include <allranks/numbers.h>

using namespace allranks;
using Bf16 = Number<__nv_bfloat16>;

constexpr int kDim = 64, kData = 256, kMaxKeys = 1024;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

// Keys of all ranks, then values of all ranks.
__global__ void Fetch(Args args) {
  auto* to = reinterpret_cast<std::uint16_t*>(args.scratch + kData);
  const int each = static_cast<int>(args.heads * 2 * args.chunk) * kDim, all = args.world * each;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
    to[i] = reinterpret_cast<const std::uint16_t*>(args.k_peers[i / each])[i % each];
    to[all + i] = reinterpret_cast<const std::uint16_t*>(args.v_peers[i / each])[i % each];
  }
}

__global__ void Attend(Args args) {
  __shared__ float scores[kMaxKeys];
  const int chunk = static_cast<int>(args.chunk), rows = 2 * chunk, d = threadIdx.x;
  const auto position = [&](int rank, int row) {
    return row < chunk ? rank * chunk + row : (2 * args.world - 1 - rank) * chunk + row - chunk;
  };
  const auto* k = reinterpret_cast<const std::uint16_t*>(args.scratch + kData);
  const auto* v = k + args.world * args.heads * rows * kDim;
  for (int one = blockIdx.x; one < args.heads * rows; one += gridDim.x) {
    const int head = one / rows, last = position(args.rank, one % rows);
    const auto* q = reinterpret_cast<const std::uint16_t*>(args.q) + one * kDim;
    const auto at = [&](int n) {
      return ((n / rows * static_cast<int>(args.heads) + head) * rows + n % rows) * kDim;
    };
    for (int n = threadIdx.x; n < args.world * rows; n += kDim) {
      float dot = 0;
      for (int i = 0; i < kDim; ++i) dot += Bf16::ToFloat(q[i]) * Bf16::ToFloat(k[at(n) + i]);
      scores[n] = position(n / rows, n % rows) <= last ? dot / 8 : -1e30f;
    }
    __syncthreads();
    float highest = -1e30, sum = 0, output = 0;
    for (int n = 0; n < args.world * rows; ++n) highest = fmaxf(highest, scores[n]);
    for (int n = 0; n < args.world * rows; ++n) {
      const float weight = __expf(scores[n] - highest);
      sum += weight;
      output += weight * Bf16::ToFloat(v[at(n) + d]);
    }
    args.out[one * kDim + d] = output / sum;
    __syncthreads();
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Fetch<<<32, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Attend<<<64, kDim, 0, stream>>>(args);
}
