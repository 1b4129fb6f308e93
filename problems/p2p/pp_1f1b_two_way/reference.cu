// Thread t of every stage has the same three words, so it talks to one thread of each neighbour.
// Three words travel as a packet of 16 bytes whose last word is the number of the micro-batch,
// counted over all calls: who sees the number has the words, and no fence is needed.
//
// The packets of each direction take turns in two slots at the receiver. The receiving warp returns
// credit, the number of packets that it has read; a packet is written when the one before it in the
// same slot was read. A stage waits for room only until its neighbour has received a micro-batch
// that comes two places earlier in the same direction, which in the order of steps is always before
// anything that this neighbour needs from here: waits have no cycle.
//
// A bulk copy brings the table into shared memory, at stage 0 behind the first packet. Lookups read
// the original until it is there.
#include <allranks/flags.h>
using namespace allranks;

constexpr int kMaxBlocks = 8, kThreads = 128, kWarps = kMaxBlocks * kThreads / 32, kSlots = 2;
constexpr int kTableBytes = 4 * 32768;

struct alignas(16) Control {
  std::uint32_t batches[kWarps];    // own, by warp: of all earlier calls
  std::uint32_t credit[2][kWarps];  // by direction and warp, from the receiver: packets read
};

// One direction through a stage. What it has at its ends is null.
struct Channel {
  const uint4* inbox;
  std::uint32_t* read;  // at the sender
  uint4* outbox;
  const std::uint32_t* room;
  int stride;            // packets of a slot
  std::uint32_t credit;  // the last value of *room that was seen

  __device__ void Receive(std::uint32_t step, bool has, std::uint32_t* v) const {
    if (has) {
      const uint4* from = &inbox[step % kSlots * stride];
      std::uint32_t number;
      do {
        asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(number)
                     : "l"(from)
                     : "memory");  //@look
      } while (number != step + 1);  //@arrived
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) StoreRelaxedSys(read, step + 1);  //@consumed
  }
  __device__ void AwaitRoom(std::uint32_t step) {
    while (static_cast<std::int32_t>(credit - (step + 1 - kSlots)) < 0) {  //@room
      credit = LoadRelaxedSys(room);
    }
  }
  __device__ void Send(std::uint32_t step, const std::uint32_t* v) const {
    asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                     &outbox[step % kSlots * stride]),
                 "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(step + 1)
                 : "memory");  //@send
  }
};

__device__ Channel ChannelOf(const Args& args, int direction, int from, int to) {
  const int thread = blockIdx.x * kThreads + threadIdx.x, warp = thread / 32;
  const int stride =
      min(static_cast<int>(gridDim.x) * kThreads, (static_cast<int>(args.n) + 2) / 3);
  const auto control = [&](int rank) {
    return reinterpret_cast<Control*>(args.scratch_peers[rank]);
  };
  const auto slots = [&](int rank) {
    return reinterpret_cast<uint4*>(control(rank) + 1) + kSlots * stride * direction + thread;
  };
  const std::uint32_t* room = control(args.rank)->credit[direction] + warp;
  const bool receives = from >= 0 && from < args.world, sends = to >= 0 && to < args.world;
  return {receives ? slots(args.rank) : nullptr,
          receives ? control(from)->credit[direction] + warp : nullptr, sends ? slots(to) : nullptr,
          control(args.rank)->credit[direction] + warp, stride};
}

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

__global__ void __launch_bounds__(kThreads) Stage(Args args) {
  extern __shared__ __align__(128) std::uint32_t copy[];
  __shared__ std::uint64_t full;
  const int rank = args.rank, last = args.world - 1;
  const int thread = blockIdx.x * kThreads + threadIdx.x, threads = gridDim.x * kThreads;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Channel up = ChannelOf(args, 0, rank - 1, rank + 1);
  Channel down = ChannelOf(args, 1, rank + 1, rank - 1);
  Table table{copy, args.table, static_cast<std::uint32_t>(__cvta_generic_to_shared(&full))};
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(table.full) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (rank > 0) table.Fetch();
  }
  __syncthreads();  //@ready
  const std::int64_t n = args.n, micro = args.micro;
  const std::int64_t warm = min(micro, std::int64_t{last - rank});  //@warm
  std::uint32_t first = mine->batches[thread / 32];

  for (std::int64_t sweep = 0; sweep < n; sweep += 3 * threads, first += micro) {
    const std::int64_t at = sweep + 3 * thread, words = n - at;
    const bool has = words > 0;
    std::uint32_t w[3] = {}, y[3] = {};
    Each(words, [&](int j) { w[j] = args.weights[at + j]; });
    for (std::int64_t m = 0; m < micro + warm; ++m) {
      const std::int64_t back = m - warm;
      std::uint32_t x[3] = {}, d[3] = {}, old[3] = {};  // on their way while we wait
      if (rank == 0 && m < micro) Each(words, [&](int j) { x[j] = args.in[m * n + at + j]; });
      if (rank == last) Each(words, [&](int j) { d[j] = args.target[back * n + at + j]; });
      if (warm > 0 && back >= 0) Each(words, [&](int j) { old[j] = args.acts[back * n + at + j]; });
      up.credit = LoadRelaxedSys(up.room), down.credit = LoadRelaxedSys(down.room);
      if (m < micro) {
        if (rank > 0) up.Receive(first + m, has, x);
        if (rank < last) up.AwaitRoom(first + m);
        if (!table.ready) table.Look();
        for (int j = 0; j < 3; ++j) y[j] = table.Step(x[j], w[j]);
        if (rank < last && has) up.Send(first + m, y);
        if (rank == 0 && threadIdx.x == 0 && m == 0 && sweep == 0) table.Fetch();
        Each(words, [&](int j) { args.acts[m * n + at + j] = y[j]; });
      }
      if (back >= 0) {
        if (rank < last) down.Receive(first + back, has, d);
        if (rank > 0) down.AwaitRoom(first + back);
        if (!table.ready) table.Look();
        for (int j = 0; j < 3; ++j) {
          d[j] = table.Step(d[j] ^ (warm > 0 ? old[j] : y[j]), w[j]);
        }
        if (rank > 0 && has) down.Send(first + back, d);
        Each(words, [&](int j) { args.grads[back * n + at + j] = d[j]; });
        for (int j = 0; j < 3; ++j) w[j] += d[j];  //@update
      }
    }
    Each(words, [&](int j) { args.new_weights[at + j] = w[j]; });
  }
  while (!table.ready) table.Look();
  __syncwarp();
  if (threadIdx.x % 32 == 0) mine->batches[thread / 32] = first;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(Stage, cudaFuncAttributeMaxDynamicSharedMemorySize, kTableBytes);
  const std::int64_t needed = (args.n + 3 * kThreads - 1) / (3 * kThreads);
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Stage<<<blocks, kThreads, kTableBytes, stream>>>(args);
}
