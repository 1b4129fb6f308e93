#include <allranks/flags.h>

// Every rank fetches whole channels and convolves by a Fourier transform: the square of x + i w,
// both padded to twice their length, has the sums in its imaginary part. They are integers when
// rounded, and go to who has their rows. Block j has the channels with number j of all ranks, and
// leaves after all blocks j have read. Sums exist twice: nobody is two calls ahead.

using namespace allranks;

constexpr int kThreads = 256, kMaxBlocks = 64, kMaxSize = 1024, kData = 8192;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t reached[2][kMaxBlocks][kMaxRanks];  // by step and rank: the last call
};

__device__ void Meet(const Args& args, int step, std::uint32_t call) {
  __syncthreads();
  if (threadIdx.x < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    StoreReleaseSys(&peer->reached[step][blockIdx.x][args.rank], call);
    const Control* mine = reinterpret_cast<const Control*>(args.scratch);
    WaitAcquireSys(&mine->reached[step][blockIdx.x][threadIdx.x], call);
  }
  __syncthreads();
}

__device__ float2 Times(float2 a, float2 b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

// A line of n numbers at `a`, with as much space at `b`, by radix 2. Returns where the result is.
__device__ float2* Transform(float2* a, float2* b, int n, const float2* turns) {
  for (int done = 1; done < n; done *= 2) {
    __syncthreads();
    for (int j = threadIdx.x; j < n / 2; j += kThreads) {
      const int k = j & (done - 1), to = (j - k) * 2 + k;
      const float2 p = a[j], q = Times(a[j + n / 2], turns[k * (n / 2 / done)]);
      b[to] = {p.x + q.x, p.y + q.y};
      b[to + done] = {p.x - q.x, p.y - q.y};
    }
    float2* other = a;
    a = b, b = other;
  }
  __syncthreads();
  return a;
}

__global__ void __launch_bounds__(kThreads) Convolve(Args args, int n, int each) {
  __shared__ float2 a[kMaxSize], b[kMaxSize], turns[kMaxSize / 2];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, rows = args.rows, channels = args.channels;
  const int length = args.world * rows;
  const auto Sums = [&](int at) {
    return reinterpret_cast<float*>(args.scratch_peers[at] + kData) + call % 2 * rows * channels;
  };
  for (int i = threadIdx.x; i < n / 2; i += kThreads) {
    sincospif(-2.0f * i / n, &turns[i].y, &turns[i].x);
  }
  Meet(args, 0, call);
  for (int j = blockIdx.x; j < each && rank * each + j < channels; j += gridDim.x) {
    const int channel = rank * each + j;
    for (int i = threadIdx.x; i < n; i += kThreads) {
      const auto Of = [&](const float* all, int row) { return all[row * channels + channel]; };
      a[i] = {0, 0};
      if (i < length) a[i] = {Of(args.x_peers[i / rows], i % rows), Of(args.w, i)};
    }
    float2* z = Transform(a, b, n, turns);
    for (int i = threadIdx.x; i < n; i += kThreads) {  // conjugated, to transform it back
      const float2 square = Times(z[i], z[i]);
      z[i] = {square.x, -square.y};
    }
    z = Transform(z, z == a ? b : a, n, turns);
    for (int i = threadIdx.x; i < length; i += kThreads) {
      Sums(i / rows)[i % rows * channels + channel] = rintf(z[i].y / (-2.0f * n));
    }
    __syncthreads();
  }
  Meet(args, 1, call);
  for (int j = blockIdx.x; j < each; j += gridDim.x) {
    for (int i = threadIdx.x; i < length; i += kThreads) {
      const int channel = i / rows * each + j, at = i % rows * channels + channel;
      if (channel < channels) args.y[at] = args.gate[at] * Sums(rank)[at];
    }
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  int n = 2;
  while (n < 2 * args.world * args.rows) n *= 2;
  const int each = (args.channels + args.world - 1) / args.world;
  Convolve<<<each < kMaxBlocks ? each : kMaxBlocks, kThreads, 0, stream>>>(args, n, each);
}
