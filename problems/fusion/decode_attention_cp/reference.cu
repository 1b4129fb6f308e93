// A block has one head and every `splits`-th batch of the rank's positions. Eight lanes have a
// position, eight dimensions each, and keep a running maximum, sum and output. These are merged
// within warps and then in shared memory, and the block sends its part, 66 floats, to the head's
// owner. There the parts of all ranks are merged by one block: one exchange, no meeting.
//
// Each float travels in a 64-bit word with the number of the call: who sees the number has the
// float, without a fence. Words exist twice, for odd and even calls. A rank sends for call k + 2
// after it has had parts of call k + 1 of every rank, each sent after that rank had ended call k.
#include <allranks/flags.h>

constexpr int kDim = 64, kThreads = 256, kWarps = kThreads / 32;
constexpr int kFew = 2, kMany = 8;     // positions of eight lanes in a batch
constexpr int kGroups = kThreads / 8;  // of eight lanes
constexpr int kMaxSplits = 4, kEach = kMaxRanks * kMaxSplits / kWarps;  // parts of a warp
constexpr int kPairs = kDim / 2 + 1;  // words of a part: pairs of outputs; maximum and sum
constexpr int kWords = 4096;          // where words begin; before: a counter of calls per block
constexpr float kNothing = -1e30;     // the maximum of no positions

// Maximum, sum of exponentials and outputs over some positions.
template <int kCount>
struct Part {
  float maximum = kNothing, sum = 0, output[kCount] = {};

  // `maximum` is that of all: nothing fades, so no part waits for another.
  __device__ void Add(float other_maximum, float other_sum, const float (&other)[kCount]) {
    const float factor = __expf(other_maximum - maximum);
    sum = fmaf(factor, other_sum, sum);
#pragma unroll
    for (int i = 0; i < kCount; ++i) output[i] = fmaf(factor, other[i], output[i]);
  }
};

__device__ void Send(ulonglong2* to, float2 v, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(number | __float_as_uint(v.x)), "l"(number | __float_as_uint(v.y))
               : "memory");  //@store
}

// Words are here when they have the number of the call.
__device__ bool Look(const ulonglong2* from, std::uint32_t call, float (&to)[2]) {
  ulonglong2 words;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words.x), "=l"(words.y)
               : "l"(from)
               : "memory");  //@look
  to[0] = __uint_as_float(static_cast<std::uint32_t>(words.x));
  to[1] = __uint_as_float(static_cast<std::uint32_t>(words.y));
  return words.x >> 32 == call && words.y >> 32 == call;
}

__device__ void Unpack(const uint4& v, float (&to)[8]) {
  const std::uint32_t pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    to[i] = __uint_as_float(i % 2 == 0 ? pairs[i / 2] << 16 : pairs[i / 2] & 0xffff0000u);
  }
}

// One part per warp in shared memory; a lane has two of its outputs.
struct Board {
  float outputs[kWarps][kDim], maximum[kWarps], sum[kWarps];

  __device__ Part<2> Merge(int pair) const {
    Part<2> whole;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) whole.maximum = fmaxf(whole.maximum, maximum[w]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      whole.Add(maximum[w], sum[w], {outputs[w][2 * pair], outputs[w][2 * pair + 1]});
    }
    return whole;
  }
};

