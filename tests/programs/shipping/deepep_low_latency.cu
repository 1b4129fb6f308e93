// DeepEP's low-latency dispatch and combine over NVLink. Every pair of expert and source rank has
// its own slots at the expert's rank. A warp that has stored a token adds one to the expert's
// counter with release; one warp per expert adds a tag less the number of tokens, so that the
// counter shows when all are out; then one thread acquires the counter and releases -count - 1 to
// the peer, whose zero means "not known yet". combine sends results back and raises one flag per
// expert. Buffers exist twice: a call clears the counts of the next one before it tells its own.
//
// As shipped the receiver loads tokens with .nc while the kernel that sent them may still run
// (`read-only`). fixed: with plain loads. The rest is in order: scopes grow from device to system
// on the way (`cumulativity`).
//
// finds: race
// run shipped.two: --devices 2 | 2 threads shipped
// run shipped.four: --devices 4 | 4 threads shipped
// run shipped.eight: --devices 8 | 8 threads shipped
// run fixed.two: --devices 2 | 2 threads fixed
// run fixed.four: --devices 4 | 4 threads fixed
// run fixed.eight: --devices 8 | 8 threads fixed
#include "sums.h"

namespace {

constexpr int kTokens = 12, kExperts = 2, kTop = 2, kCalls = 4;  // experts per rank
constexpr int kBlocks = 4, kWarps = 4, kMaxExperts = kExperts * kMaxRanks;
constexpr uint32_t kTag = 1024;

struct Message {
  float4 values[32];
  uint32_t token;
  uint32_t place;  // among the top experts of the token
};

struct Half {
  Message inbox[kExperts][kMaxRanks][kTokens];
  float4 results[kTokens][kTop][32];
  uint32_t counts[kExperts][kMaxRanks];
  uint32_t flags[kMaxExperts];
};

struct Buffers {
  Half half[2];
};

struct Counters {
  uint32_t slots[kMaxExperts];
  uint32_t finished[kMaxExperts];
};

__host__ __device__ int Expert(int rank, int call, int token, int place, int experts) {
  const uint32_t mixed = uint32_t(rank * 97 + call * 61 + token * 13 + 5) * 0x9e3779b1u >> 11;
  return (mixed + place * (1 + mixed % (experts - 1))) % experts;
}

template <bool kShipped>
__device__ float4 LoadToken(const float4* p) {
  if (!kShipped) return *p;
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p));
  return v;
}

__global__ void Dispatch(Peers<Buffers> buffers, Counters* counters, int rank, int ranks, int call,
                         const float4* tokens) {
  const int warp = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int experts = kExperts * ranks;
  for (int k = warp; k < kTokens * kTop; k += kBlocks * kWarps) {
    const int token = k / kTop, expert = Expert(rank, call, token, k % kTop, experts);
    uint32_t slot = lane == 0 ? atomicAdd(&counters->slots[expert], 1) : 0;
    slot = __shfl_sync(~0u, slot, 0);
    Half* half = &buffers[expert / kExperts]->half[call % 2];
    Message* message = &half->inbox[expert % kExperts][rank][slot];
    message->values[lane] = tokens[token * 32 + lane];
    if (lane == 0) {
      message->token = token;
      message->place = k % kTop;
    }
    __syncwarp();
    if (lane == 0) AddReleaseGpu(&counters->finished[expert], 1);
  }
  if (warp == 0) {
    Half* next = &buffers[rank]->half[(call + 1) % 2];
    for (int i = lane; i < kExperts * kMaxRanks; i += 32) next->counts[0][i] = 0;
    for (int i = lane; i < kMaxExperts; i += 32) next->flags[i] = 0;
    __syncwarp();
    for (int i = lane; i < experts; i += 32) AddReleaseGpu(&counters->finished[i], kTag);
  }
  for (int expert = warp; expert < experts; expert += kBlocks * kWarps) {
    if (lane != 0) continue;
    uint32_t count = 0;
    for (int k = 0; k < kTokens * kTop; ++k)
      count += Expert(rank, call, k / kTop, k % kTop, experts) == expert;
    AddReleaseGpu(&counters->finished[expert], kTag - count);
    while (LoadAcquireGpu(&counters->finished[expert]) != 2 * kTag) {
    }
    Half* half = &buffers[expert / kExperts]->half[call % 2];
    StoreReleaseSys(&half->counts[expert % kExperts][rank], uint32_t(-int(count) - 1));
    counters->slots[expert] = 0;
    counters->finished[expert] = 0;
  }
}

