// Block g deals with eight experts, whose gates are one sector of each row. It adds up and counts
// this rank's tokens, and exchanges that with the blocks g of all ranks: sum and count travel as
// two words that each carry the number of the call, so that no fence is needed. Terms of the loss
// reach block 0 in the same way; they exist once, as the next call begins when all blocks have
// ended.
//
// Two tables take turns. A peer writes into the table of call k again in call k + 2, after it has
// had this rank's words of call k + 1, which were sent after all of call k was read.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kEach = 8, kMaxGroups = 16;
constexpr int kRows = kThreads / 2;  // a row's sector is two vectors

struct Control {
  std::uint64_t calls[kMaxGroups];                                // that this block has completed
  std::uint64_t terms[2 * kMaxGroups];                            // of the loss, by warp
  alignas(16) ulonglong2 table[2][kMaxGroups][kEach][kMaxRanks];  // by expert and source
};

__global__ void __launch_bounds__(kThreads) Loss(Args args, float scale) {
  __shared__ float4 sums[kThreads / 32][2];  // by warp and half of a sector
  __shared__ int counts[kEach];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, world = args.world, group = blockIdx.x;
  const int tokens = static_cast<int>(args.tokens), topk = static_cast<int>(args.topk);
  const int groups = gridDim.x, half = threadIdx.x % 2, lane = threadIdx.x % 32;
  if (threadIdx.x < kEach) counts[threadIdx.x] = 0;
  __syncthreads();  //@zeroed

  const float4* gates = reinterpret_cast<const float4*>(args.gates) + 2 * group + half;
  float4 sum4 = {};
#pragma unroll 4
  for (int t = threadIdx.x / 2; t < tokens; t += kRows) {
    const float4 v = gates[t * 2 * groups];
    sum4 = {sum4.x + v.x, sum4.y + v.y, sum4.z + v.z, sum4.w + v.w};
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < tokens * topk; i += kThreads) {
    const int expert = args.ids[i] - group * kEach;
    if (expert >= 0 && expert < kEach) atomicAdd(&counts[expert], 1);
  }
  for (int step = 2; step < 32; step *= 2) {
    sum4.x += __shfl_xor_sync(~0u, sum4.x, step);
    sum4.y += __shfl_xor_sync(~0u, sum4.y, step);
    sum4.z += __shfl_xor_sync(~0u, sum4.z, step);
    sum4.w += __shfl_xor_sync(~0u, sum4.w, step);
  }
  if (lane < 2) sums[threadIdx.x / 32][lane] = sum4;
  __syncthreads();  //@counted

  // A thread has one expert and one peer.
  const int expert = threadIdx.x / kMaxRanks, source = threadIdx.x % kMaxRanks;
  if (expert < kEach) {
    float total = 0;
    int load = 0;
    if (source < world) {
      for (int w = 0; w < kThreads / 32; ++w) {
        total += reinterpret_cast<const float*>(sums[w])[expert];
      }
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[source]);
      std::uint64_t sum = call << 32 | __float_as_uint(total);
      std::uint64_t number = call << 32 | static_cast<std::uint32_t>(counts[expert]);
      asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(
                       &peer->table[call % 2][group][expert][rank]),
                   "l"(sum), "l"(number)
                   : "memory");  //@send
      const ulonglong2* from = &mine->table[call % 2][group][expert][source];
      do {
        asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(sum), "=l"(number)
                     : "l"(from)
                     : "memory");  //@look
      } while (sum >> 32 != call || number >> 32 != call);  //@wait
      total = __uint_as_float(static_cast<std::uint32_t>(sum));
      load = static_cast<int>(number);
    }
    for (int s = 1; s < kMaxRanks; s *= 2) {
      total += __shfl_xor_sync(~0u, total, s, kMaxRanks);
      load += __shfl_xor_sync(~0u, load, s, kMaxRanks);
    }
    if (source == 0) {
      args.load[group * kEach + expert] = load;
      args.importance[group * kEach + expert] = total;
    }
    float term = static_cast<float>(load) * total;
    for (int step = kMaxRanks; step < 32; step *= 2) term += __shfl_xor_sync(~0u, term, step);
    const std::uint64_t word = call << 32 | __float_as_uint(term);
    if (lane == 0) StoreRelaxedGpu(&mine->terms[2 * group + threadIdx.x / 32], word);  //@put
  }
  if (group == 0 && threadIdx.x < 32) {
    std::uint64_t word = 0;
    while (lane < 2 * groups && word >> 32 != call) {  //@terms
      word = LoadRelaxedGpu(&mine->terms[lane]);
    }
    float sum = __uint_as_float(static_cast<std::uint32_t>(word));
    for (int step = 1; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (lane == 0) args.loss[0] = sum * scale;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const double all = static_cast<double>(args.tokens * args.world);
  const double scale = static_cast<double>(args.groups * kEach) / (all * all * args.topk);
  Loss<<<static_cast<int>(args.groups), kThreads, 0, stream>>>(args, static_cast<float>(scale));
}
