// A block has four images, and a warp for each rank's texts. Blocks send the texts that go with
// their images to all peers, in packets of 16 bytes whose two words have four features and the
// number of the call each: who finds the number has the features. Packets lie such that lane j
// reads text j with coalesced loads. It has the images in registers, makes four coefficients with
// products of bytes, and then each lane adds up the gradients of two columns.
//
// Packets are in two sets, used in turn. A rank leaves call k with packets of call k of all blocks
// of all ranks, so nobody reads those of call k - 1 any more when call k + 1 overwrites them.

constexpr int kImages = 4, kThreads = 32 * kMaxRanks, kDim = 64, kWords = kDim / 4;
constexpr int kRuns = kWords / 2;  // packets of a text
constexpr int kBegin = 4096;       // of the packets; before: a counter of calls per block
constexpr float kScale = 1.0f / 32768;

struct alignas(16) Packet {
  std::uint64_t low, high;
};

__device__ void Send(Packet* to, Packet p) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(p.low), "l"(p.high)
               : "memory");  //@send
}

__device__ Packet Look(const Packet* packet) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.low), "=l"(p.high)
               : "l"(packet)
               : "memory");  //@look
  return p;
}

__global__ void __launch_bounds__(kThreads) SigmoidLoss(Args args) {
  __shared__ int texts[kMaxRanks][32][kWords + 1];
  __shared__ alignas(16) float coefficients[kMaxRanks][32][kImages];
  __shared__ alignas(16) float losses[kMaxRanks][kImages], grads[kMaxRanks][kImages][kDim];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::uint64_t epoch = std::uint64_t{call} << 32;
  const int n = static_cast<int>(args.n), first = blockIdx.x * kImages, thread = threadIdx.x;
  const int source = thread / 32, lane = thread % 32;
  const uint2* own = reinterpret_cast<const uint2*>(args.text);
  const auto packets = [&](int at, int of) {
    Packet* set = reinterpret_cast<Packet*>(args.scratch_peers[at] + kBegin);
    return set + (call % 2 * kMaxRanks + of) * kRuns * n;
  };

  for (int i = thread; i < args.world * kImages * kRuns; i += kThreads) {
    const int row = first + i % kImages, run = i / kImages % kRuns, peer = i / kImages / kRuns;
    if (row >= n || peer == args.rank) continue;
    const uint2 v = own[row * kRuns + run];
    Send(&packets(peer, args.rank)[run * n + row], {epoch | v.x, epoch | v.y});  //@tell
  }
  int image[kImages][kWords];
#pragma unroll
  for (int i = 0; i < kImages * kWords; ++i) {
    const int row = min(first + i / kWords, n - 1);
    image[i / kWords][i % kWords] =
        reinterpret_cast<const int*>(args.image)[row * kWords + i % kWords];
  }

  float loss[kImages] = {0};
  float2 grad[kImages] = {};
  for (int base = 0; base < n && source < args.world; base += 32) {
    const int j = base + lane;
    int text[kWords] = {0};
    for (bool here = j >= n; !here;) {
      here = true;
#pragma unroll
      for (int run = 0; run < kRuns; ++run) {
        Packet p;
        if (source == args.rank) {
          const uint2 v = own[j * kRuns + run];
          p = {epoch | v.x, epoch | v.y};
        } else {
          p = Look(&packets(args.rank, source)[run * n + j]);
        }
        here = here && p.low >> 32 == call && p.high >> 32 == call;  //@again
        text[2 * run] = static_cast<int>(p.low);
        text[2 * run + 1] = static_cast<int>(p.high);
      }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kWords; ++i) texts[source][lane][i] = text[i];
#pragma unroll
    for (int m = 0; m < kImages; ++m) {
      int dot = 0;
#pragma unroll
      for (int i = 0; i < kWords; ++i) dot = __dp4a(image[m][i], text[i], dot);
      const bool pair = source == args.rank && j == first + m;
      const float score = dot * kScale - 2, x = pair ? -score : score;
      const float t = __expf(-fabsf(x)), inverse = __fdividef(1, 1 + t);
      const float sigmoid = x >= 0 ? inverse : t * inverse;
      coefficients[source][lane][m] = pair ? -sigmoid : sigmoid;
      if (j < n) loss[m] += fmaxf(x, 0) + __logf(1 + t);
    }
    __syncwarp();  //@staged
#pragma unroll 8
    for (int at = 0; at < min(32, n - base); ++at) {
      const char2 columns = reinterpret_cast<const char2*>(texts[source][at])[lane];
      const float4 c = *reinterpret_cast<const float4*>(coefficients[source][at]);
      const float of[kImages] = {c.x, c.y, c.z, c.w};
#pragma unroll
      for (int m = 0; m < kImages; ++m) {
        grad[m] = {fmaf(of[m], columns.x, grad[m].x), fmaf(of[m], columns.y, grad[m].y)};
      }
    }
    __syncwarp();
  }
  for (int d = 16; d > 0; d /= 2) {
#pragma unroll
    for (float& x : loss) x += __shfl_xor_sync(~0u, x, d);
  }
#pragma unroll
  for (int m = 0; m < kImages; ++m) {
    reinterpret_cast<float2*>(grads[source][m])[lane] = grad[m];
    if (lane == 0) losses[source][m] = loss[m];
  }
  __syncthreads();  //@added
  const int m = thread / kDim, column = thread % kDim;
  float gradient = 0, total = 0;
  for (int w = 0; w < args.world; ++w) {
    gradient += grads[w][m][column];
    total += losses[w][m];
  }
  if (first + m < n) args.grad[(first + m) * kDim + column] = gradient * kScale;
  if (first + m < n && column == 0) args.loss[first + m] = total;
  if (thread == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  SigmoidLoss<<<(args.n + kImages - 1) / kImages, kThreads, 0, stream>>>(args);
}
