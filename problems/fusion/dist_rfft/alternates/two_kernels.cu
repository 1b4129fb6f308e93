// Two kernels, rows and columns, by radix 2. Blocks of the first push spectra of pairs of rows to
// the owners of columns; the last one to finish tells all ranks with one flag each. Blocks of the
// second wait for the flags of all ranks. Slots take turns by call; as everybody waits for
// everybody, nobody is two calls ahead.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxSize = 256, kMaxBlocks = 64, kData = 256;

struct Control {
  std::uint32_t calls, finished;  // calls whose rows are done; blocks that have finished
  std::uint32_t sent[kMaxRanks];  // by rank: the last call whose rows are here
};

struct Sizes {
  int batch, h, w, rows, cols;
  __device__ explicit Sizes(const Args& args) : batch(args.batch), h(args.h), w(args.w) {
    rows = (h + 2 * args.world - 1) / (2 * args.world) * 2;
    cols = (w / 2 + args.world) / args.world;
  }
};

__device__ float2* Slot(const Args& args, const Sizes& s, std::uint32_t call, int rank, int n) {
  return reinterpret_cast<float2*>(args.scratch_peers[rank] + kData) +
         (call % 2 * s.batch * s.cols + n) * s.h;
}

// A line of n numbers at `a`, with as much space at `b`, by radix 2. Returns where the result is.
__device__ float2* Transform(float2* a, float2* b, int n) {
  for (int done = 1; done < n; done *= 2) {
    __syncthreads();
    for (int j = threadIdx.x; j < n / 2; j += blockDim.x) {
      const int k = j % done, to = (j - k) * 2 + k;
      const float2 p = a[j], v = a[j + n / 2];
      float2 t;
      sincospif(-1.0f * k / done, &t.y, &t.x);
      const float2 q = {v.x * t.x - v.y * t.y, v.x * t.y + v.y * t.x};
      b[to] = {p.x + q.x, p.y + q.y};
      b[to + done] = {p.x - q.x, p.y - q.y};
    }
    float2* other = a;
    a = b;
    b = other;
  }
  __syncthreads();
  return a;
}

__global__ void __launch_bounds__(kThreads) Rows(Args args) {
  __shared__ float2 a[kMaxSize], b[kMaxSize];
  __shared__ bool last;
  const Sizes s(args);
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls + 1;
  for (int n = blockIdx.x; n < s.batch * s.rows / 2; n += gridDim.x) {
    const int image = n / (s.rows / 2), row = n % (s.rows / 2) * 2, at = args.rank * s.rows + row;
    if (at >= s.h) continue;
    __syncthreads();
    const float* x = args.x + (image * s.rows + row) * s.w;
    for (int i = threadIdx.x; i < s.w; i += kThreads) a[i] = {x[i], x[s.w + i]};
    const float2* both = Transform(a, b, s.w);
    for (int l = threadIdx.x; l <= s.w / 2; l += kThreads) {
      const float2 p = both[l], q = both[l == 0 ? 0 : s.w - l];
      float2* to = Slot(args, s, call, l / s.cols, image * s.cols + l % s.cols) + at;
      to[0] = {(p.x + q.x) / 2, (p.y - q.y) / 2};
      to[1] = {(p.y + q.y) / 2, (q.x - p.x) / 2};
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) last = FetchAddAcqRelSys(&mine->finished, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->sent[args.rank], call);
  }
  if (threadIdx.x == 0) {
    mine->finished = 0;
    mine->calls = call;
  }
}

__global__ void __launch_bounds__(kThreads) Columns(Args args) {
  __shared__ float2 a[kMaxSize], b[kMaxSize];
  const Sizes s(args);
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls;
  if (threadIdx.x < args.world) WaitAcquireSys(&mine->sent[threadIdx.x], call);
  for (int n = blockIdx.x; n < s.batch * s.cols; n += gridDim.x) {
    if (args.rank * s.cols + n % s.cols > s.w / 2) continue;
    __syncthreads();
    const float2* from = Slot(args, s, call, args.rank, n);
    for (int i = threadIdx.x; i < s.h; i += kThreads) a[i] = from[i];
    const float2* column = Transform(a, b, s.h);
    for (int i = threadIdx.x; i < s.h; i += kThreads) {
      reinterpret_cast<float2*>(args.out)[n * s.h + i] = column[i];
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Rows<<<32, kThreads, 0, stream>>>(args);
  Columns<<<kMaxBlocks, kThreads, 0, stream>>>(args);
}
