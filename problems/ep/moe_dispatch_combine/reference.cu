// Dispatch and combine of a mixture of experts: complete the region between the markers.
// statement.md says what holds and what is asked for.
#include "problem.h"

// Words in memory of any GPU of the node. A flag of 64 bits has room for a small value beside a
// number of the call. Stronger and weaker forms, to choose from.
__device__ inline void StoreReleaseSys(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void StoreReleaseGpu(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline void StoreRelaxedSys(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ inline std::uint64_t LoadAcquireSys(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline std::uint64_t LoadAcquireGpu(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ inline std::uint64_t LoadRelaxedSys(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}

// >>> edit
// Two kernels and two meetings. Dispatch: every rank works out where its tokens go, tells all
// others how many rows each rank gets, and pushes rows and metadata in place by bulk copies; one
// load of a row serves all its destinations. Combine: every rank pulls the answers to its tokens
// out of the peers' `y` and adds them up in registers. Only then the ranks meet again: a flag says
// both "my rows are at your place" and "I have read your answers", so dispatch need not wait for
// rows.
//
// "I have entered" and the counts are told apart: the former needs a release, which takes its time
// while the plan is made; a count stands beside the number of the call in one word and needs none.
//
// Back to back: `calls` and all flags only grow. A rank leaves when every peer has said that it has
// finished, so nobody is touched outside of a call, and counts are not replaced before all have
// read them: combine begins when dispatch has ended.
constexpr int kSenders = 32;   // CTAs of dispatch
constexpr int kShare = 8;      // tokens of one of them, at most: 256 / 32
constexpr int kReaders = 64;   // CTAs of combine
constexpr int kThreads = 256;  // and a thread per token when the plan is made
constexpr int kWarps = kThreads / 32;

// Where a token's answers are: its row at each rank, or -1, and what they count.
struct alignas(16) Way {
  std::int32_t slots[kMaxRanks];
  float gates[kMaxRanks];
};

struct Board {
  std::uint64_t calls[kReaders];               // by CTA of combine: calls it has finished
  std::uint64_t entered[kMaxRanks];            // by peer: the call it has entered
  std::uint64_t counts[kMaxRanks][kMaxRanks];  // by source and destination: call, rows
  std::uint64_t done[kMaxRanks][kReaders];     // by peer and its CTA: the call it has finished
  Way ways[kThreads];                          // own: by token
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

// What this rank sends: `before[t][r]` tokens ahead of t go to r, too; -1 if t does not go there.
struct Plan {
  std::int32_t before[kThreads][kMaxRanks];
  std::int32_t by_warp[kWarps][kMaxRanks];
};

// `per`: experts of a rank.
__device__ void Make(Plan& plan, const Args& args, int per) {
  const int token = threadIdx.x, warp = token / 32, lane = token % 32;
  const int tokens = static_cast<int>(args.tokens), topk = static_cast<int>(args.topk);
  if (warp * 32 < tokens) {
    std::uint32_t ranks = 0;
    if (token < tokens) {
#pragma unroll 4
      for (int i = 0; i < topk; ++i) ranks |= 1u << args.expert_ids[token * topk + i] / per;
    }
    for (int r = 0; r < args.world; ++r) {
      const std::uint32_t going = __ballot_sync(~0u, ranks >> r & 1);
      plan.before[token][r] = ranks >> r & 1 ? __popc(going & ((1u << lane) - 1)) : -1;
      if (lane == 0) plan.by_warp[warp][r] = __popc(going);
    }
  } else if (lane < kMaxRanks) {
    plan.by_warp[warp][lane] = 0;
  }
  __syncthreads();  //@planned
}

__global__ void __launch_bounds__(kThreads) Push(Args args, int per) {
  extern __shared__ __align__(128) std::uint8_t rows[];
  __shared__ __align__(8) std::uint64_t loaded;
  __shared__ Plan plan;
  __shared__ std::int32_t counts[kMaxRanks][kMaxRanks];  // by source and destination
  const int rank = args.rank, world = args.world, thread = threadIdx.x;
  const int topk = static_cast<int>(args.topk);
  const int a = thread / kMaxRanks, b = thread % kMaxRanks;
  const std::uint32_t row_bytes = static_cast<std::uint32_t>(args.quads * 16);
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[0] + 1;  //@epoch

  // A release takes longer than the plan: one CTA more, which does nothing else, says it.
  if (blockIdx.x == kSenders) {
    if (thread < world) StoreReleaseSys(&BoardOf(args, thread)->entered[rank], call);  //@publish
    return;
  }

  // This CTA's rows are on their way to shared memory while the plan is made.
  if (thread == kThreads - 1) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&loaded)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    std::uint32_t bytes = 0;
    for (std::int64_t t = blockIdx.x; t < args.tokens; t += kSenders, bytes += row_bytes) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(Shared(rows + bytes)),
          "l"(args.x + t * args.quads * 4), "r"(row_bytes), "r"(Shared(&loaded))
          : "memory");
    }
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(&loaded)),
                 "r"(bytes)
                 : "memory");
  }
  Make(plan, args, per);

  // Tell every peer how many rows each rank gets from here, and hear the same from all.
  if (a < world && b < world) {
    if (blockIdx.x == 0) {
      std::uint64_t count = 0;
      for (int w = 0; w < kWarps; ++w) count += plan.by_warp[w][b];
      StoreRelaxedSys(&BoardOf(args, a)->counts[rank][b], call << 32 | count);  //@tell
    }
    std::uint64_t value;
    do {
      value = LoadRelaxedSys(&mine->counts[a][b]);
    } while (value >> 32 < call);  //@hear
    counts[a][b] = static_cast<std::int32_t>(value);
    while (LoadAcquireSys(&mine->entered[a]) < call) {  //@enter
    }
  }
  __syncthreads();  //@known

  // A thread has one of the CTA's tokens and one rank.
  const int token = blockIdx.x + a * kSenders;
  if (a < kShare && token < args.tokens && b < world) {
    std::int32_t slot = plan.before[token][b];
    if (slot >= 0) {
      for (int i = 0; i < rank; ++i) slot += counts[i][b];              //@place
      for (int w = 0; w < token / 32; ++w) slot += plan.by_warp[w][b];  //@earlier
      std::uint32_t ready = 0;
      while (ready == 0) {  //@loaded
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; "
            "}"
            : "=r"(ready)
            : "r"(Shared(&loaded))
            : "memory");
      }
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                       args.recv_x_peers[b] + slot * args.quads * 4),
                   "r"(Shared(rows + a * row_bytes)), "r"(row_bytes)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      args.recv_from_peers[b][slot] = rank * static_cast<std::int32_t>(args.tokens) + token;
      float gate = 0;
#pragma unroll 4
      for (int i = 0; i < topk; ++i) {
        const int expert = args.expert_ids[token * topk + i] - b * per;
        const bool here = expert >= 0 && expert < per;
        args.recv_experts_peers[b][slot * topk + i] = here ? expert : -1;
        if (here) gate += args.weights[token * topk + i];
      }
      mine->ways[token].gates[b] = gate;
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@complete
    }
    mine->ways[token].slots[b] = slot;
  }
  if (blockIdx.x == 0 && thread < world) args.recv_rows[thread] = counts[thread][rank];
}

