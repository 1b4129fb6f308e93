#include <allranks/flags.h>
#include <allranks/tile_mma.h>

// Nobody waits for a flag behind data: lists and rows travel in words that carry the number of the
// call. Block (peer, part) has 128 threads that ask and multiply, and others that answer. Its part
// of the ids for the peer goes into a box there, after a header with the place and length of the
// list. Whoever finds an id in a box stores that row at the asking rank, at its place in the list.
// A tile's product begins when its own rows are here, whatever others are still on their way.
//
// Boxes and rows need no second copy: ids of the next call come after all rows of this one have,
// and rows come only when asked for. Headers, which also come from who wants nothing, alternate:
// whoever leaves call k + 1 has headers of all ranks, which have left call k then.

using namespace allranks;

constexpr int kParts = 4, kServers = 128, kThreads = kTileThreads + kServers;
constexpr int kLanes = 16, kTeams = kServers / kLanes;  // a team of lanes answers for one row
constexpr int kBatch = 2, kStride = kTileDepth + 8, kStepRows = kTileThreads / kLanes;
constexpr int kMine = kTileRows / kStepRows;  // packets of a piece of a tile that a thread takes

// Eight bytes of a row, or a header.
struct alignas(16) Packet { std::uint64_t word[2]; };

struct Control {
  Packet headers[2][kMaxRanks];             // by asking rank: where its list begins, its length
  std::uint32_t calls[kMaxRanks * kParts];  // that the block has completed
};

__device__ Control* ControlOf(const Args& args, int rank) {
  return reinterpret_cast<Control*>(args.scratch_peers[rank]);
}
__device__ Packet* Rows(const Args& args, int at) {
  return reinterpret_cast<Packet*>(ControlOf(args, at) + 1);
}
__device__ std::uint64_t* Box(const Args& args, int at, int from) {
  Packet* behind = Rows(args, at) + args.most * args.depth * kLanes;
  return reinterpret_cast<std::uint64_t*>(behind) + from * args.most;
}

__device__ void Send(Packet* to, std::uint32_t a, std::uint32_t b, std::uint32_t call) {
  const std::uint64_t epoch = std::uint64_t{call} << 32;
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(epoch | a),
               "l"(epoch | b)
               : "memory");  //@send
}
__device__ Packet Look(const Packet* from) {
  Packet p;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(p.word[0]), "=l"(p.word[1])
               : "l"(from)
               : "memory");  //@look
  return p;
}
__device__ bool Absent(const Packet& p, std::uint32_t call) {
  return p.word[0] >> 32 != call || p.word[1] >> 32 != call;
}

// This rank's list for a peer.
struct List {
  int begin = 0, count = 0, total = 0;  // total: of the whole list
  __device__ List(const Args& args, int peer) {
    int n[kMaxRanks];
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) n[r] = r < args.world ? args.counts[r] : 0;
#pragma unroll
    for (int r = 0; r < kMaxRanks; ++r) {
      if (r < peer) begin += n[r];  //@begin
      if (r == peer) count = n[r];
      total += n[r];
    }
  }
};

// Asks the peer for this block's part of the rows.
__device__ void Ask(const Args& args, const List& list, int peer, int part, std::uint32_t call) {
  if (part == 0 && threadIdx.x == 0) {
    Packet* header = &ControlOf(args, peer)->headers[call % 2][args.rank];
    Send(header, list.begin, list.count, call);  //@head
  }
  std::uint64_t* box = Box(args, peer, args.rank);
  for (int i = part * kTileThreads + threadIdx.x; i < list.count; i += kParts * kTileThreads) {
    const std::uint32_t id = args.ids[list.begin + i];
    StoreRelaxedSys(&box[i], std::uint64_t{call} << 32 | id);  //@ask
  }
}

