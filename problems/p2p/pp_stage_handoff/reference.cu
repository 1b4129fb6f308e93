// Thread t of every stage has the same three words, so a thread talks to one thread of the next
// stage only. Three words travel as a packet of 16 bytes whose last word is the number of the step,
// counted over all calls: who sees the number has the words, and no fence is needed.
//
// A thread's packets go round a ring of kSlots places at the receiver. The receiving warp returns
// credit, the number of steps that it has read; a packet is written when the one before it in the
// same place was read. Credit and packets count on from call to call, so a stage may run ahead of
// the next one across the border of a call, too, by kSlots steps.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128, kSlots = 8, kAhead = 4;

struct Control {
  std::uint32_t steps[kMaxBlocks * kThreads / 32];   // by warp: of all earlier calls
  std::uint32_t credit[kMaxBlocks * kThreads / 32];  // by warp, from the next stage: steps read
};

__device__ void Send(uint4* to, uint4 v) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");  //@send
}

__device__ uint4 Look(const uint4* from) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");  //@look
  return v;
}

__device__ std::uint32_t Forward(std::uint32_t x, std::uint32_t w) {
  const std::uint32_t t = (x + w) * 0x9E3779B1u;
  return t ^ t >> 15;
}

// Calls f(j) for the words that this thread has.
template <class F>
__device__ void Each(std::int64_t words, F f) {
  if (words > 0) f(0);
  if (words > 1) f(1);
  if (words > 2) f(2);
}

__global__ void __launch_bounds__(kThreads) Stage(Args args) {
  const int rank = args.rank, next = rank + 1 < args.world ? rank + 1 : rank;
  const int thread = blockIdx.x * kThreads + threadIdx.x, threads = gridDim.x * kThreads;
  const int warp = thread / 32, lane = thread % 32;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* before = reinterpret_cast<Control*>(args.scratch_peers[rank > 0 ? rank - 1 : 0]);
  const uint4* inbox = reinterpret_cast<const uint4*>(mine + 1) + thread;
  uint4* outbox =
      reinterpret_cast<uint4*>(reinterpret_cast<Control*>(args.scratch_peers[next]) + 1) + thread;
  const std::int64_t n = args.n, micro = args.micro;
  const std::int64_t warm = min(micro, std::int64_t{args.world - 1 - rank});  //@warm
  std::uint32_t step = mine->steps[warp];
  std::uint32_t credit = LoadRelaxedSys(&mine->credit[warp]);

  for (std::int64_t sweep = 0; sweep < n; sweep += 3 * threads) {
    const std::int64_t at = sweep + 3 * thread, words = n - at;
    std::uint32_t w[3] = {}, x[kAhead][3] = {}, y[3] = {}, old[3] = {}, rest[3] = {};
    Each(words, [&](int j) { w[j] = args.weights[at + j]; });
    for (std::int64_t group = 0; group < micro; group += kAhead) {
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (rank > 0 || group + k >= micro) break;
        Each(words, [&](int j) { x[k][j] = args.in[(group + k) * n + at + j]; });
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const std::int64_t m = group + k, back = m - warm;
        if (m >= micro) break;
        if (warm > 0 && back >= 0) {  // on its way while we wait
          Each(words, [&](int j) { old[j] = args.out[back * n + at + j]; });
        }
        if (rank > 0 && words > 0) {
          uint4 from;
          do {
            from = Look(&inbox[step % kSlots * threads]);
          } while (from.w != step + 1);  //@arrived
          x[k][0] = from.x, x[k][1] = from.y, x[k][2] = from.z;
        }
        for (int j = 0; j < 3; ++j) y[j] = Forward(x[k][j], w[j]);
        if (rank < next && words > 0) {
          while (static_cast<std::int32_t>(credit - (step + 1 - kSlots)) < 0) {  //@room
            credit = LoadRelaxedSys(&mine->credit[warp]);
          }
          Send(&outbox[step % kSlots * threads], {y[0], y[1], y[2], step + 1});  //@push
        }
        __syncwarp();
        ++step;
        if (rank > 0 && lane == 0) StoreRelaxedSys(&before->credit[warp], step);  //@consumed
        Each(words, [&](int j) { args.out[m * n + at + j] = y[j]; });
        // Of all outputs, `rest` is what no backward step has added yet.
        for (int j = 0; j < 3; ++j) rest[j] += y[j];
        if (back >= 0) {  //@delayed
          for (int j = 0; j < 3; ++j) {
            const std::uint32_t gradient = warm > 0 ? old[j] : y[j];
            w[j] += gradient;
            rest[j] -= gradient;
          }
        }
      }
    }
    Each(words, [&](int j) { args.new_weights[at + j] = w[j] + rest[j]; });  //@drain
  }
  __syncwarp();
  if (lane == 0) mine->steps[warp] = step;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t needed = (args.n + 3 * kThreads - 1) / (3 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Stage<<<blocks, kThreads, 0, stream>>>(args);
}
