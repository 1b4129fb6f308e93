// Step by step: a kernel lays this rank's bytes open, all meet, a kernel reads the peers' bytes and
// unpacks them, and all meet again before the bytes may be overwritten.
#include <allranks/flags.h>

using namespace allranks;
constexpr int kBlocks = 32, kThreads = 256, kControl = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Open(Args args) {
  auto* bytes = args.scratch + kControl;
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n / 2; i += kBlocks * kThreads) bytes[i] = args.codes[i];
  for (std::int64_t i = first; i < (args.n + 31) / 32; i += kBlocks * kThreads) {
    bytes[args.n / 2 + i] = args.exponents[i];
  }
}

__device__ std::uint32_t Unpack(int code, std::uint32_t e) {
  const float magnitude = __uint_as_float((code & 7) << 22) * 0x1p126f;
  const float value = magnitude * __uint_as_float(e == 0 ? 0x400000 : e << 23);
  return __float_as_uint(value) >> 16 | (code & 8) << 12;
}

__global__ void Read(Args args) {
  const std::int64_t first = blockIdx.x * kThreads + threadIdx.x;
  for (int r = 0; r < args.world; ++r) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(args.scratch_peers[r] + kControl);
    std::uint32_t* out = reinterpret_cast<std::uint32_t*>(args.out) + r * args.n / 2;
    for (std::int64_t i = first; i < args.n / 2; i += kBlocks * kThreads) {
      const std::uint32_t e = bytes[args.n / 2 + i / 16];
      out[i] = Unpack(bytes[i] & 15, e) | Unpack(bytes[i] >> 4, e) << 16;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Open<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Read<<<kBlocks, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
