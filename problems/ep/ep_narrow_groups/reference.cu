// A warp has a token at a time: it tells all ranks the token's experts, as bits beside the number of
// the call, and sends the row to the members of its group that hold one of them, once to each, in
// words that carry that number, too. From the choices of the group every block knows by itself where
// each row belongs, so a warp takes any row as soon as it is here, and writes it once per expert. The
// last block hears the choices of the other groups as well, for the loads.
//
// Slots exist twice, for odd and even calls. Who writes in call k + 2 has ended call k + 1, in which
// its last block had choices of all ranks; they had ended call k, and had read what call k brought.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kBlocks = 16, kThreads = 256, kWarps = kBlocks * kThreads / 32, kBatch = 4;
constexpr int kMaxExperts = 32, kMaxWords = 16;

__device__ std::uint64_t* Choice(const Args& args, int at, int item, std::uint32_t call) {
  return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + 1024) +
         call % 2 * args.world * args.tokens + item;
}
// `item`: member * tokens + token. A packet has four numbers.
__device__ ulonglong2* Slot(const Args& args, int at, int item, std::uint32_t call) {
  const std::int64_t row = call % 2 * args.group * args.tokens + item;
  return reinterpret_cast<ulonglong2*>(args.scratch_peers[at] + 1024 +
                                       16 * args.world * args.tokens) +
         row * (args.hidden / 4);
}
__device__ std::uint64_t Hear(const Args& args, int item, std::uint32_t call) {
  std::uint64_t word;
  do {
    word = LoadRelaxedSys(Choice(args, args.rank, item, call));  //@hear
  } while (word >> 32 != call);  //@heard
  return word;
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
  } while (missing);  //@wait
}
__device__ void Load(uint2 (&to)[kBatch], const uint2* from, int base, int end) {
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    if (base + i * 32 < end) to[i] = from[base + i * 32];
  }
}

__global__ void __launch_bounds__(kThreads) Dispatch(Args args) {
  __shared__ std::uint32_t users[kMaxExperts][kMaxWords];  // by own expert: bits of items
  __shared__ int loads[kMaxExperts];
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const std::uint64_t number = std::uint64_t{call} << 32;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 * kBlocks + blockIdx.x;
  const int tokens = static_cast<int>(args.tokens), per = static_cast<int>(args.per);
  const int group = static_cast<int>(args.group), packets = static_cast<int>(args.hidden / 4);
  const int first = (args.rank / args.group * args.group) * tokens, rows = group * tokens;
  const int member = args.rank % group, experts = group * per;
  const std::uint32_t held = per == 32 ? ~0u : (1u << per) - 1;
  const uint2* x = reinterpret_cast<const uint2*>(args.x);

  for (int token = warp; token < tokens; token += kWarps) {
    uint2 v[kBatch];
    Load(v, x + token * packets, lane, packets);  // on its way while choices are read
    std::uint32_t chosen = lane < args.topk ? 1u << args.ids[token * args.topk + lane] : 0;
    chosen = __reduce_or_sync(~0u, chosen);
    if (lane < args.world) {
      StoreRelaxedSys(Choice(args, lane, args.rank * tokens + token, call), number | chosen);  //@tell
    }
    for (int base = lane; base < packets; base += 32 * kBatch) {
      if (base != lane) Load(v, x + token * packets, base, packets);
      for (int step = 1; step < group; ++step) {
        const int to = (member + step) % group;
        if ((chosen >> to * per & held) == 0) continue;
        ulonglong2* slot = Slot(args, first / tokens + to, member * tokens + token, call);
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          if (base + i * 32 < packets) Send(slot + base + i * 32, v[i], number);
        }
      }
    }
  }

  for (int base = 0; base < rows; base += kThreads) {
    const int item = base + threadIdx.x;
    const std::uint64_t word = item < rows ? Hear(args, first + item, call) : 0;
    for (int e = 0; e < per; ++e) {
      const std::uint32_t bits = __ballot_sync(~0u, word >> (member * per + e) & 1);
      if (lane == 0) users[e][item / 32] = bits;
    }
  }
  if (threadIdx.x < experts) loads[threadIdx.x] = 0;
  __syncthreads();
  for (int item = warp; item < rows; item += kWarps) {
    // Lane e: whether expert e gets the row, and where.
    const std::uint32_t bits = lane < per ? users[lane][item / 32] : 0;
    const std::uint32_t here = __ballot_sync(~0u, bits >> item % 32 & 1);
    if (here == 0) continue;
    int row = lane * rows + __popc(bits & ((1u << item % 32) - 1));
    if (lane < per) {
      for (int w = 0; w < item / 32; ++w) row += __popc(users[lane][w]);
    }
    if ((here >> lane & 1) != 0) args.recv_from[row] = first + item;
    for (int base = lane; base - lane < packets; base += 32 * kBatch) {
      uint2 v[kBatch];
      if (item / tokens == member) {
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
  if (blockIdx.x == 0) {
    for (int i = threadIdx.x; i < per * group; i += kThreads) {
      int count = 0;
      for (int item = i % group * tokens; item < (i % group + 1) * tokens; ++item) {
        count += users[i / group][item / 32] >> item % 32 & 1;
      }
      args.count[i] = count;
    }
  }
  if (blockIdx.x == kBlocks - 1) {
    for (int base = 0; base < args.world * tokens; base += kThreads) {
      const int item = base + threadIdx.x;
      const std::uint64_t word = item < args.world * tokens ? Hear(args, item, call) : 0;
      for (int e = 0; e < experts; ++e) {
        const std::uint32_t bits = __ballot_sync(~0u, word >> e & 1);
        if (lane == 0 && bits != 0) atomicAdd(&loads[e], __popc(bits));
      }
    }
    __syncthreads();  //@summed
    if (threadIdx.x < experts) args.load[threadIdx.x] = loads[threadIdx.x];
  }
  __syncthreads();
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Dispatch<<<kBlocks, kThreads, 0, stream>>>(args);
}
