// Kernel by kernel: per step a Gram matrix, a meeting, the sum of what all ranks have, the
// polynomial, and a meeting. X is in `y` from the first step on.
#include <allranks/flags.h>

struct Board {
  std::uint32_t meetings;            // that this rank has completed
  std::uint32_t arrived[kMaxRanks];  // by rank: the last meeting that it has come to
};
constexpr int kRows = 32, kThreads = 1024;

__device__ float* Gram(const Args& args, int rank) {
  return reinterpret_cast<float*>(args.scratch_peers[rank] + 8192);
}

__global__ void Square(Args args, const float* x) {
  const int i = threadIdx.x / kRows, j = threadIdx.x % kRows;
  float sum = 0;
  for (int c = 0; c < args.n; c += 4) {
    const float4 u = *reinterpret_cast<const float4*>(x + i * args.n + c);
    const float4 v = *reinterpret_cast<const float4*>(x + j * args.n + c);
    sum += u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
  }
  Gram(args, args.rank)[threadIdx.x] = sum;
}

__global__ void Meet(Args args) {
  Board* mine = reinterpret_cast<Board*>(args.scratch);
  const std::uint32_t meeting = mine->meetings + 1;
  __syncwarp();
  if (threadIdx.x < args.world) {
    Board* peer = reinterpret_cast<Board*>(args.scratch_peers[threadIdx.x]);
    allranks::StoreReleaseSys(&peer->arrived[args.rank], meeting);
    allranks::WaitAcquireSys(&mine->arrived[threadIdx.x], meeting);
  }
  __syncwarp();
  if (threadIdx.x == 0) mine->meetings = meeting;
}

__global__ void Update(Args args, const float* x, bool first) {
  __shared__ float a[kRows][kRows], b[kRows][kRows], column[kRows][kRows + 1];
  const int i = threadIdx.x / kRows, j = threadIdx.x % kRows;
  float sum = 0, square = 0, trace = 0;
  for (int r = 0; r < args.world; ++r) sum += Gram(args, r)[threadIdx.x];
  a[i][j] = sum;
  __syncthreads();
  for (int k = 0; k < kRows; ++k) trace += a[k][k];
  const float per = first ? 1 / trace : 1, factor = first ? 1 / sqrtf(trace) : 1;
  for (int k = 0; k < kRows; ++k) square += a[i][k] * a[k][j];
  b[i][j] = (i == j ? 3.4445f : 0) - 4.775f * (sum * per) + 2.0315f * (square * per * per);
  for (int c = 0; c < args.n; c += kRows) {
    __syncthreads();
    if (c + j < args.n) column[i][j] = x[i * args.n + c + j];
    __syncthreads();
    if (c + j >= args.n) continue;
    float y = 0;
    for (int k = 0; k < kRows; ++k) y += b[i][k] * column[k][j];
    args.y[i * args.n + c + j] = y * factor;
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  for (int step = 0; step < args.steps; ++step) {
    const float* x = step == 0 ? args.g : args.y;
    Square<<<1, kThreads, 0, stream>>>(args, x);
    Meet<<<1, 32, 0, stream>>>(args);
    Update<<<1, kThreads, 0, stream>>>(args, x, step == 0);
    Meet<<<1, 32, 0, stream>>>(args);
  }
}
