#include <allranks/flags.h>

// Kernels in a row: stage what this rank wants, meet, read what all want and run, meet.

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};

// The requests of one heap, from the sums of what is wanted.
__device__ void Run(const std::uint8_t* sums, std::uint8_t* offsets) {
  std::uint32_t free = ~0u, ending[32] = {};
  for (int i = 0; i < 16; ++i) {
    free |= ending[i];
    const std::uint32_t need = 1 + sums[i] % 8, slabs = (1u << need) - 1;
    std::uint32_t offset = 0;
    while (offset + need <= 32 && (free >> offset & slabs) != slabs) ++offset;
    if (offset + need > 32) {
      offsets[i] = 255;
      continue;
    }
    offsets[i] = static_cast<std::uint8_t>(offset);
    free &= ~(slabs << offset);
    ending[i + 1 + sums[i] / 8 % 16] |= slabs << offset;
  }
}

__global__ void Stage(Args args) {
  for (std::int64_t i = blockIdx.x * 128 + threadIdx.x; i < args.heaps; i += gridDim.x * 128) {
    reinterpret_cast<uint4*>(args.scratch + 65536)[i] =
        reinterpret_cast<const uint4*>(args.want)[i];
  }
}

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->arrived[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void RunAll(Args args) {
  for (std::int64_t h = blockIdx.x * 128 + threadIdx.x; h < args.heaps; h += gridDim.x * 128) {
    std::uint8_t sums[16] = {};
    for (int r = 0; r < args.world; ++r) {
      const std::uint8_t* want = args.scratch_peers[r] + 65536 + h * 16;
      for (int i = 0; i < 16; ++i) sums[i] += want[i];
    }
    Run(sums, args.offset + h * 16);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Stage<<<8, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  RunAll<<<8, 128, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
