// A warp has a row, and nothing is shared in a block: packets of one float and the number of the
// call are pushed to all peers, in one shot at any size. Two sets of packets, used in turn: a rank
// enters call k + 1 with packets of call k of all peers, so call k - 1 is over everywhere.
#include <allranks/flags.h>

constexpr int kMaxBlocks = 64, kWarps = 8, kPackets = 4096;

__global__ void __launch_bounds__(32 * kWarps) ReduceNorm(Args args) {
  const int warp = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + warp;
  const std::uint32_t call = *calls + 1;
  const std::int64_t all = args.rows * args.hidden, set = (call & 1) * args.world * all;
  for (std::int64_t row = warp; row < args.rows; row += gridDim.x * kWarps) {
    for (int j = lane; j < args.hidden; j += 32) {
      const std::int64_t at = row * args.hidden + j;
      const std::uint64_t packet = std::uint64_t{call} << 32 | __float_as_uint(args.in[at]);
      for (int r = 0; r < args.world; ++r) {
        std::uint64_t* slots = reinterpret_cast<std::uint64_t*>(args.scratch_peers[r] + kPackets);
        allranks::StoreRelaxedSys(&slots[set + args.rank * all + at], packet);
      }
    }
  }
  const std::uint64_t* slots = reinterpret_cast<std::uint64_t*>(args.scratch + kPackets);
  for (std::int64_t row = warp; row < args.rows; row += gridDim.x * kWarps) {
    float squares = 0;
    for (int j = lane; j < args.hidden; j += 32) {
      const std::int64_t at = row * args.hidden + j;
      float h = args.residual[at];
      for (int r = 0; r < args.world; ++r) {
        std::uint64_t packet;
        do {
          packet = allranks::LoadRelaxedSys(&slots[set + r * all + at]);
        } while (packet >> 32 != call);
        h += __uint_as_float(static_cast<std::uint32_t>(packet));
      }
      args.stream[at] = h;
      squares += h * h;
    }
    for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(~0u, squares, d);
    const float factor = rsqrtf(squares / args.hidden + 1e-5f);
    for (int j = lane; j < args.hidden; j += 32) {
      const std::int64_t at = row * args.hidden + j;
      args.norm[at] = args.stream[at] * factor * args.weight[j];
    }
  }
  __syncwarp();
  if (lane == 0) *calls = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int needed = static_cast<int>((args.rows + kWarps - 1) / kWarps);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  ReduceNorm<<<blocks, 32 * kWarps, 0, stream>>>(args);
}
