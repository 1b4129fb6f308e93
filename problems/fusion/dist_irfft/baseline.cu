// Kernel by kernel: every column is transformed and stays where it is, all ranks meet, every rank
// fetches its rows number by number, makes the other half, transforms them as complex rows, and
// all meet again.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 128, kMaxSize = 256, kData = 256;

struct Control {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t reached[kMaxRanks];  // by peer: the last meeting that it has come to
};

struct Sizes {
  int batch, h, w, rows, cols, half;
  __device__ explicit Sizes(const Args& args)
      : batch(args.batch), h(args.h), w(args.w), half(args.w / 2 + 1) {
    rows = (h + 2 * args.world - 1) / (2 * args.world) * 2;
    cols = (half + args.world - 1) / args.world;
  }
};

__global__ void Meet(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[args.rank], meeting);
    WaitAcquireSys(&mine->reached[threadIdx.x], meeting);
  }
  __syncthreads();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

// A line of n numbers at `a`, with as much space at `b`, by radix 2. Returns where the result is.
__device__ float2* Transform(float2* a, float2* b, int n) {
  for (int done = 1; done < n; done *= 2) {
    __syncthreads();
    for (int j = threadIdx.x; j < n / 2; j += blockDim.x) {
      const int k = j % done, to = (j - k) * 2 + k;
      const float2 p = a[j], v = a[j + n / 2];
      float2 t;
      sincospif(1.0f * k / done, &t.y, &t.x);
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

__global__ void Columns(Args args) {
  __shared__ float2 a[kMaxSize], b[kMaxSize];
  const Sizes s(args);
  float2* to = reinterpret_cast<float2*>(args.scratch + kData);
  const float2* f = reinterpret_cast<const float2*>(args.f);
  for (int n = blockIdx.x; n < s.batch * s.cols; n += gridDim.x) {
    __syncthreads();
    for (int i = threadIdx.x; i < s.h; i += kThreads) a[i] = f[n * s.h + i];
    const float2* column = Transform(a, b, s.h);
    for (int i = threadIdx.x; i < s.h; i += kThreads) to[n * s.h + i] = column[i];
  }
}

__global__ void Rows(Args args) {
  __shared__ float2 a[kMaxSize], b[kMaxSize];
  const Sizes s(args);
  for (int n = blockIdx.x; n < s.batch * s.rows; n += gridDim.x) {
    const int image = n / s.rows, row = args.rank * s.rows + n % s.rows;
    if (row >= s.h) continue;
    __syncthreads();
    for (int l = threadIdx.x; l < s.half; l += kThreads) {
      const auto* from = reinterpret_cast<const float2*>(args.scratch_peers[l / s.cols] + kData);
      const float2 v = from[(image * s.cols + l % s.cols) * s.h + row];
      const bool real = l == 0 || l == s.w / 2;
      a[l] = {v.x, real ? 0 : v.y};
      if (!real) a[s.w - l] = {v.x, -v.y};
    }
    const float2* line = Transform(a, b, s.w);
    for (int i = threadIdx.x; i < s.w; i += kThreads) {
      args.out[n * s.w + i] = line[i].x / (s.h * s.w);
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Columns<<<32, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
  Rows<<<32, kThreads, 0, stream>>>(args);
  Meet<<<1, 32, 0, stream>>>(args);
}
