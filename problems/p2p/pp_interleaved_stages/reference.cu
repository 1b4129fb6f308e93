// Micro-batches are dealt out to kLanes lanes of blocks, which work side by side and do not know of
// each other. Thread t of a lane has the same three words on every rank, so it talks to one thread
// of each neighbour. Three words travel as a packet of 16 bytes whose last word is the number of
// the packet, counted over all calls: who sees the number has the words, and no fence is needed. A
// thread has one place for packets at the receiver. The receiving warp returns credit, the number
// of packets that it has read; a packet is written when all before it were read.
//
// All ranks take the micro-batches of a lane in groups, each group through one round after the
// other, so packets need no label. Rank 0 reads nothing before it has sent a whole group for the
// first round: a group must fit into the places of all ranks, or the ring would be full and
// everybody wait for room.
//
// A bulk copy brings the table into shared memory, at rank 0 behind the first packet. Lookups read
// the original until it is there.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kLanes = 8, kMaxBlocks = 8, kThreads = 32;  // of a lane
constexpr int kWarps = kLanes * kMaxBlocks * kThreads / 32;
constexpr int kTableBytes = 4 * 32768;

struct alignas(16) Control {
  std::uint32_t sent[kWarps];      // own, by warp: packets of all earlier calls
  std::uint32_t received[kWarps];  // the same
  std::uint32_t credit[kWarps];    // by warp, from the next rank: packets read
};

// From the rank before and to the next one.
struct Channel {
  const uint4* inbox;
  std::uint32_t* read;  // at the sender
  uint4* outbox;
  const std::uint32_t* room;
  std::uint32_t credit = 0;  // the last value of *room that was seen

  __device__ void Receive(std::uint32_t step, bool has, std::uint32_t* v) const {
    if (has) {
      std::uint32_t number;
      do {
        asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(number)
                     : "l"(inbox)
                     : "memory");  //@look
      } while (number != step + 1);  //@arrived
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) StoreRelaxedSys(read, step + 1);  //@consumed
  }
  __device__ void AwaitRoom(std::uint32_t step) {
    while (static_cast<std::int32_t>(credit - step) < 0) {  //@room
      credit = LoadRelaxedSys(room);
    }
  }
  __device__ void Send(std::uint32_t step, const std::uint32_t* v) const {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(outbox), "r"(v[0]),
                 "r"(v[1]), "r"(v[2]), "r"(step + 1)
                 : "memory");  //@send
  }
};

// The table, once it is in shared memory.
struct Table {
  const std::uint32_t *here, *original;
  std::uint32_t full;  // mbarrier
  bool ready = false;

  __device__ void Fetch() const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full),
                 "r"(kTableBytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(here))),
        "l"(original), "r"(kTableBytes), "r"(full)
        : "memory");
  }
  __device__ void Look() {
    std::uint32_t done;
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(full)
        : "memory");
    ready = done != 0;
  }
  __device__ std::uint32_t Step(std::uint32_t v, std::uint32_t w) const {
    const std::uint32_t t = (v + w) * 0x9E3779B1u;
    return t ^ (ready ? here : original)[t >> 17];
  }
};

// Calls f(j) for the words that this thread has.
template <class F>
__device__ void Each(std::int64_t words, F f) {
  if (words > 0) f(0);
  if (words > 1) f(1);
  if (words > 2) f(2);
}

__global__ void __launch_bounds__(kThreads) Stages(Args args) {
  extern __shared__ __align__(128) std::uint32_t copy[];
  __shared__ std::uint64_t full;
  const int rank = args.rank, last = args.world - 1;
  const int thread = blockIdx.x * kThreads + threadIdx.x, threads = gridDim.x * kThreads;
  const int warp = (blockIdx.y * threads + thread) / 32, micro = args.micro, rounds = args.rounds;
  const std::int64_t n = args.n;
  Table table{copy, args.table, static_cast<std::uint32_t>(__cvta_generic_to_shared(&full))};
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(table.full) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (rank > 0) table.Fetch();
  }
  bool fetched = rank > 0;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* before = reinterpret_cast<Control*>(args.scratch_peers[rank > 0 ? rank - 1 : last]);
  Control* next = reinterpret_cast<Control*>(args.scratch_peers[rank < last ? rank + 1 : 0]);
  const int place = blockIdx.y * min(threads, static_cast<int>(n + 2) / 3) + thread;
  Channel ring{reinterpret_cast<uint4*>(mine + 1) + place, before->credit + warp,
               reinterpret_cast<uint4*>(next + 1) + place, mine->credit + warp};
  std::uint32_t sent = mine->sent[warp], received = mine->received[warp];
  __syncthreads();  //@ready

  const auto step = [&](std::int64_t at, int round, int m) {
    const std::int64_t words = n - at;
    const bool comes = rank > 0 || round > 0, goes = rank < last || round + 1 < rounds;
    std::uint32_t w[3] = {}, x[3] = {};  // on their way while we wait
    Each(words, [&](int j) { w[j] = args.weights[round * n + at + j]; });
    if (!comes) Each(words, [&](int j) { x[j] = args.in[m * n + at + j]; });
    ring.credit = LoadRelaxedSys(ring.room);
    if (comes) ring.Receive(received++, words > 0, x);
    if (goes) ring.AwaitRoom(sent);
    if (!table.ready) table.Look();
    for (int j = 0; j < 3; ++j) x[j] = table.Step(x[j], w[j]);
    if (goes && words > 0) ring.Send(sent, x);
    sent += goes;
    Each(words, [&](int j) { args.acts[(round * micro + m) * n + at + j] = x[j]; });
  };
  const int group = kLanes * args.world, first_of_lane = blockIdx.y;
  for (std::int64_t sweep = 0; sweep < n; sweep += 3 * threads) {
    for (int first = first_of_lane; first < micro; first += group) {
      for (int round = 0; round < rounds; ++round) {
        for (int m = first; m < min(first + group, micro); m += kLanes) {
          step(sweep + 3 * thread, round, m);
          if (threadIdx.x == 0 && !fetched) table.Fetch();
          fetched = true;
        }
      }
    }
  }
  while (!table.ready) table.Look();
  __syncwarp();
  if (threadIdx.x % 32 == 0) {
    mine->sent[warp] = sent;          //@sent
    mine->received[warp] = received;  //@received
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(Stages, cudaFuncAttributeMaxDynamicSharedMemorySize, kTableBytes);
  const std::int64_t needed = (args.n + 3 * kThreads - 1) / (3 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  const int lanes = args.micro < kLanes ? args.micro : kLanes;
  Stages<<<dim3(blocks, lanes), kThreads, kTableBytes, stream>>>(args);
}
