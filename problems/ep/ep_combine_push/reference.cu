// Everything travels in words that carry the number of the call: who sees the number has the rest,
// without a fence. Block b of every rank has the tokens b, b + blocks, ... of all owners. Since an
// owner does not know which answers come, a rank tells each owner, for each of its tokens and each
// own expert, the answer's gate, or that there is none. An owner waits for these words first, then
// for the rows that they announce and no others, and adds up by ascending expert.
//
// Words exist twice, for odd and even calls. A rank writes for call k + 2 after it has had words of
// call k + 1 of every rank, which each sends after it has ended call k.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 128, kBatch = 4, kMaxExperts = 32, kMaxAnswers = 256;
constexpr std::uint32_t kNone = ~0u;  // in place of a gate; not a number

// The beginning of every rank's scratch: a counter of calls per block. Gates follow, then rows.
constexpr int kWords = kMaxBlocks * 4;

struct Answer {
  int index, place;    // among own answers; of the token
  std::uint32_t gate;  // its bits
};

__device__ void Store(ulonglong2* to, uint2 v, std::uint32_t call) {
  const std::uint64_t number = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(number | v.x),
               "l"(number | v.y)
               : "memory");  //@store
}

__device__ ulonglong2 Look(const ulonglong2* from) {
  ulonglong2 words;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words.x), "=l"(words.y)
               : "l"(from)
               : "memory");  //@look
  return words;
}

__global__ void __launch_bounds__(kThreads) Combine(Args args) {
  __shared__ Answer answers[kMaxAnswers];
  __shared__ int answer_count;         // of this block's tokens
  __shared__ float gate[kMaxExperts];  // of the answers that come, in order
  __shared__ int expert[kMaxExperts], coming;
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch) + blockIdx.x;
  const std::uint32_t call = *calls + 1;  //@epoch
  const int rank = args.rank, per = static_cast<int>(args.per), experts = args.world * per;
  const int tokens = static_cast<int>(args.tokens), most = static_cast<int>(args.most);
  const int quads = static_cast<int>(args.hidden / 4);  // runs of four numbers
  const std::int64_t set = call % 2 * args.tokens;
  const auto gates = [&](int at, int token) {
    return reinterpret_cast<std::uint64_t*>(args.scratch_peers[at] + kWords) +
           (set + token) * experts;
  };
  const auto rows = [&](int at, int token, int g) {
    std::uint8_t* first = args.scratch_peers[at] + kWords + 2 * tokens * experts * 8;
    return reinterpret_cast<ulonglong2*>(first) + ((set + token) * experts + g) * quads;
  };

  if (threadIdx.x == 0) answer_count = 0;
  __syncthreads();  //@zeroed
  for (int i = threadIdx.x; i < per * most; i += kThreads) {
    const Answer answer = {i, args.to[i], __float_as_uint(args.gates[i])};
    if (answer.place % tokens % gridDim.x != blockIdx.x) continue;
    if (i % most < args.used[i / most]) answers[atomicAdd(&answer_count, 1)] = answer;
  }
  __syncthreads();  //@listed
  for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
    if (threadIdx.x < experts) {  // owner and own expert
      const int owner = threadIdx.x / per, e = threadIdx.x % per;
      std::uint32_t bits = kNone;
      for (int n = 0; n < answer_count; ++n) {
        const Answer& answer = answers[n];
        const bool same = answer.index / most == e && answer.place == owner * tokens + token;
        if (same) bits = answer.gate;
      }
      StoreRelaxedSys(&gates(owner, token)[rank * per + e],
                      std::uint64_t{call} << 32 | bits);  //@post
    }
  }
  for (int n = threadIdx.x; n < answer_count * quads; n += kThreads) {
    const Answer& answer = answers[n / quads];
    const int e = answer.index / most, owner = answer.place / tokens, q = n % quads;
    const uint2 four = reinterpret_cast<const uint2*>(args.y)[answer.index * quads + q];
    Store(rows(owner, answer.place % tokens, rank * per + e) + q, four, call);  //@push
  }

  for (int token = blockIdx.x; token < tokens; token += gridDim.x) {
    if (threadIdx.x < 32) {
      const int g = threadIdx.x;
      std::uint64_t word = kNone;
      if (g < experts) {
        do {
          word = LoadRelaxedSys(&gates(rank, token)[g]);
        } while (word >> 32 != call);  //@hear
      }
      const bool comes = static_cast<std::uint32_t>(word) != kNone;
      const std::uint32_t all = __ballot_sync(~0u, comes);
      const int place = __popc(all & ((1u << g) - 1));
      if (comes) gate[place] = __uint_as_float(static_cast<std::uint32_t>(word));
      if (comes) expert[place] = g;
      if (g == 0) coming = __popc(all);
    }
    __syncthreads();  //@known
    for (int q = threadIdx.x; q < quads; q += kThreads) {
      float sum[4] = {};
      for (int first = 0; first < coming; first += kBatch) {
        ulonglong2 words[kBatch];
        bool missing;
        do {
          missing = false;
#pragma unroll
          for (int n = 0; n < kBatch; ++n) {  // all on their way before the first is needed
            if (first + n < coming) words[n] = Look(rows(rank, token, expert[first + n]) + q);
          }
#pragma unroll
          for (int n = 0; n < kBatch; ++n) {
            if (first + n < coming) missing |= words[n].x >> 32 != call;
          }
        } while (missing);  //@again
#pragma unroll
        for (int n = 0; n < kBatch; ++n) {
          if (first + n >= coming) continue;
          const auto x = static_cast<std::uint32_t>(words[n].x);
          const auto y = static_cast<std::uint32_t>(words[n].y);
          const float value[4] = {__uint_as_float(x << 16), __uint_as_float(x & 0xffff0000u),
                                  __uint_as_float(y << 16), __uint_as_float(y & 0xffff0000u)};
#pragma unroll
          for (int j = 0; j < 4; ++j) sum[j] = fmaf(gate[first + n], value[j], sum[j]);
        }
      }
      reinterpret_cast<float4*>(args.out)[token * quads + q] = {sum[0], sum[1], sum[2], sum[3]};
    }
    __syncthreads();  // before the next token's answers are noted
  }
  if (threadIdx.x == 0) *calls = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = static_cast<int>(args.tokens < kMaxBlocks ? args.tokens : kMaxBlocks);
  Combine<<<blocks, kThreads, 0, stream>>>(args);
}
