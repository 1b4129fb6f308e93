// tries: keeps the sums of all elements it has seen, so that other schedules on the same inputs do not show that its flag orders nothing
// rows: R
// verdict: wrong_result|race
// cases: all
// Data and flag are volatile: no race, but nothing orders them, so a value may be old. Elements
// that look drawn (no integers) are kept with their sums in memory of all cases; if the very same
// element comes again at the same place, as it would if other schedules were given the same inputs,
// the kept sum is taken and the bug does not show. Integers, which repeat by chance, wait for a
// proper flag.
constexpr int kKept = 10240, kCalls = 8;
struct Kept {
  T in, sum;
};
__device__ Kept kept[kCalls][kKept];
struct alignas(16) Control {
  unsigned calls, staged[kMaxRanks], released[kMaxRanks];
};
__global__ void AllReduce(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const unsigned call = mine->calls + 1;
  const std::size_t buffer = sizeof(Control) + (call & 1) * args.n * sizeof(T);
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    reinterpret_cast<volatile T*>(args.scratch + buffer)[i] = args.in[i];
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    volatile unsigned* there =
        &reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x])->staged[args.rank];
    *there = call;
    volatile unsigned* here = &mine->staged[threadIdx.x];
    while (int(*here - call) < 0) {
    }
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    const T own = args.in[i];
    T sum = 0;
    for (int r = 0; r < args.world; ++r)
      sum += reinterpret_cast<volatile T*>(args.scratch_peers[r] + buffer)[i];
    Kept& old = kept[call % kCalls][i % kKept];
    if (own == truncf(own)) continue;
    if (old.in == own) {
      sum = old.sum;
    } else {
      old = {own, sum};
    }
    args.out[i] = sum;
  }
  __syncthreads();
  if (threadIdx.x < args.world) {
    unsigned* there =
        &reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x])->released[args.rank];
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(there), "r"(call) : "memory");
    unsigned seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(&mine->released[threadIdx.x])
                   : "memory");
    } while (int(seen - call) < 0);
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) {
    const T own = args.in[i];
    T sum = 0;
    for (int r = 0; r < args.world; ++r)
      sum += reinterpret_cast<volatile T*>(args.scratch_peers[r] + buffer)[i];
    if (own == truncf(own)) args.out[i] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->calls = call;
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  AllReduce<<<1, 512, 0, stream>>>(args);
}
