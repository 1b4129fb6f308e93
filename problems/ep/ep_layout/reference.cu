// Block r looks at all choices of this rank, but only for the experts of rank r. Reading choices
// `world` times costs less than blocks that meet: no block needs another, and everything is counted
// in shared memory. A thread has a token, so that a token counts once however many experts it has
// there; the tokens of a warp are added up before they are added to the others.
constexpr int kThreads = 1024, kMaxPer = 64;

__global__ void __launch_bounds__(kThreads) Layout(Args args) {
  __shared__ int counts[kMaxPer], all;
  const int rank = blockIdx.x, per = static_cast<int>(args.per), topk = static_cast<int>(args.topk);
  const int tokens = static_cast<int>(args.tokens), world = args.world;
  if (threadIdx.x < per) counts[threadIdx.x] = 0;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();  //@zeroed
  int mine = 0;
  for (int t = threadIdx.x; t < tokens; t += kThreads) {  //@tokens
    bool goes = false;
    const auto look = [&](int id) {
      const int expert = id - rank * per;
      if (expert < 0 || expert >= per) return;
      goes = true;
      atomicAdd(&counts[expert], 1);
    };
    const int* ids = args.ids + t * topk;
    if (topk % 4 == 0) {
#pragma unroll 2
      for (int k = 0; k < topk; k += 4) {
        const int4 four = *reinterpret_cast<const int4*>(ids + k);
        look(four.x), look(four.y), look(four.z), look(four.w);
      }
    } else {
#pragma unroll 8
      for (int k = 0; k < topk; ++k) look(ids[k]);
    }
    args.in_rank[t * world + rank] = goes;
    mine += goes;
  }
  const int together = __reduce_add_sync(~0u, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(&all, together);
  __syncthreads();  //@counted
  if (threadIdx.x < per) args.expert_tokens[rank * per + threadIdx.x] = counts[threadIdx.x];
  if (threadIdx.x == 0) args.rank_tokens[rank] = all;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Layout<<<args.world, kThreads, 0, stream>>>(args);
}
