#include <allranks/flags.h>

// All threads begin with sending the faces to the six neighbours. Then they compute cells inside
// the box, which need nothing from elsewhere, and last the cells of the surface. A cell of the
// surface takes the words that it needs by itself: each is needed by one cell only.
//
// Each number travels in a word of 64 bits beside the number of the call: a word arrives whole, so
// neither flags nor fences are needed. Words exist twice, for odd and even calls. Neighbours send
// to each other in every call. A sender in call k + 2 has the neighbour's words of call k + 1, so
// the neighbour has ended call k and has read its words.

using namespace allranks;

constexpr int kThreads = 256, kMaxBlocks = 64;
constexpr int kWords = 1024;  // bytes before the words: calls by block

// The box of a rank in the grid of ranks. Directions are x, y, z; sides 0 and 1 of direction d are
// the faces 2 d and 2 d + 1.
struct Box {
  int n[3], grid[3], at[3];
  __device__ explicit Box(const Args& args) : n{int(args.nx), int(args.ny), int(args.nz)} {
    grid[2] = args.world == 8 ? 2 : 1;
    grid[1] = args.world > 2 && args.world % 2 == 0 ? 2 : 1;
    grid[0] = args.world / grid[1] / grid[2];
    at[0] = args.rank % grid[0];
    at[1] = args.rank / grid[0] % grid[1];
    at[2] = args.rank / grid[0] / grid[1];
  }
  __device__ int Neighbour(int d, int side) const {
    int to[3] = {at[0], at[1], at[2]};
    to[d] = (at[d] + (side == 0 ? grid[d] - 1 : 1)) % grid[d];
    return (to[2] * grid[1] + to[1]) * grid[0] + to[0];
  }
  __device__ int Cell(const int (&cell)[3]) const {
    return (cell[2] * n[1] + cell[1]) * n[0] + cell[0];
  }
  // Faces lie one after the other. In a face, the first of the two other directions varies fastest.
  __device__ int Size(int d) const {
    return d == 0 ? n[1] * n[2] : d == 1 ? n[0] * n[2] : n[0] * n[1];
  }
  __device__ int Start(int face) const {
    const int x = Size(0), y = Size(1), z = Size(2);
    return face < 2 ? face * x : face < 4 ? 2 * x + (face - 2) * y : 2 * (x + y) + (face - 4) * z;
  }
  __device__ int Words() const { return Start(6); }
};

// The cell that is next to `cell` on a side, wherever it lies.
__device__ float Next(const Args& args, const Box& box, const std::uint64_t* words,
                      const int (&cell)[3], int d, int side, std::uint32_t call) {
  const float* u = args.u;
  int wrapped[3] = {cell[0], cell[1], cell[2]};
  wrapped[d] = (cell[d] + (side == 0 ? box.n[d] - 1 : 1)) % box.n[d];
  if (cell[d] != (side == 0 ? 0 : box.n[d] - 1)) return u[box.Cell(wrapped)];
  if (box.grid[d] == 1) return u[box.Cell(wrapped)];
  const int a = d == 0 ? 1 : 0, b = d == 2 ? 1 : 2;
  std::uint64_t word;
  do {
    word = LoadRelaxedSys(&words[box.Start(2 * d + side) + cell[b] * box.n[a] + cell[a]]);  //@get
  } while (std::uint32_t(word >> 32) != call);  //@wait
  return __uint_as_float(static_cast<std::uint32_t>(word));
}

__global__ void __launch_bounds__(kThreads) Step(Args args) {
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const Box box(args);
  const int first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
  const int set = call % 2 * box.Words();

  for (int face = 0; face < 6; ++face) {
    const int d = face / 2, side = face % 2, a = d == 0 ? 1 : 0, b = d == 2 ? 1 : 2;
    if (box.grid[d] == 1) continue;
    std::uint8_t* peer = args.scratch_peers[box.Neighbour(d, side)] + kWords;
    std::uint64_t* to = reinterpret_cast<std::uint64_t*>(peer) + set;
    for (int i = first; i < box.Size(d); i += stride) {  //@send
      int cell[3];
      cell[d] = side == 0 ? 0 : box.n[d] - 1;
      cell[a] = i % box.n[a];
      cell[b] = i / box.n[a];
      const std::uint64_t word =
          std::uint64_t{call} << 32 | __float_as_uint(args.u[box.Cell(cell)]);
      StoreRelaxedSys(&to[box.Start(2 * d + 1 - side) + i], word);  //@put
    }
  }
  const auto* words = reinterpret_cast<const std::uint64_t*>(args.scratch + kWords) + set;
  for (int surface = 0; surface < 2; ++surface) {
    for (int i = first; i < box.n[0] * box.n[1] * box.n[2]; i += stride) {
      const int cell[3] = {i % box.n[0], i / box.n[0] % box.n[1], i / box.n[0] / box.n[1]};
      bool outer = false;
      for (int d = 0; d < 3; ++d) outer |= cell[d] == 0 || cell[d] == box.n[d] - 1;
      if (outer != (surface == 1)) continue;
      float sum = args.c[0] * args.u[i];
#pragma unroll
      for (int d = 0; d < 3; ++d) {
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          sum += args.c[1 + 2 * d + side] * Next(args, box, words, cell, d, side, call);
        }
      }
      args.v[i] = sum;
    }
  }
  __syncthreads();                                 //@all_done
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.nx * args.ny * args.nz + kThreads - 1) / kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Step<<<blocks, kThreads, 0, stream>>>(args);
}
