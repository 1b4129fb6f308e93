// Kernel by kernel: copy the input to where peers can read it, meet, add up all of it number by
// number in the order of the trees, and meet again.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 32, kThreads = 256, kData = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Show(Args args) {
  float* shown = reinterpret_cast<float*>(args.scratch + kData);
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    shown[i] = args.in[i];
  }
}

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

__global__ void Sum(Args args) {
  const int world = args.world;
  for (std::int64_t i = blockIdx.x * kThreads + threadIdx.x; i < args.n; i += kBlocks * kThreads) {
    const bool second = i >= (args.n + 7) / 8 * 4;
    float v[kMaxRanks];
    for (int place = 0; place < world; ++place) {
      const int other = world % 2 == 0 ? world - 1 - place : (place + 1) % world;
      v[place] = reinterpret_cast<float*>(args.scratch_peers[second ? other : place] + kData)[i];
    }
    for (int b = 2; b <= kMaxRanks; b *= 2) {
      for (int p = b % kMaxRanks; p < world; p += 2 * b) {
        if (p > 0) v[p] += v[p - b / 2];
        int h = b / 2;
        while (h > 0 && p + h >= world) h /= 2;
        if (h > 0) v[p] += v[p + h];
      }
    }
    args.out[i] = v[0];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Show<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Sum<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