__device__ void Answer(const Args& args, int peer, int part, std::uint32_t call) {
  const int server = threadIdx.x - kTileThreads, lane = server % kLanes, depth = args.depth;
  const std::uint64_t* box = Box(args, args.rank, peer);
  const uint2* features = reinterpret_cast<const uint2*>(args.features);
  Packet header = {};
  if (threadIdx.x % 32 == 0) {
    do {
      header = Look(&ControlOf(args, args.rank)->headers[call % 2][peer]);
    } while (Absent(header, call));
  }
  const int begin = __shfl_sync(~0u, static_cast<int>(header.word[0]), 0);
  const int count = __shfl_sync(~0u, static_cast<int>(header.word[1]), 0);
  Packet* rows = Rows(args, peer) + begin * depth * kLanes + lane;
  constexpr int kStep = kTeams * kParts;
  for (int i = part * kTeams + server / kLanes; i < count; i += kBatch * kStep) {
    std::uint64_t id[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) id[b] = LoadRelaxedSys(&box[min(i + b * kStep, count - 1)]);
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
      while (id[b] >> 32 != call) {  //@asked
        id[b] = LoadRelaxedSys(&box[min(i + b * kStep, count - 1)]);
      }
    }
    for (int d = 0; d < depth; ++d) {
      uint2 v[kBatch];
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        v[b] = features[(static_cast<int>(id[b]) * depth + d) * kLanes + lane];
      }
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int entry = i + b * kStep;
        if (entry < count) Send(&rows[(entry * depth + d) * kLanes], v[b].x, v[b].y, call);
      }
    }
  }
}

__device__ void Multiply(const Args& args, int total, std::uint32_t call) {
  __shared__ TileStage stage;
  __shared__ alignas(16) std::uint16_t a[kTileRows * kStride];  // and the tile, in the end
  TileProduct product(stage);
  const int t = threadIdx.x, lane = t % kLanes, row = t / kLanes;
  const int cols = args.cols, depth = args.depth;
  const int tiles = (total + kTileRows - 1) / kTileRows * cols;
  for (int n = blockIdx.x; n < tiles; n += gridDim.x) {
    const int col = n % cols, first = n / cols * kTileRows, left = total - first;
    const Packet* from = Rows(args, args.rank) + (first + row) * depth * kLanes + lane;
    Packet v[kMine];
    const auto fetch = [&](int d) {
#pragma unroll
      for (int j = 0; j < kMine; ++j) {
        if (row + j * kStepRows < left) v[j] = Look(&from[(j * kStepRows * depth + d) * kLanes]);
      }
    };
    const std::uint16_t* w = reinterpret_cast<const std::uint16_t*>(args.w);
    w += col * kTileCols * depth * kTileDepth;
    product.Clear();
    // One lane of each row looks for the others until the first packet is here.
    while (lane == 0 && row < left && Absent(Look(from), call)) {
    }
    __syncwarp();
    fetch(0);
    for (int d = 0; d < depth; ++d) {
      for (bool all = false; !all;) {
        all = true;
#pragma unroll
        for (int j = 0; j < kMine; ++j) {
          if (row + j * kStepRows >= left || !Absent(v[j], call)) continue;
          v[j] = Look(&from[(j * kStepRows * depth + d) * kLanes]);
          all = false;
        }
      }
#pragma unroll
      for (int j = 0; j < kMine; ++j) {
        uint2 two = {0, 0};
        if (row + j * kStepRows < left) {
          two = {static_cast<unsigned>(v[j].word[0]), static_cast<unsigned>(v[j].word[1])};
        }
        *reinterpret_cast<uint2*>(&a[(row + j * kStepRows) * kStride + lane * 4]) = two;
      }
      TileProduct::Meet();  //@gathered
      if (d + 1 < depth) fetch(d + 1);
      product.Add(a, kStride, w + d * kTileDepth, depth * kTileDepth, kTileDepth);
    }
    float* tile = reinterpret_cast<float*>(a);
    product.Store(tile, kTileCols);
    TileProduct::Meet();  //@stored
    for (int i = t; i < min(left, kTileRows) * 8; i += kTileThreads) {
      float* out = args.out + ((first + i / 8) * cols + col) * kTileCols;
      reinterpret_cast<float4*>(out)[i % 8] = reinterpret_cast<const float4*>(tile)[i];
    }
    TileProduct::Meet();
  }
}

__global__ void __launch_bounds__(kThreads) FetchProject(Args args) {
  std::uint32_t* calls = ControlOf(args, args.rank)->calls;
  const int peer = blockIdx.x / kParts, part = blockIdx.x % kParts;
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  __syncthreads();                                   //@entered
  if (threadIdx.x < kTileThreads) {
    const List list(args, peer);
    Ask(args, list, peer, part, call);
    Multiply(args, list.total, call);
    if (threadIdx.x == 0) calls[blockIdx.x] = call;
  } else {
    Answer(args, peer, part, call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  FetchProject<<<args.world * kParts, kThreads, 0, stream>>>(args);
}
