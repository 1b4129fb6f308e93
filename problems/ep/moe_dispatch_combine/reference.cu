// Two kernels and two meetings. Dispatch: CTAs are (peer, part); each works out which tokens go to
// its peer, the first part tells all ranks how many, and every part pushes its share of the rows
// and their metadata in place by bulk copies. Combine: every rank pulls the answers to its tokens
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
constexpr int kParts = 8;
constexpr int kReaders = 64;     // CTAs of combine, at most
constexpr int kMaxTokens = 256;  // dispatch has a thread for each

// Where a token's answers are: its row at each rank, or -1, and what they count.
struct alignas(16) Way {
  std::int32_t slots[kMaxRanks];
  float gates[kMaxRanks];
};

struct Board {
  std::uint64_t calls[kReaders];                // by CTA of combine: calls it has finished
  std::uint64_t entered[kMaxRanks];             // by peer: the call it has entered
  std::uint64_t counts[kMaxRanks][kMaxRanks];   // by source and destination: call, rows
  std::uint64_t finished[kMaxRanks][kReaders];  // by peer and its CTA: the call it has finished
  Way ways[kMaxTokens];                         // own
};

__device__ Board* BoardOf(const Args& args, int rank) {
  return reinterpret_cast<Board*>(args.scratch_peers[rank]);
}
__device__ std::uint32_t Shared(const void* address) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
}

// `per`: experts of a rank.
__global__ void Push(Args args, int per) {
  extern __shared__ __align__(128) std::uint8_t rows[];
  __shared__ __align__(8) std::uint64_t loaded;
  __shared__ int by_warp[kMaxTokens / 32];  // tokens of a warp that go to the peer
  __shared__ int to_peer[kMaxRanks];        // rows of each source for the peer
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts;
  const int rank = args.rank, world = args.world, topk = static_cast<int>(args.topk);
  const int token = threadIdx.x, warp = token / 32, lane = token % 32;
  const std::uint32_t row_bytes = static_cast<std::uint32_t>(args.quads * 16);
  Board* mine = BoardOf(args, rank);
  const std::uint64_t call = mine->calls[0] + 1;  //@epoch

  // A release takes longer than the plan: one CTA more, which does nothing else, says it.
  if (peer == world) {
    if (token < world) StoreReleaseSys(&BoardOf(args, token)->entered[rank], call);  //@publish
    return;
  }

  // Does this token go there, and how many before it?
  bool goes = false;
  float gate = 0;
  if (token < args.tokens) {
#pragma unroll 4
    for (int i = 0; i < topk; ++i) {
      const int expert = args.expert_ids[token * topk + i] - peer * per;
      const float weight = args.weights[token * topk + i];
      if (expert < 0 || expert >= per) continue;
      goes = true;
      gate += weight;  //@gate
    }
  }
  const std::uint32_t going = __ballot_sync(~0u, goes);
  if (lane == 0) by_warp[warp] = __popc(going);
  if (token == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(Shared(&loaded)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();  //@planned
  int before = __popc(going & ((1u << lane) - 1)), count = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) {
    if (w < warp) before += by_warp[w];  //@earlier
    count += by_warp[w];
  }

  // Each part takes every kParts-th of these rows, first into shared memory.
  const bool sends = goes && before % kParts == part;
  std::uint8_t* row = rows + before / kParts * row_bytes;
  if (token == 0) {
    const std::uint32_t bytes = (count + kParts - 1 - part) / kParts * row_bytes;
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(Shared(&loaded)),
                 "r"(bytes)
                 : "memory");
  }
  if (sends) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(Shared(row)),
        "l"(args.x + token * args.quads * 4), "r"(row_bytes), "r"(Shared(&loaded))
        : "memory");
  }

  // Tell every rank how many rows the peer gets from here, and hear the same from all.
  if (token < world) {
    if (part == 0) {
      std::uint64_t* word = &BoardOf(args, token)->counts[rank][peer];
      StoreRelaxedSys(word, call << 32 | static_cast<std::uint32_t>(count));  //@tell
    }
    std::uint64_t value;
    do {
      value = LoadRelaxedSys(&mine->counts[token][peer]);
    } while (value >> 32 < call);  //@hear
    to_peer[token] = static_cast<int>(value);
    if (peer == rank && part == 0) args.recv_rows[token] = static_cast<int>(value);
  }
  if (token == 0) {
    while (LoadAcquireSys(&mine->entered[peer]) < call) {  //@enter
    }
  }
  __syncthreads();  //@known

  if (sends) {
    int slot = before;
    for (int i = 0; i < rank; ++i) slot += to_peer[i];  //@place
    std::uint32_t ready = 0;
    while (ready == 0) {  //@loaded
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
          : "=r"(ready)
          : "r"(Shared(&loaded))
          : "memory");
    }
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     args.recv_x_peers[peer] + slot * args.quads * 4),
                 "r"(Shared(row)), "r"(row_bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    args.recv_from_peers[peer][slot] = rank * static_cast<int>(args.tokens) + token;
#pragma unroll 4
    for (int i = 0; i < topk; ++i) {
      const int expert = args.expert_ids[token * topk + i] - peer * per;
      args.recv_experts_peers[peer][slot * topk + i] = expert >= 0 && expert < per ? expert : -1;
    }
    mine->ways[token].slots[peer] = slot;
    mine->ways[token].gates[peer] = gate;
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  //@complete
  } else if (part == 0 && token < args.tokens && !goes) {
    mine->ways[token].slots[peer] = -1;
  }
}

__global__ void Pull(Args args) {
  Board* mine = BoardOf(args, args.rank);
  const int tokens = static_cast<int>(args.tokens), quads = static_cast<int>(args.quads);
  const std::uint64_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens * quads;
       i += gridDim.x * blockDim.x) {
    Way way;
    for (int k = 0; k < 4; ++k)
      reinterpret_cast<int4*>(&way)[k] = reinterpret_cast<const int4*>(&mine->ways[i / quads])[k];
    // All answers are asked for before the first is used.
    float4 answers[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < args.world && way.slots[r] >= 0)
        answers[r] =
            reinterpret_cast<const float4*>(args.y_peers[r])[way.slots[r] * quads + i % quads];
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
    reinterpret_cast<float4*>(args.out)[i] = sum;
  }

  __syncthreads();  //@read
  if (threadIdx.x < args.world) {
    StoreReleaseSys(&BoardOf(args, threadIdx.x)->finished[args.rank][blockIdx.x], call);  //@done
    while (LoadAcquireSys(&mine->finished[threadIdx.x][blockIdx.x]) < call) {             //@wait
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

int ExpertsOfARank(const Args& args) {
  return static_cast<int>((args.experts + args.world - 1) / args.world);
}

extern "C" void dispatch(const Args& args, cudaStream_t stream) {
  const int threads = static_cast<int>(args.tokens + 31) / 32 * 32;
  const int bytes = static_cast<int>((args.tokens + kParts - 1) / kParts * args.quads * 16);
  cudaFuncSetAttribute(Push, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  Push<<<args.world * kParts + 1, threads, bytes, stream>>>(args, ExpertsOfARank(args));
}

extern "C" void combine(const Args& args, cudaStream_t stream) {
  const std::int64_t ctas = (args.tokens * args.quads + 255) / 256;
  Pull<<<static_cast<int>(ctas < kReaders ? ctas : kReaders), 256, 0, stream>>>(args);
}
