// Two kernels: the first one sends sums of squares as words that also hold the number of the call,
// the second one, of another shape, waits for them. Two sets of words, used in turn: a rank leaves
// call k with words of call k of all ranks, which have left call k - 1.
#include <allranks/flags.h>

constexpr int kBlocks = 32, kThreads = 128, kWords = 256;

__device__ std::uint64_t* Words(const Args& args, int rank, std::int64_t row, std::uint32_t call) {
  std::uint64_t* words = reinterpret_cast<std::uint64_t*>(args.scratch_peers[rank] + kWords);
  return words + ((call & 1) * args.rows + row) * args.world;
}

__global__ void Squares(Args args) {
  const std::uint32_t call = *reinterpret_cast<std::uint32_t*>(args.scratch) + 1;
  const int lane = threadIdx.x % 32;
  for (std::int64_t row = (blockIdx.x * kThreads + threadIdx.x) / 32; row < args.rows;
       row += kBlocks * kThreads / 32) {
    float sum = 0;
    for (std::int64_t j = lane; j < args.hidden; j += 32) {
      const float x = args.x[row * args.hidden + j];
      sum += x * x;
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane >= args.world) continue;
    allranks::StoreRelaxedSys(&Words(args, lane, row, call)[args.rank],
                              std::uint64_t{call} << 32 | __float_as_uint(sum));
  }
}

// A block has a row; every thread waits for all words of the row.
__global__ void Scale(Args args) {
  const std::uint32_t call = *reinterpret_cast<std::uint32_t*>(args.scratch) + 1;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += kBlocks) {
    float total = 0;
    for (int r = 0; r < args.world; ++r) {
      std::uint64_t word;
      do {
        word = allranks::LoadRelaxedSys(&Words(args, args.rank, row, call)[r]);
      } while (word >> 32 != call);
      total += __uint_as_float(static_cast<std::uint32_t>(word));
    }
    const float root = sqrtf(total / (args.world * args.hidden) + 1e-5f);
    for (std::int64_t j = threadIdx.x; j < args.hidden; j += kThreads) {
      args.norm[row * args.hidden + j] = args.weight[j] * (args.x[row * args.hidden + j] / root);
    }
  }
}

__global__ void Advance(Args args) { ++*reinterpret_cast<std::uint32_t*>(args.scratch); }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Squares<<<kBlocks, kThreads, 0, stream>>>(args);
  Scale<<<kBlocks, kThreads, 0, stream>>>(args);
  Advance<<<1, 1, 0, stream>>>(args);
}
