// DeepEP's dispatch and combine within a node. Ranks meet in a barrier of one block: thread p adds
// a tag to the word for rank p at home and subtracts it at rank p from the word for itself, all
// threads poll and vote until no word is positive. Tokens go through channels: a queue per pair of
// ranks, whose memory, tail and head are at the receiver. The sender first tells how many tokens
// there will be, as -count - 1, since zero means "not known yet"; then chunks of tokens, each with
// a released tail. The receiver acquires the tail, copies, and tells its head. combine sends what
// dispatch has brought back the same way, with every value doubled.
//
// As shipped: (1) in the barrier every thread fences, the block meets, and other threads than those
// that wrote do the relaxed atomics; what a fence releases is what came before it in its own thread
// (`release-pattern`), and behind the poll nothing acquires. (2) The receiver loads tokens with
// .nc, which is for memory that nobody writes while the kernel runs (`read-only`). (3) The head is
// stored relaxed and polled volatile: the sender's next tokens race with the loads of the old ones.
// fixed: the fence comes behind the block's barrier and another one behind the poll, loads are
// plain, and the head releases and is acquired.
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

constexpr int kTokens = 40, kQuads = 32, kRoom = 8, kChunk = 3, kCalls = 3;  // a quad per lane
constexpr int kTag = 1024;

struct Queue {
  uint32_t count;  // -count - 1 once it is known
  uint32_t tail, head;
  uint32_t source[kRoom];
  alignas(16) float4 tokens[kRoom][kQuads];
};

struct Buffers {
  int barrier[kMaxRanks];
  Queue from[kMaxRanks];
};

// The ranks that get token t of `rank`: a bit each, at least one.
__host__ __device__ uint32_t Destinations(int rank, int call, int t, int ranks) {
  const uint32_t bits = uint32_t(rank * 7 + call * 5 + t * 3 + 1) * 0x9e3779b1u >> 13;
  const uint32_t wanted = bits & ((1u << ranks) - 1);
  return wanted != 0 ? wanted : 1u << (t % ranks);
}

