#include "problem.h"

// >>> edit
// The host counts the calls: it is alive in this window. Two inboxes in turn; the receiver tells the
// sender which calls it has read.
static std::uint32_t call_of_host;
static std::uint32_t first_call;
static const void* inbox_of_case;  // every case has its own memory, and counts anew

struct Head {
  std::uint32_t sent, read;
};

__device__ void Publish(std::uint32_t* flag, std::uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ void WaitFor(const std::uint32_t* flag, std::uint32_t value) {
  std::uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (static_cast<std::int32_t>(seen - value) < 0);
}

__global__ void Push(Args args, std::uint32_t call, std::uint32_t first) {
  const int next = (args.rank + 1) % args.world, last = (args.rank + args.world - 1) % args.world;
  Head* mine = reinterpret_cast<Head*>(args.inbox);
  Head* theirs = reinterpret_cast<Head*>(args.inbox_peers[next]);
  const std::int64_t slot = 256 + (call & 1) * args.n * 4;
  if (threadIdx.x == 0 && call >= first + 2) WaitFor(&mine->read, call - 2);
  __syncthreads();
  auto* to = reinterpret_cast<std::uint32_t*>(args.inbox_peers[next] + slot);
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) to[i] = args.in[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    Publish(&theirs->sent, call);
    WaitFor(&mine->sent, call);
  }
  __syncthreads();
  auto* from = reinterpret_cast<const std::uint32_t*>(args.inbox + slot);
  for (std::int64_t i = threadIdx.x; i < args.n; i += blockDim.x) args.out[i] = from[i];
  __syncthreads();
  if (threadIdx.x == 0) Publish(&reinterpret_cast<Head*>(args.inbox_peers[last])->read, call);
}

extern "C" void setup(allranks::Boot& boot, const Args&) {
  // The ranks agree on the number of the first call: the largest that any proposes.
  std::uint32_t mine = 10 + boot.rank(), all[kMaxRanks] = {};
  boot.AllGather(&mine, all, sizeof mine);
  first_call = 0;
  for (int rank = 0; rank < boot.world(); ++rank)
    if (all[rank] > first_call) first_call = all[rank];
  boot.Barrier();
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  if (args.inbox != inbox_of_case) call_of_host = first_call;
  inbox_of_case = args.inbox;
  Push<<<1, 128, 0, stream>>>(args, call_of_host++, first_call);
}
// <<< edit
