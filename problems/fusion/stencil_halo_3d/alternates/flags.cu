#include <allranks/flags.h>

// Faces are stored plainly into boxes at the neighbours by one block per face, which then says so
// by a flag, waits for the face on its own side and counts itself as done. All other blocks compute
// the inside and then, when all six are done, the surface. Boxes alternate between odd and even
// calls: in call k + 1 the neighbour's flag shows that it has ended call k.

using namespace allranks;
constexpr int kThreads = 256, kMaxBlocks = 64, kBoxes = 4096;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t sent[6];  // by face of this rank: the last call whose cells are here
  std::uint32_t here;     // faces of all calls that this rank's blocks have seen
};

// Cell `i` of face 2 d + side of a box, as an index into the box.
__device__ int OnFace(const int (&n)[3], int d, int side, int i) {
  const int last = side == 0 ? 0 : n[d] - 1;
  if (d == 0) return i * n[0] + last;
  if (d == 1) return (i / n[0] * n[1] + last) * n[0] + i % n[0];
  return last * n[0] * n[1] + i;
}

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int n[3] = {int(args.nx), int(args.ny), int(args.nz)}, all = n[0] * n[1] * n[2];
  const int pz = args.world == 8 ? 2 : 1, py = args.world > 2 && args.world % 2 == 0 ? 2 : 1;
  const int grid[3] = {args.world / py / pz, py, pz}, step[3] = {1, n[0], n[0] * n[1]};
  const int room = n[0] * n[1] + n[1] * n[2] + n[0] * n[2];  // more than any face
  const auto boxes = [&](std::uint8_t* scratch, int face) {
    return reinterpret_cast<float*>(scratch + kBoxes) + (call % 2 * 6 + face) * room;
  };
  if (blockIdx.x < 6) {
    const int face = blockIdx.x, d = face / 2, side = face % 2;
    const int below = d == 0 ? 1 : d == 1 ? grid[0] : grid[0] * py;  // ranks per step in d
    const int at = args.rank / below % grid[d], to = (at + (side == 0 ? grid[d] - 1 : 1)) % grid[d];
    const int peer = args.rank + (to - at) * below;
    float* box = boxes(args.scratch_peers[peer], face ^ 1);
    for (int i = threadIdx.x; i < all / n[d]; i += kThreads) box[i] = args.u[OnFace(n, d, side, i)];
    __syncthreads();
    if (threadIdx.x == 0) {
      StoreReleaseSys(&reinterpret_cast<Control*>(args.scratch_peers[peer])->sent[face ^ 1], call);
      WaitAcquireSys(&mine->sent[face], call);
      AddReleaseGpu(&mine->here, 1u);
      mine->calls[blockIdx.x] = call;
    }
    return;
  }
  for (int surface = 0; surface < 2; ++surface) {
    if (surface == 1) {
      if (threadIdx.x == 0) WaitAcquireGpu(&mine->here, 6 * call);
      __syncthreads();
    }
    for (int i = (blockIdx.x - 6) * kThreads + threadIdx.x; i < all;
         i += (gridDim.x - 6) * kThreads) {
      const int cell[3] = {i % n[0], i / n[0] % n[1], i / n[0] / n[1]};
      bool outer = false;
      for (int d = 0; d < 3; ++d) outer |= cell[d] == 0 || cell[d] == n[d] - 1;
      if (outer != (surface == 1)) continue;
      float sum = args.c[0] * args.u[i];
      for (int face = 0; face < 6; ++face) {
        const int d = face / 2, side = face % 2;
        const bool beyond = cell[d] == (side == 0 ? 0 : n[d] - 1);
        const int on = d == 0 ? i / n[0] : d == 1 ? cell[2] * n[0] + cell[0] : i % step[2];
        const float next =
            beyond ? boxes(args.scratch, face)[on] : args.u[i + (2 * side - 1) * step[d]];
        sum += args.c[1 + face] * next;
      }
      args.v[i] = sum;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = 6 + static_cast<int>((args.nx * args.ny * args.nz + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Step<<<blocks, kThreads, 0, stream>>>(args);
}