template <int kBatch>
__global__ void __launch_bounds__(kThreads) Decode(Args args, int splits) {
  constexpr int kStride = kGroups * kBatch;  // positions of a batch
  __shared__ Board board, merged;            // of this rank, of all
  const int head = blockIdx.x / splits, split = blockIdx.x % splits;
  const int per = static_cast<int>(args.per), owner = head / per;
  const int length = static_cast<int>(args.length), used = args.used[0];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, run = lane % 8;
  const uint4* keys = reinterpret_cast<const uint4*>(args.k) + run;
  const uint4* values = reinterpret_cast<const uint4*>(args.v) + run;

  float query[8];
  Unpack(reinterpret_cast<const uint4*>(args.q)[head * 8 + run], query);
  Part<8> part;
  for (int first = split * kStride + (warp * kBatch * 32 + lane) / 8;; first += splits * kStride) {
    uint4 k[kBatch], v[kBatch];
    float score[kBatch], highest = part.maximum, added = 0;
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {  // all on their way before the first is needed
      const int at = first + n * 4;
      k[n] = at < length ? keys[at * 8] : uint4{};
      v[n] = at < length ? values[at * 8] : uint4{};
    }
    if (first - lane / 8 >= used) break;  //@end
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      float elements[8], dot = 0;
      Unpack(k[n], elements);
#pragma unroll
      for (int i = 0; i < 8; ++i) dot = fmaf(query[i], elements[i], dot);
      for (int d = 4; d > 0; d /= 2) dot += __shfl_xor_sync(~0u, dot, d);
      score[n] = first + n * 4 < used ? dot / 8 : kNothing;
      highest = fmaxf(highest, score[n]);
    }
    const float fade = __expf(part.maximum - highest);
#pragma unroll
    for (float& output : part.output) output *= fade;
#pragma unroll
    for (int n = 0; n < kBatch; ++n) {
      float elements[8];
      const float weight = score[n] == kNothing ? 0 : __expf(score[n] - highest);
      Unpack(v[n], elements);
#pragma unroll
      for (int i = 0; i < 8; ++i) part.output[i] = fmaf(weight, elements[i], part.output[i]);
      added += weight;
    }
    part.sum = part.sum * fade + added;
    part.maximum = highest;
  }
  float highest = part.maximum;  // of the warp
  for (int d = 8; d < 32; d *= 2) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, d));
  const float fade = __expf(part.maximum - highest);
  const auto over_warp = [&](float x) {
    x *= fade;
    x += __shfl_xor_sync(~0u, x, 8);
    return x + __shfl_xor_sync(~0u, x, 16);
  };
#pragma unroll
  for (float& output : part.output) output = over_warp(output);
  part.sum = over_warp(part.sum);
  part.maximum = highest;
  if (lane < 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) board.outputs[warp][run * 8 + i] = part.output[i];
    board.maximum[warp] = part.maximum;
    board.sum[warp] = part.sum;
  }
  __syncthreads();  //@stored

  // Words at rank `at`: by call % 2, head of that rank, source and split.
  const int all = args.world * splits;
  const auto slot = [&](int at, int n) {
    const int row = (call % 2 * per + head % per) * all + n;
    return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + kWords) + row * kPairs;
  };
  if (warp == 0) {
    const Part<2> sent = board.Merge(lane);
    ulonglong2* to = slot(owner, args.rank * splits + split);
    Send(to + lane, {sent.output[0], sent.output[1]}, call);  //@send
    if (lane == 0) Send(to + kPairs - 1, {sent.maximum, sent.sum}, call);
  }
  if (owner == args.rank && split == 0) {
    float outputs[kEach][2], scale[kEach][2];  // scale: maximum and sum
    bool missing;
    do {
      missing = false;
#pragma unroll
      for (int n = 0; n < kEach; ++n) {
        const int i = n * kWarps + warp;
        if (i >= all) continue;
        missing |= !Look(slot(owner, i) + lane, call, outputs[n]);
        missing |= !Look(slot(owner, i) + kPairs - 1, call, scale[n]);
      }
    } while (missing);  //@again
    Part<2> came;
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      if (n * kWarps + warp < all) came.maximum = fmaxf(came.maximum, scale[n][0]);
    }
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      if (n * kWarps + warp < all) came.Add(scale[n][0], scale[n][1], outputs[n]);
    }
    merged.outputs[warp][2 * lane] = came.output[0];
    merged.outputs[warp][2 * lane + 1] = came.output[1];
    if (lane == 0) merged.maximum[warp] = came.maximum;
    if (lane == 0) merged.sum[warp] = came.sum;
    __syncthreads();  //@arrived
    if (warp == 0) {
      const Part<2> whole = merged.Merge(lane);
      const float scale_by = whole.sum > 0 ? __fdividef(1, whole.sum) : 0;
      reinterpret_cast<float2*>(args.out)[head % per * kDim / 2 + lane] = {
          whole.output[0] * scale_by, whole.output[1] * scale_by};
    }
  }
  if (threadIdx.x == 0) *calls = call;  //@advance
}

// As many blocks for a head as there are batches of positions.
extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int heads = static_cast<int>(args.world * args.per);
  int splits = 1;
  while (splits < kMaxSplits && 2 * splits * heads <= 64 &&
         args.length > splits * kGroups * kMany) {
    splits *= 2;
  }
  if (args.length <= kGroups * kFew) {
    Decode<kFew><<<heads * splits, kThreads, 0, stream>>>(args, splits);
  } else {
    Decode<kMany><<<heads * splits, kThreads, 0, stream>>>(args, splits);
  }
}
