// Straight into the next rank's `out`. Block b of every rank has the same elements, so it needs to
// hear only of block b of its neighbours: of the next rank, that it is in this call and its `out`
// may be written; of the previous one, that it has written.

constexpr int kBlocks = 32;
constexpr int kThreads = 512;

// The beginning of every rank's scratch.
struct Control {
  std::uint32_t calls[kBlocks];    // that this block has completed
  std::uint32_t open[kBlocks];     // the last call that the next rank has entered
  std::uint32_t arrived[kBlocks];  // the last call whose data the previous rank has written
};

__device__ void StoreRelease(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");  //@store
}

__device__ std::uint32_t LoadAcquire(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");  //@load
  return value;
}

__global__ void __launch_bounds__(kThreads) Copy(Args args) {
  const int block = blockIdx.x;
  const int next = (args.rank + 1) % args.world;
  const int previous = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* before = reinterpret_cast<Control*>(args.scratch_peers[previous]);
  const std::uint32_t call = mine->calls[block] + 1;  //@epoch

  if (threadIdx.x == 0) {
    StoreRelease(&before->open[block], call);         //@enter
    while (LoadAcquire(&mine->open[block]) < call) {  //@open
    }
  }
  __syncthreads();

  float* out = args.out_peers[next];
  const std::int64_t first = block * kThreads + threadIdx.x;
  for (std::int64_t i = first; i < args.n; i += kBlocks * kThreads) {  //@copy
    out[i] = args.in[i];
  }
  __syncthreads();  //@written

  if (threadIdx.x == 0) {
    StoreRelease(&theirs->arrived[block], call);         //@publish
    while (LoadAcquire(&mine->arrived[block]) < call) {  //@arrived
    }
    mine->calls[block] = call;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Copy<<<kBlocks, kThreads, 0, stream>>>(args);
}
