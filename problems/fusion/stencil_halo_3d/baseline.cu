#include <allranks/flags.h>

// All ranks meet, a kernel computes all cells and reads those of neighbours from where they lie,
// and all meet again, so that no rank leaves while its u is read.

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

// A cell of the whole torus.
__device__ float At(const Args& args, int x, int y, int z, int px, int py, int pz) {
  const int nx = args.nx, ny = args.ny, nz = args.nz;
  x = (x + px * nx) % (px * nx), y = (y + py * ny) % (py * ny), z = (z + pz * nz) % (pz * nz);
  const int rank = (z / nz * py + y / ny) * px + x / nx;
  return args.u_peers[rank][(z % nz * ny + y % ny) * nx + x % nx];
}

__global__ void Step(Args args) {
  const int nx = args.nx, ny = args.ny, nz = args.nz, all = nx * ny * nz;
  const int pz = args.world == 8 ? 2 : 1, py = args.world > 2 && args.world % 2 == 0 ? 2 : 1;
  const int px = args.world / py / pz, rank = args.rank;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
    const int x = rank % px * nx + i % nx, y = rank / px % py * ny + i / nx % ny;
    const int z = rank / px / py * nz + i / nx / ny;
    const auto at = [&](int dx, int dy, int dz) {
      return At(args, x + dx, y + dy, z + dz, px, py, pz);
    };
    const float* c = args.c;
    args.v[i] = c[0] * at(0, 0, 0) + c[1] * at(-1, 0, 0) + c[2] * at(1, 0, 0) +
                c[3] * at(0, -1, 0) + c[4] * at(0, 1, 0) + c[5] * at(0, 0, -1) + c[6] * at(0, 0, 1);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Meet<<<1, 32, 0, stream>>>(args);
  Step<<<32, 256, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
