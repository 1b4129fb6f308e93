#include <allranks/flags.h>

// Blocks 0 and 1 have the first and the last row of this rank. They begin with sending that row to
// the neighbour, convolve what is here, take the neighbour's row, and add what it contributes; all
// other blocks convolve the rows between, which need nothing from elsewhere.
//
// Each number travels in a word of 64 bits beside the number of the call: a word arrives whole, so
// neither flags nor fences are needed. Words exist twice, for odd and even calls. Neighbours send
// to each other in every call. A sender in call k + 2 has the neighbour's words of call k + 1, so
// the neighbour has ended call k and has read its words.

using namespace allranks;

constexpr int kThreads = 256, kMaxBlocks = 64;
constexpr int kWords = 1024;  // bytes before the words: calls by block

// Sides: 0 is above, 1 below. The box for a side holds the row of the neighbour on that side.
__device__ void Send(const Args& args, int side, int box, int words, std::uint32_t call) {
  const int peer = side == 0 ? args.rank - 1 : args.rank + 1;
  if (peer < 0 || peer >= args.world) return;
  const float* row = args.x + (side == 0 ? 0 : (args.rows - 1) * words);
  std::uint64_t* to = reinterpret_cast<std::uint64_t*>(args.scratch_peers[peer] + kWords) + box;
  for (int i = threadIdx.x; i < words; i += kThreads) {
    const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(row[i]);
    StoreRelaxedSys(&to[(1 - side) * words + i], word);  //@put
  }
}

__device__ void Receive(const Args& args, float* to, int box, int words, std::uint32_t call) {
  const auto* from = reinterpret_cast<const std::uint64_t*>(args.scratch + kWords) + box;
  for (int i = threadIdx.x; i < words; i += kThreads) {
    std::uint64_t word;
    do {
      word = LoadRelaxedSys(&from[i]);  //@get
    } while (std::uint32_t(word >> 32) != call);  //@wait
    to[i] = __uint_as_float(static_cast<std::uint32_t>(word));
  }
}

// What three rows, from above a pixel to below it, add to four of its outputs; null adds nothing.
__device__ float4 Pixel(const Args& args, const float* const (&rows)[3], int col, int quad) {
  const int cols = args.cols, inputs = args.inputs, quads = args.outputs / 4;
  float4 sum = {0, 0, 0, 0};
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    if (rows[r] == nullptr) continue;
    for (int j = 0; j < inputs; j += 4) {
      float4 x[3], w[12];  // all on their way before the first is needed
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        const int at = col + c - 1, tap = (3 * r + c) * inputs + j;
        const bool inside = at >= 0 && at < cols;
        x[c] = inside ? *reinterpret_cast<const float4*>(rows[r] + at * inputs + j) : float4{};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          w[4 * c + k] = reinterpret_cast<const float4*>(args.w)[(tap + k) * quads + quad];
        }
      }
#pragma unroll
      for (int k = 0; k < 12; ++k) {
        const float4 a = w[k], b = x[k / 4];
        const float value = k % 4 == 0 ? b.x : k % 4 == 1 ? b.y : k % 4 == 2 ? b.z : b.w;
        sum.x += a.x * value, sum.y += a.y * value, sum.z += a.z * value, sum.w += a.w * value;
      }
    }
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) Convolve(Args args) {
  extern __shared__ float halo[];  // the neighbours' rows, above and below
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int cols = args.cols, quads = args.outputs / 4, words = cols * args.inputs;
  const int box = call % 2 * 2 * words, rows = args.rows;
  float4* y = reinterpret_cast<float4*>(args.y);

  if (blockIdx.x < 2) {
    const int row = blockIdx.x == 0 ? 0 : rows - 1;
    Send(args, blockIdx.x, box, words, call);  //@send
    if (blockIdx.x == 0 || rows > 1) {         // a single row is that of block 0
      const float* x = args.x + row * words;
      const float* own[3] = {row > 0 ? x - words : nullptr, x,
                             row + 1 < rows ? x + words : nullptr};
      for (int i = threadIdx.x; i < cols * quads; i += kThreads) {
        y[row * cols * quads + i] = Pixel(args, own, i / quads, i % quads);
      }
      const float* others[3] = {};
      for (int side = 0; side < 2; ++side) {
        const int peer = side == 0 ? args.rank - 1 : args.rank + 1;
        if (own[2 * side] != nullptr || peer < 0 || peer >= args.world) continue;
        others[2 * side] = halo + side * words;
        Receive(args, halo + side * words, box + side * words, words, call);
      }
      __syncthreads();  //@received
      for (int i = threadIdx.x; i < cols * quads; i += kThreads) {
        const float4 sum = y[row * cols * quads + i];
        const float4 more = Pixel(args, others, i / quads, i % quads);
        y[row * cols * quads + i] = {sum.x + more.x, sum.y + more.y, sum.z + more.z,
                                     sum.w + more.w};
      }
    }
  } else {
    for (int i = (blockIdx.x - 2) * kThreads + threadIdx.x; i < (rows - 2) * cols * quads;
         i += (gridDim.x - 2) * kThreads) {
      const float* row = args.x + (1 + i / (cols * quads)) * words;
      const float* around[3] = {row - words, row, row + words};
      y[cols * quads + i] = Pixel(args, around, i / quads % cols, i % quads);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int inner = args.rows > 2 ? (args.rows - 2) * args.cols * (args.outputs / 4) : 0;
  const int needed = 2 + (inner + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Convolve<<<blocks, kThreads, 2 * args.cols * args.inputs * sizeof(float), stream>>>(args);
}
