#include <allranks/flags.h>

// Weights lie as packets of 16 bytes, each one access: three words and the number of their
// version, counted over all calls. Who sees the number has the words, so a version needs no flag,
// and a reader takes nothing that is not of the version that it works on.
//
// Half of the blocks train, half serve. A reader's block brings a row into shared memory, tells all
// trainers that the packets may be replaced (the credit), and answers from there: the next version
// is on its way meanwhile. A trainer's warp waits for one credit at a time. Credits need
// no order: one exists only if every packet has been seen, and carries nothing else.
using namespace allranks;
constexpr int kMaxBlocks = 32, kThreads = 256;  // blocks of each kind

struct Control {
  std::uint32_t done[2 * kMaxBlocks];           // own, by block: versions of earlier calls
  std::uint32_t credit[kMaxRanks][kMaxBlocks];  // by reader: versions that it has taken
};
static_assert(sizeof(Control) <= 2048);

__device__ Control* ControlAt(std::uint8_t* mapped) { return reinterpret_cast<Control*>(mapped); }
__device__ uint4* PacketsAt(std::uint8_t* mapped) {
  return reinterpret_cast<uint4*>(mapped + 2048);
}

__device__ void Send(uint4* to, uint4 packet) {
  asm volatile(
      "{ .reg .b64 low, high; .reg .b128 all;\n"
      "mov.b64 low, {%1, %2}; mov.b64 high, {%3, %4}; mov.b128 all, {low, high};\n"
      "st.relaxed.sys.global.b128 [%0], all; }" ::"l"(to),
      "r"(packet.x), "r"(packet.y), "r"(packet.z), "r"(packet.w)
      : "memory");  //@send
}

__device__ uint4 Receive(const uint4* from, std::uint32_t number) {
  uint4 packet;
  do {
    asm volatile(
        "{ .reg .b64 low, high; .reg .b128 all;\n"
        "ld.relaxed.sys.global.b128 all, [%4]; mov.b128 {low, high}, all;\n"
        "mov.b64 {%0, %1}, low; mov.b64 {%2, %3}, high; }"
        : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
        : "l"(from)
        : "memory");  //@look
  } while (packet.w != number);  //@arrived
  return packet;
}

__device__ void Train(const Args& args, int b, int blocks, std::uint32_t done) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = args.rank, world = args.world;
  const int rows = args.rows, part = args.part, packets = (part + 2) / 3;
  Control* mine = ControlAt(args.mapped);
  for (int v = 0; v < args.versions; ++v) {
    const std::uint32_t number = done + v + 1;
    for (int target = warp; target < world; target += kThreads / 32) {
      const auto load = [&](int row, int k) -> uint4 {
        const int c = 3 * k;
        if (c >= part) return {};
        const std::uint32_t* from = args.in + ((v * world + target) * rows + row) * part;
        const std::uint32_t second = c + 1 < part ? from[c + 1] : 0;
        return {from[c], second, c + 2 < part ? from[c + 2] : 0, number};
      };
      const uint4 first = load(b, lane);  // on its way while we wait
      WaitRelaxedSys(&mine->credit[target][b], number - 1);  //@room
      for (int row = b; row < rows; row += blocks) {
        uint4* to = PacketsAt(args.mapped_peers[target]) + (row * world + rank) * packets;
        for (int k = lane; k < packets; k += 32) {
          Send(to + k, row == b && k == lane ? first : load(row, k));
        }
      }
    }
  }
}

__device__ void Serve(const Args& args, int b, int blocks, std::uint32_t done) {
  extern __shared__ std::uint32_t shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, world = args.world;
  const int rows = args.rows, part = args.part, packets = (part + 2) / 3, columns = world * part;
  int turn = 0;
  for (int v = 0; v < args.versions; ++v) {
    const std::uint32_t number = done + v + 1;
    for (int row = b; row < rows; row += blocks) {  // reader
      std::uint32_t* words = shared + turn++ % 2 * columns;
      const uint4* from = PacketsAt(args.mapped) + row * world * packets;
      for (int i = threadIdx.x; i < world * packets; i += kThreads) {
        const uint4 packet = Receive(from + i, number);
        const int c = i % packets * 3;
        std::uint32_t* to = words + i / packets * part + c;
        to[0] = packet.x;
        if (c + 1 < part) to[1] = packet.y;
        if (c + 2 < part) to[2] = packet.z;
      }
      __syncthreads();  //@stash
      if (row + blocks >= rows && warp == kThreads / 32 - 1 && lane < world) {
        StoreRelaxedSys(&ControlAt(args.mapped_peers[lane])->credit[args.rank][b], number);  //@give
      }
      for (int q = warp; q < args.queries; q += kThreads / 32) {
        std::uint32_t sum = 0;
        for (int c = lane; c < columns; c += 32) sum += words[c] * args.x[q * columns + c];
        sum = __reduce_add_sync(~0u, sum);
        if (lane == 0) args.out[(v * args.queries + q) * rows + row] = sum;
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) Update(Args args) {
  std::uint32_t& done = ControlAt(args.mapped)->done[blockIdx.x];
  const std::uint32_t before = done;
  const int blocks = gridDim.x / 2;
  if (blockIdx.x < blocks) {
    Serve(args, blockIdx.x, blocks, before);
  } else {
    Train(args, blockIdx.x - blocks, blocks, before);
  }
  __syncthreads();
  if (threadIdx.x == 0) done = before + args.versions;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int blocks = args.rows < kMaxBlocks ? static_cast<int>(args.rows) : kMaxBlocks;
  const std::size_t bytes = 2 * args.world * args.part * sizeof(std::uint32_t);
  Update<<<2 * blocks, kThreads, bytes, stream>>>(args);
}