// Block e is expert e: it takes the tokens of every rank, adds its number to all values, and sends
// them to where they came from. Its flag follows when all are out.
template <bool kShipped>
__global__ void Combine(Peers<Buffers> buffers, int rank, int ranks, int call) {
  const int expert = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Half* mine = &buffers[rank]->half[call % 2];
  __shared__ int counts[kMaxRanks];
  for (int from = 0; from < ranks; ++from) {
    if (threadIdx.x == 0) {
      uint32_t told;
      while ((told = LoadAcquireSys(&mine->counts[expert][from])) == 0) {
      }
      counts[from] = -int(told) - 1;
    }
    __syncthreads();
    const float more = float(rank * kExperts + expert + 1);
    Half* home = &buffers[from]->half[call % 2];
    for (int slot = warp; slot < counts[from]; slot += kWarps) {
      const Message* message = &mine->inbox[expert][from][slot];
      const float4 v = LoadToken<kShipped>(&message->values[lane]);
      home->results[message->token][message->place][lane] =
          make_float4(v.x + more, v.y + more, v.z + more, v.w + more);
    }
    __syncthreads();
    if (threadIdx.x == 0) StoreReleaseSys(&home->flags[rank * kExperts + expert], 1);
  }
}

__global__ void Collect(Peers<Buffers> buffers, int rank, int ranks, int call, float4* output) {
  Half* mine = &buffers[rank]->half[call % 2];
  if (threadIdx.x < kExperts * ranks) {
    while (LoadAcquireSys(&mine->flags[threadIdx.x]) == 0) {
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kTokens * 32; i += blockDim.x) {
    float4 sum = make_float4(0, 0, 0, 0);
    for (int place = 0; place < kTop; ++place) Add(sum, mine->results[i / 32][place][i % 32]);
    output[i] = sum;
  }
}

float Value(int rank, int call, int token, int i) {
  return float((rank * 31 + call * 17 + token * 7 + i) % 1001);
}

template <bool kShipped>
void Run(World& world) {
  const int rank = world.rank(), ranks = world.ranks(), size = kTokens * 128;
  const auto buffers = world.Share<Buffers>();
  Counters* counters = world.Allocate<Counters>();
  std::vector<float> values;
  for (int k = 0; k < kCalls * size; ++k)
    values.push_back(Value(rank, k / size, k % size / 128, k % 128));
  const auto* tokens = reinterpret_cast<const float4*>(world.Allocate(values));
  float* output = world.Allocate<float>(values.size());
  world.Barrier();
  for (int call = 0; call < kCalls; ++call) {
    Dispatch<<<kBlocks, 32 * kWarps, 0, world.stream()>>>(buffers, counters, rank, ranks, call,
                                                          tokens + call * size / 4);
    Combine<kShipped><<<kExperts, 32 * kWarps, 0, world.stream()>>>(buffers, rank, ranks, call);
    Collect<<<1, 64, 0, world.stream()>>>(buffers, rank, ranks, call,
                                          reinterpret_cast<float4*>(output) + call * size / 4);
    CUDA_CHECK_LAUNCH();
  }
  RequireElements(world, "token", kCalls, world.Result(output, values.size()), [&](int k) {
    const int call = k / size, token = k % size / 128;
    float sum = 0;
    for (int place = 0; place < kTop; ++place)
      sum += values[k] + float(Expert(rank, call, token, place, kExperts * ranks) + 1);
    return sum;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
