#include <allranks/flags.h>

// Cameras pull: between two meetings of block s with the blocks s of all peers, a block loads the
// positions of rank s and projects them for the own camera, twice: to count those that it sees,
// which other blocks of its rank must know, and to copy them, with attributes from rank s.

using namespace allranks;

constexpr int kThreads = 512, kWarps = kThreads / 32;

struct Control {
  std::uint64_t counted[kMaxRanks];             // by block: call, Gaussians
  std::uint32_t calls[kMaxRanks];               // by block
  std::uint32_t reached[kMaxRanks][kMaxRanks];  // by block and peer: the last meeting
};

__device__ void Meet(const Args& args, std::uint32_t meeting) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[blockIdx.x][args.rank], meeting);
    WaitAcquireSys(&mine->reached[blockIdx.x][threadIdx.x], meeting);
  }
  __syncthreads();
}

__device__ int Along(const Args& args, int row, int4 p) {
  const std::int32_t* c = args.camera + 4 * row;
  return c[0] * p.x + c[1] * p.y + c[2] * p.z + 64 * c[3];
}

__global__ void __launch_bounds__(kThreads) Pull(Args args) {
  __shared__ int of_warp[kWarps], starts[kMaxRanks];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int source = blockIdx.x, world = args.world, n = args.n, quads = args.quads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::uint32_t call = mine->calls[source] + 1;
  const int4* points = reinterpret_cast<const int4*>(args.points_peers[source]);
  const uint4* attrs = reinterpret_cast<const uint4*>(args.attrs_peers[source]);
  Meet(args, 2 * call - 1);
  int next = 0;
  for (const bool copy : {false, true}) {
    for (int base = 0; base < n; base += kThreads) {
      const int i = base + threadIdx.x;
      const int4 p = i < n ? points[i] : int4{};
      const int u = Along(args, 0, p), v = Along(args, 1, p), d = Along(args, 2, p);
      const bool goes = i < n && d > 0 && abs(u) <= d && abs(v) <= d;
      const std::uint32_t all = __ballot_sync(~0u, goes);
      if (lane == 0) of_warp[warp] = __popc(all);
      __syncthreads();
      int at = next + __popc(all & ((1u << lane) - 1));
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp) at += of_warp[w];
        next += of_warp[w];
      }
      if (goes && copy) {
        const int x = (u + d) * 64 / (2 * d + 1), y = (v + d) * 64 / (2 * d + 1);
        reinterpret_cast<int4*>(args.seen)[at] = make_int4(x, y, d, source * n + i);
        uint4* to = reinterpret_cast<uint4*>(args.seen_attrs) + at * quads;
        for (int q = 0; q < quads; ++q) to[q] = attrs[i * quads + q];
      }
      __syncthreads();
    }
    if (copy) break;
    if (threadIdx.x == 0) {
      args.counts[source] = next;
      StoreReleaseGpu(&mine->counted[source], std::uint64_t{call} << 32 | next);
    }
    if (threadIdx.x < world) {
      std::uint64_t word;
      do {
        word = LoadAcquireGpu(&mine->counted[threadIdx.x]);
      } while (word >> 32 != call);
      starts[threadIdx.x] = static_cast<int>(word);
    }
    __syncthreads();
    next = 0;
    for (int s = 0; s < source; ++s) next += starts[s];
  }
  Meet(args, 2 * call);
  if (threadIdx.x == 0) mine->calls[source] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Pull<<<args.world, kThreads, 0, stream>>>(args);
}
