// By pulling: a block leaves the spectra of its eight rows in its own scratch, column by column,
// and counts itself at every rank. The blocks of an image wait for all blocks of that image on all
// ranks, then fetch whole columns from everybody and transform them.
//
// What is left there exists twice, for odd and even calls. It is written again in call k + 2, after
// this rank has waited for all others in call k + 1; they had ended call k then.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kPairs = 4, kMaxSize = 256, kMaxBatch = 4, kMaxBlocks = 64,
              kData = 512;
constexpr int kSpace = kPairs * kMaxSize;  // numbers that a block works on at a time

struct Control {
  std::uint32_t calls[kMaxBlocks];   // that this block has completed
  std::uint32_t arrived[kMaxBatch];  // by image: blocks of all ranks and calls whose rows are here
};

__device__ float2 Times(float2 a, float2 b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

// Transforms `lines` lines of 2^log numbers from `a` on, with as much space at `b`, in passes of
// radix 4 and a last one of radix 2. The result is in order; where it lies is returned.
__device__ float2* Transform(float2* a, float2* b, int lines, int log, const float2* turns,
                             int log_turns) {
  for (int done = 0; done < log;) {
    const int step = log - done >= 2 ? 2 : 1, apart = log - step;
    for (int i = threadIdx.x; i < lines << apart; i += kThreads) {
      const int line = i >> apart << log, j = i & ((1 << apart) - 1), k = j & ((1 << done) - 1);
      const int turn = k << (log_turns - done - step);
      const float2* from = a + line + j;
      float2* to = b + line + (j >> done << (done + step)) + k;
      const float2 p = from[0], q = Times(from[1 << apart], turns[turn]);
      if (step == 1) {
        to[0] = {p.x + q.x, p.y + q.y};
        to[1 << done] = {p.x - q.x, p.y - q.y};
        continue;
      }
      const float2 r = Times(from[2 << apart], turns[2 * turn]);
      const float2 s = Times(from[3 << apart], turns[3 * turn]);
      const float2 pr = {p.x + r.x, p.y + r.y}, qs = {q.x + s.x, q.y + s.y};
      const float2 p_r = {p.x - r.x, p.y - r.y}, q_s = {q.x - s.x, q.y - s.y};
      to[0] = {pr.x + qs.x, pr.y + qs.y};
      to[1 << done] = {p_r.x + q_s.y, p_r.y - q_s.x};
      to[2 << done] = {pr.x - qs.x, pr.y - qs.y};
      to[3 << done] = {p_r.x - q_s.y, p_r.y + q_s.x};
    }
    __syncthreads();
    float2* other = a;
    a = b;
    b = other;
    done += step;
  }
  return a;
}

__global__ void __launch_bounds__(kThreads) Rfft(Args args, int tiles, int log_h, int log_w) {
  __shared__ alignas(16) float2 space[2][kSpace], turns[kMaxSize];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int rank = args.rank, world = args.world, h = 1 << log_h, w = 1 << log_w;
  const int image = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const int rows = (h + 2 * world - 1) / (2 * world) * 2, cols = (w / 2 + world) / world;
  const int row = tile * 2 * kPairs, pairs = min(kPairs, (min(rows, h - rank * rows) - row) / 2);
  const auto Left = [&](int at, int column) {  // rows of rank `at`
    const std::int64_t n = (call % 2 * args.batch + image) * (w / 2 + 1) + column;
    return reinterpret_cast<float2*>(args.scratch_peers[at] + kData) + n * rows;
  };

  const int log_turns = max(log_h, log_w), size = 1 << log_turns;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    sincospif(-2.0f * i / size, &turns[i].y, &turns[i].x);
  }
  for (int i = threadIdx.x; i < pairs * w; i += kThreads) {
    const float* x = args.x + (image * rows + row + (i >> log_w) * 2) * w + (i & (w - 1));
    space[0][i] = {x[0], x[w]};
  }
  __syncthreads();
  const float2* both = Transform(space[0], space[1], max(pairs, 0), log_w, turns, log_turns);
  for (int i = threadIdx.x; i < kPairs * (w / 2 + 1); i += kThreads) {
    const int pair = i % kPairs, l = i / kPairs;
    if (pair >= pairs) continue;
    const float2 first = both[pair * w + l], second = both[pair * w + ((w - l) & (w - 1))];
    float2* to = Left(rank, l) + row + 2 * pair;
    *reinterpret_cast<float4*>(to) = {(first.x + second.x) / 2, (first.y - second.y) / 2,
                                      (first.y + second.y) / 2, (second.x - first.x) / 2};
  }
  __syncthreads();
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddReleaseSys(&peer->arrived[image], 1u);
  }
  if (threadIdx.x == 0) WaitAcquireSys(&mine->arrived[image], call * world * tiles);
  __syncthreads();

  const int here = min(cols, w / 2 + 1 - rank * cols), lines = kSpace >> log_h;
  for (int c = tile * lines; c < here; c += tiles * lines) {
    const int count = min(lines, here - c) * h / 2;  // pairs of numbers
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const int line = 2 * i >> log_h, n = 2 * i & (h - 1);
      const float2* from = Left(n / rows, rank * cols + c + line) + n % rows;
      reinterpret_cast<float4*>(space[0])[i] = *reinterpret_cast<const float4*>(from);
    }
    __syncthreads();
    const float2* column =
        Transform(space[0], space[1], min(lines, here - c), log_h, turns, log_turns);
    float4* out = reinterpret_cast<float4*>(args.out) + (image * cols + c) * h / 2;
    for (int i = threadIdx.x; i < count; i += kThreads) {
      out[i] = reinterpret_cast<const float4*>(column)[i];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const auto Log2 = [](std::int64_t n) {
    int log = 0;
    while (std::int64_t{1} << log < n) ++log;
    return log;
  };
  const std::int64_t pairs = (args.h + 2 * args.world - 1) / (2 * args.world);
  const int tiles = static_cast<int>((pairs + kPairs - 1) / kPairs);
  Rfft<<<args.batch * tiles, kThreads, 0, stream>>>(args, tiles, Log2(args.h), Log2(args.w));
}
