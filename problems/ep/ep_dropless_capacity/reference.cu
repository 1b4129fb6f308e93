// A warp has a token at a time: it tells all ranks the token's experts, as bits beside the number of
// the call, and sends the row to the ranks that hold one of them, once to each, in words that carry
// that number, too. It does so before anybody knows whether the row fits: that would be one trip
// more. Rooms travel like choices. From all of these every block knows each token's place, so all
// ranks find the same overflow without another word, and a warp takes any row that fits as soon as
// it is here, and writes it once per expert.
//
// Slots exist twice, for odd and even calls. Who writes in call k + 2 has ended call k + 1, in which
// it had choices of all ranks; they had ended call k, and had read what call k brought.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 24, kThreads = 256, kWarps = kBlocks * kThreads / 32, kBatch = 4;
constexpr int kMaxExperts = 32, kMaxWords = 16;

struct Shared {
  std::uint32_t users[kMaxExperts][kMaxWords];  // by expert: bits of items, rank * tokens + token
  int room[kMaxExperts];
};

__device__ std::uint64_t* Room(const Args& args, int at, int expert, std::uint32_t call) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + 1024) +
         call % 2 * kMaxExperts + expert;
}
__device__ std::uint64_t* Choice(const Args& args, int at, int item, std::uint32_t call) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + 2048) +
         call % 2 * args.world * args.tokens + item;
}
// A packet has four numbers.
__device__ ulonglong2* Slot(const Args& args, int at, int item, std::uint32_t call) {
  const std::int64_t all = args.world * args.tokens;
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 2048 + 16 * all) +
         (call % 2 * all + item) * (args.hidden / 4);
}
__device__ std::uint32_t Hear(const std::uint64_t* from, std::uint32_t call) {
  std::uint64_t word;
  do {
    word = LoadRelaxedSys(from);  //@hear
  } while (word >> 32 != call);  //@heard
  return static_cast<std::uint32_t>(word);
}
// Of a token that has chosen expert e; -1 if it does not fit.
__device__ int Place(const Shared& shared, int e, int item) {
  int row = __popc(shared.users[e][item / 32] & ((1u << item % 32) - 1));
  for (int w = 0; w < item / 32; ++w) row += __popc(shared.users[e][w]);
  return row < shared.room[e] ? row : -1;
}
__device__ void Send(ulonglong2* to, uint2 v, std::uint64_t number) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(number | v.x),
               "l"(number | v.y)
               : "memory");  //@send
}
// Packets base, base + 32, ... All are on their way before the first is needed.
__device__ void Receive(uint2 (&to)[kBatch], const ulonglong2* from, int base, int end,
                        std::uint32_t call) {
  bool missing;
  do {
    missing = false;
    ulonglong2 words[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (base + i * 32 >= end) continue;
      asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                   : "=l"(words[i].x), "=l"(words[i].y)
                   : "l"(from + base + i * 32)
                   : "memory");  //@look
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (base + i * 32 >= end) continue;
      missing |= words[i].x >> 32 != call || words[i].y >> 32 != call;
      to[i] = make_uint2(words[i].x, words[i].y);
    }
  } while (missing);
}
__device__ void Load(uint2 (&to)[kBatch], const uint2* from, int base, int end) {
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    if (base + i * 32 < end) to[i] = from[base + i * 32];
  }
}

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ Shared shared;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::uint64_t number = std::uint64_t{call} << 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 * kBlocks + blockIdx.x;
  const int tokens = static_cast<int>(args.tokens), per = static_cast<int>(args.per);
  const int topk = static_cast<int>(args.topk), packets = static_cast<int>(args.hidden / 4);
  const int experts = args.world * per, rows = args.world * tokens;
  const std::uint32_t held = (1u << per) - 1;
  const uint2* x = reinterpret_cast<const uint2*>(args.x);

  for (int token = warp; token < tokens; token += kWarps) {
    uint2 v[kBatch];
    Load(v, x + token * packets, lane, packets);  // on its way while choices are read
    std::uint32_t chosen = lane < topk ? 1u << args.ids[token * topk + lane] : 0;
    chosen = __reduce_or_sync(~0u, chosen);
    if (lane < args.world) {
      StoreRelaxedSys(Choice(args, lane, args.rank * tokens + token, call), number | chosen);  //@tell
    }
    for (int base = lane; base < packets; base += 32 * kBatch) {
      if (base != lane) Load(v, x + token * packets, base, packets);
      for (int step = 1; step < args.world; ++step) {
        const int to = (args.rank + step) % args.world;
        if ((chosen >> to * per & held) == 0) continue;
        ulonglong2* slot = Slot(args, to, args.rank * tokens + token, call);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          if (base + i * 32 < packets) Send(slot + base + i * 32, v[i], number);
        }
      }
    }
  }
  // Blocks take turns: block b tells rank b.
  if (blockIdx.x < args.world && threadIdx.x < per) {
    const std::uint64_t word = number | args.room[lane];
    StoreRelaxedSys(Room(args, blockIdx.x, args.rank * per + lane, call), word);  //@offer
  }

  for (int item = threadIdx.x; item - lane < rows; item += kThreads) {
    const std::uint32_t word = item < rows ? Hear(Choice(args, args.rank, item, call), call) : 0;
    for (int e = 0; e < experts; ++e) {
      const std::uint32_t bits = __ballot_sync(~0u, word >> e & 1);
      if (lane == 0) shared.users[e][item / 32] = bits;
    }
  }
  if (threadIdx.x < experts) {
    shared.room[threadIdx.x] = Hear(Room(args, args.rank, threadIdx.x, call), call);
  }
  __syncthreads();
  for (int item = warp; item < rows; item += kWarps) {
    // Lane e: whether own expert e gets the row, and where.
    const int e = args.rank * per + lane;
    int row = -1;
    if (lane < per && (shared.users[e][item / 32] >> item % 32 & 1) != 0) row = Place(shared, e, item);
    const std::uint32_t here = __ballot_sync(~0u, row >= 0);
    if (here == 0) continue;
    row += static_cast<int>(lane * args.most);
    if ((here >> lane & 1) != 0) args.recv_from[row] = item;
    for (int base = lane; base - lane < packets; base += 32 * kBatch) {
      uint2 v[kBatch];
      if (item / tokens == args.rank) {
        Load(v, x + item % tokens * packets, base, packets);
      } else {
        Receive(v, Slot(args, args.rank, item, call), base, packets, call);
      }
      for (std::uint32_t left = here; left != 0; left &= left - 1) {
        const std::int64_t place = __shfl_sync(~0u, row, __ffs(left) - 1);
        uint2* to = reinterpret_cast<uint2*>(args.recv_x) + place * packets;
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          if (base + i * 32 < packets) to[base + i * 32] = v[i];
        }
      }
    }
  }
  const int thread = warp * 32 + lane, threads = kWarps * 32;
  for (int i = thread; i < tokens * topk; i += threads) {
    const int item = args.rank * tokens + i / topk;
    args.slots[i] = Place(shared, args.ids[i], item);
  }
  for (int item = thread; item < rows; item += threads) {
    std::uint32_t word = 0;
    for (int e = 0; e < experts; ++e) word |= (shared.users[e][item / 32] >> item % 32 & 1) << e;
    for (std::uint32_t left = word; left != 0; left &= left - 1) {
      const int e = __ffs(left) - 1;
      if (Place(shared, e, item) < 0) word &= ~(1u << e);
    }
    args.fits[item] = word;
  }
  __syncthreads();
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<kBlocks, kThreads, 0, stream>>>(args);
}
