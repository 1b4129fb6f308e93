#include <allranks/flags.h>

// All ranks meet, one thread per source walks through its Gaussians and lists those that the own
// camera sees, a kernel copies what is on the lists, and all meet again, so that no rank leaves
// while others read.

struct Control {
  std::uint32_t meetings;
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

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

__device__ std::int32_t* ListOf(const Args& args, int source) {
  return reinterpret_cast<std::int32_t*>(args.scratch + sizeof(Control)) + source * args.n;
}

// One row of the camera's matrix, for a point.
__device__ int Along(const Args& args, int row, const std::int32_t* p) {
  const std::int32_t* c = args.camera + 4 * row;
  return c[0] * p[0] + c[1] * p[1] + c[2] * p[2] + 64 * c[3];
}

__global__ void Find(Args args) {
  if (threadIdx.x >= args.world) return;
  int count = 0;
  for (int i = 0; i < args.n; ++i) {
    const std::int32_t* p = args.points_peers[threadIdx.x] + 4 * i;
    const int u = Along(args, 0, p), v = Along(args, 1, p), d = Along(args, 2, p);
    if (d > 0 && abs(u) <= d && abs(v) <= d) ListOf(args, threadIdx.x)[count++] = i;
  }
  args.counts[threadIdx.x] = count;
}

__global__ void Copy(Args args) {
  const int width = 4 * args.quads;
  int start = 0;
  for (int s = 0; s < args.world; start += args.counts[s++]) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < args.counts[s] * width;
         at += gridDim.x * blockDim.x) {
      const int i = ListOf(args, s)[at / width], k = start + at / width;
      args.seen_attrs[start * width + at] = args.attrs_peers[s][i * width + at % width];
      if (at % width != 0) continue;
      const std::int32_t* p = args.points_peers[s] + 4 * i;
      const int d = Along(args, 2, p);
      args.seen[4 * k] = (Along(args, 0, p) + d) * 64 / (2 * d + 1);
      args.seen[4 * k + 1] = (Along(args, 1, p) + d) * 64 / (2 * d + 1);
      args.seen[4 * k + 2] = d;
      args.seen[4 * k + 3] = s * args.n + i;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Find<<<1, 32, 0, stream>>>(args);
  Copy<<<16, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