__global__ void __launch_bounds__(kThreads) Pull(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const int tokens = static_cast<int>(args.tokens), quads = static_cast<int>(args.quads);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int share = (tokens - static_cast<int>(blockIdx.x) + kReaders - 1) / kReaders;
  for (int i = threadIdx.x; i < share * quads; i += kThreads) {
    const int token = blockIdx.x + i / quads * kReaders, quad = i % quads;
    Way way;
    for (int k = 0; k < 4; ++k)
      reinterpret_cast<int4*>(&way)[k] = reinterpret_cast<const int4*>(&mine->ways[token])[k];
    // All answers are asked for before the first is used.
    float4 answers[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world && way.slots[r] >= 0)
        answers[r] = reinterpret_cast<const float4*>(args.y_peers[r])[way.slots[r] * quads + quad];
    }
    float4 sum = {};
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r >= args.world || way.slots[r] < 0) continue;
      sum.x = fmaf(way.gates[r], answers[r].x, sum.x);
      sum.y = fmaf(way.gates[r], answers[r].y, sum.y);
      sum.z = fmaf(way.gates[r], answers[r].z, sum.z);
      sum.w = fmaf(way.gates[r], answers[r].w, sum.w);
    }
    reinterpret_cast<float4*>(args.out)[token * quads + quad] = sum;
  }
  __syncthreads();  //@read
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->done[args.rank][blockIdx.x], call);  //@done
    while (LoadAcquireSys(&mine->done[threadIdx.x][blockIdx.x]) < call) {             //@wait
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  const std::size_t bytes = kShare * args.quads * 16;
  cudaFuncSetAttribute(Push, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  Push<<<kSenders + 1, kThreads, bytes, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  Pull<<<kReaders, kThreads, 0, stream>>>(args);
}
// <<< edit