template <bool kShipped>
__device__ void MeetRanks(const Peers<Buffers>& buffers, int rank, int ranks) {
  if (kShipped) FenceSys();
  __syncthreads();
  if (!kShipped) FenceSys();
  const int thread = threadIdx.x;
  if (thread < ranks) {
    atomicAdd_system(&buffers[rank]->barrier[thread], kTag);
    atomicSub_system(&buffers[thread]->barrier[rank], kTag);
  }
  while (true) {
    const auto* word = reinterpret_cast<const uint32_t*>(&buffers[rank]->barrier[thread % ranks]);
    const int value = thread < ranks ? int(LoadVolatile(word)) : 0;
    if (__all_sync(~0u, value <= 0)) break;
  }
  if (!kShipped) FenceSys();
  __syncthreads();
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

// A block clears its queues and meets the other ranks, before and after.
template <bool kShipped>
__global__ void Prepare(Peers<Buffers> buffers, int rank, int ranks) {
  MeetRanks<kShipped>(buffers, rank, ranks);
  if (threadIdx.x < ranks) {
    Queue* queue = &buffers[rank]->from[threadIdx.x];
    queue->count = queue->tail = queue->head = 0;
  }
  MeetRanks<kShipped>(buffers, rank, ranks);
}

// Warp w of the first block sends to rank w, warp w of the second one receives from it. A rank has
// `count` tokens for `peer`, whose numbers are in `list`.
template <bool kShipped>
__global__ void Exchange(Peers<Buffers> buffers, int rank, int ranks, const float4* tokens,
                         const int* counts, const int* lists, float factor, float4* received,
                         int* sources, int* received_counts) {
  const int peer = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (peer >= ranks) return;
  if (blockIdx.x == 0) {
    Queue* queue = &buffers[peer]->from[rank];
    const int count = counts[peer];
    if (lane == 0) StoreRelaxedSys(&queue->count, uint32_t(-count - 1));
    __syncwarp();
    for (int sent = 0; sent < count;) {
      if (lane == 0) {
        if (kShipped) {
          while (sent - int(LoadVolatile(&queue->head)) > kRoom - kChunk) {
          }
        } else {
          while (sent - int(LoadAcquireSys(&queue->head)) > kRoom - kChunk) {
          }
        }
      }
      __syncwarp();
      for (int k = 0; k < kChunk && sent < count; ++k, ++sent) {
        const int token = lists[peer * kTokens * kMaxRanks + sent];
        const float4 v = tokens[token * kQuads + lane];
        queue->tokens[sent % kRoom][lane] =
            make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
        if (lane == 0) queue->source[sent % kRoom] = token;
      }
      __syncwarp();
      if (lane == 0) StoreReleaseSys(&queue->tail, sent);
    }
    return;
  }
  Queue* queue = &buffers[rank]->from[peer];
  int count = 0, taken = 0;
  if (lane == 0) {
    uint32_t told;
    while ((told = LoadVolatile(&queue->count)) == 0) {
    }
    count = -int(told) - 1;
  }
  count = __shfl_sync(~0u, count, 0);
  while (taken < count) {
    int tail = 0;
    if (lane == 0) {
      while ((tail = LoadAcquireSys(&queue->tail)) == taken) {
      }
    }
    tail = __shfl_sync(~0u, tail, 0);
    __syncwarp();
    for (; taken < tail; ++taken) {
      const int at = peer * kTokens * kMaxRanks + taken;
      received[at * kQuads + lane] = LoadToken<kShipped>(&queue->tokens[taken % kRoom][lane]);
      if (lane == 0) sources[at] = queue->source[taken % kRoom];
    }
    __syncwarp();
    if (lane == 0) {
      if (kShipped) {
        StoreRelaxedSys(&queue->head, taken);
      } else {
        StoreReleaseSys(&queue->head, taken);
      }
    }
  }
  if (lane == 0) received_counts[peer] = count;
}

float Value(int rank, int call, int token, int i) {
  return float((rank * 31 + call * 17 + token * 7 + i) % 1001);
}

template <bool kShipped>
void Run(World& world) {
  const int rank = world.rank(), ranks = world.ranks(), room = kTokens * kMaxRanks;
  const auto buffers = world.Share<Buffers>();
  for (int call = 0; call < kCalls; ++call) {
    std::vector<float> values;
    for (int k = 0; k < kTokens * kQuads * 4; ++k)
      values.push_back(Value(rank, call, k / (kQuads * 4), k % (kQuads * 4)));
    std::vector<int> counts(ranks), lists(kMaxRanks * room), places(kMaxRanks * room);
    std::vector<int> back_counts(ranks);
    for (int peer = 0; peer < ranks; ++peer) {
      for (int t = 0; t < kTokens; ++t) {
        if (Destinations(rank, call, t, ranks) >> peer & 1) lists[peer * room + counts[peer]++] = t;
        if (Destinations(peer, call, t, ranks) >> rank & 1) ++back_counts[peer];
      }
      for (int k = 0; k < room; ++k) places[peer * room + k] = peer * room + k;
    }
    const auto* tokens = reinterpret_cast<const float4*>(world.Allocate(values));
    float4* received[2];
    int *sources[2], *received_counts[2];
    for (int way = 0; way < 2; ++way) {
      received[way] = world.Allocate<float4>(ranks * room * kQuads);
      sources[way] = world.Allocate<int>(ranks * room);
      received_counts[way] = world.Allocate<int>(ranks);
    }
    const int* device_counts = world.Allocate(counts);
    const int* device_lists = world.Allocate(lists);
    const int* device_places = world.Allocate(places);
    for (int way = 0; way < 2; ++way) {
      Prepare<kShipped><<<1, 32, 0, world.stream()>>>(buffers, rank, ranks);
      Exchange<kShipped><<<2, 32 * kMaxRanks, 0, world.stream()>>>(
          buffers, rank, ranks, way == 0 ? tokens : received[0],
          way == 0 ? device_counts : received_counts[0], way == 0 ? device_lists : device_places,
          way == 0 ? 1.0f : 2.0f, received[way], sources[way], received_counts[way]);
      CUDA_CHECK_LAUNCH();
    }
    const auto there = world.Result(received_counts[0], ranks);
    const auto back =
        world.Result(reinterpret_cast<float*>(received[1]), ranks * room * kQuads * 4);
    const auto from = world.Result(sources[0], ranks * room);
    for (int peer = 0; peer < ranks; ++peer) {
      REQUIRE(there[peer] == back_counts[peer], "rank %d: %d tokens of %d, expected %d", rank,
              there[peer], peer, back_counts[peer]);
      for (int k = 0, t = 0; k < there[peer]; ++k, ++t) {
        while (!(Destinations(peer, call, t, ranks) >> rank & 1)) ++t;
        REQUIRE(from[peer * room + k] == t, "rank %d: token %d of %d", rank, k, peer);
      }
      for (int k = 0; k < counts[peer]; ++k) {
        for (int i = 0; i < kQuads * 4; ++i) {
          const float expected = 2 * Value(rank, call, lists[peer * room + k], i);
          const float got = back[(peer * room + k) * kQuads * 4 + i];
          REQUIRE(got == expected, "rank %d, call %d: token %d by way of %d, value %d: %g, not %g",
                  rank, call, lists[peer * room + k], peer, i, got, expected);
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Setup setup = ReadSetup(argc, argv);
  const bool shipped = Shipped(setup);
  return RunWorld(setup, [=](World& world) { shipped ? Run<true>(world) : Run<false>(world); });
}
