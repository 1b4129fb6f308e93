// The blocks of an image share out the rank's columns, transform them along the image's rows and
// push pairs of rows to their owners. There a pair is contiguous, with its two numbers of a column
// beside each other. The blocks then wait for all blocks of that image on all ranks, which count
// themselves at each owner. A block makes the other half of its pairs by symmetry and
// transforms each as one complex row, whose parts are the two real rows.
//
// Slots exist twice, for odd and even calls. A rank that pushes in call k + 2 has ended call k + 1,
// in which it has waited for all ranks; they had ended call k then, and had read its slots.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kThreads = 256, kPairs = 4, kMaxSize = 256, kMaxBatch = 4, kMaxBlocks = 64;
constexpr int kSpace = kPairs * kMaxSize, kData = 512;  // numbers in work; bytes before the slots

struct Control {
  std::uint32_t calls[kMaxBlocks];   // that this block has completed
  std::uint32_t arrived[kMaxBatch];  // by image: blocks of all ranks and calls that are done
};

__device__ float2 Times(float2 a, float2 b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}

// Transforms back `lines` lines of 2^log numbers from `a` on, with as much space at `b`, in passes
// of radix 4 and a last one of radix 2. The result is in order; where it lies is returned.
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
      to[1 << done] = {p_r.x - q_s.y, p_r.y + q_s.x};
      to[2 << done] = {pr.x - qs.x, pr.y - qs.y};
      to[3 << done] = {p_r.x + q_s.y, p_r.y - q_s.x};
    }
    __syncthreads();  //@passed
    float2* other = a;
    a = b;
    b = other;
    done += step;
  }
  return a;
}

__global__ void __launch_bounds__(kThreads) Irfft(Args args, int tiles, int log_h, int log_w) {
  __shared__ alignas(16) float2 space[2][kSpace], turns[kMaxSize];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;  //@epoch
  const int rank = args.rank, world = args.world, h = 1 << log_h, w = 1 << log_w;
  const int image = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const int rows = (h + 2 * world - 1) / (2 * world) * 2, cols = (w / 2 + world) / world;
  const auto Slot = [&](int at, int pair) {
    const std::int64_t n = (call % 2 * args.batch + image) * (rows / 2) + pair;
    return reinterpret_cast<float4*>(args.scratch_peers[at] + kData) + n * (w / 2 + 1);
  };

  const int log_turns = max(log_h, log_w), size = 1 << log_turns;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    sincospif(2.0f * i / size, &turns[i].y, &turns[i].x);
  }
  const int here = min(cols, w / 2 + 1 - rank * cols);
  const int lines = min(kSpace >> log_h, (max(here, 0) + tiles - 1) / tiles);
  for (int c = tile * lines; c < here; c += tiles * lines) {
    const int count = min(lines, here - c);
    const float4* f = reinterpret_cast<const float4*>(args.f) + (image * cols + c) * h / 2;
    for (int i = threadIdx.x; i < count * h / 2; i += kThreads) {
      reinterpret_cast<float4*>(space[0])[i] = f[i];
    }
    __syncthreads();  //@loaded
    const float2* columns = Transform(space[0], space[1], count, log_h, turns, log_turns);
    for (int i = threadIdx.x; i < count * h / 2; i += kThreads) {
      const int line = i % count, pair = i / count;
      Slot(2 * pair / rows, pair % (rows / 2))[rank * cols + c + line] =
          reinterpret_cast<const float4*>(columns)[line * h / 2 + pair];
    }
    __syncthreads();  //@sent
  }
  if (threadIdx.x < world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[threadIdx.x]);
    AddReleaseSys(&peer->arrived[image], 1u);  //@tell
  }
  if (threadIdx.x == 0) WaitAcquireSys(&mine->arrived[image], call * world * tiles);  //@wait
  __syncthreads();                                                                    //@arrived

  const int first = tile * kPairs, pairs = min(kPairs, min(rows, h - rank * rows) / 2 - first);
  for (int i = threadIdx.x; i < pairs * (w / 2 + 1); i += kThreads) {
    const int pair = i / (w / 2 + 1), l = i % (w / 2 + 1);
    float4 v = Slot(rank, first)[i];
    if (l % (w / 2) == 0) v.y = v.w = 0;
    float2* row = space[0] + pair * w;
    row[l] = {v.x - v.w, v.y + v.z};
    if (l % (w / 2) != 0) row[w - l] = {v.x + v.w, v.z - v.y};
  }
  __syncthreads();  //@loaded
  const float2* both = Transform(space[0], space[1], max(pairs, 0), log_w, turns, log_turns);
  const float scale = 1.0f / (h * w);
  for (int i = threadIdx.x; i < pairs * w; i += kThreads) {
    const int pair = i >> log_w, m = i & (w - 1);
    float* out = args.out + (image * rows + 2 * (first + pair)) * w + m;
    out[0] = both[i].x * scale;
    out[w] = both[i].y * scale;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const auto Log2 = [](std::int64_t n) {
    int log = 0;
    while (std::int64_t{1} << log < n) ++log;
    return log;
  };
  const std::int64_t pairs = (args.h + 2 * args.world - 1) / (2 * args.world);
  const int tiles = static_cast<int>((pairs + kPairs - 1) / kPairs);
  Irfft<<<args.batch * tiles, kThreads, 0, stream>>>(args, tiles, Log2(args.h), Log2(args.w));
}
