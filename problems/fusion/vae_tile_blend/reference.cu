// A rank pushes the edges of its tiles, as latents, to the ranks of the tiles to the right, below,
// and below to the right; blends meanwhile what needs no neighbour; and then the rest. A block has
// a quarter of a tile, and tells the three receivers when its part of the edges is there.
//
// Edges have two sets of slots, used in turn by calls. A rank may receive nothing from whom it
// sends to, so it could be any number of calls ahead: every rank tells all others that it has
// entered a call, and edges of call k are written when all have entered call k - 1, which is after
// they have read those of call k - 2.
#include <allranks/flags.h>

using namespace allranks;

constexpr int kParts = 4, kMaxTeams = 16, kMaxSlots = 64, kThreads = 512, kEdges = 3;

// The beginning of every rank's scratch; slots of edges follow.
struct Control {
  std::uint32_t calls[kMaxTeams][kParts];            // that the block has completed
  std::uint32_t entered[kMaxRanks];                  // by rank: the last call
  std::uint32_t arrived[kMaxSlots][kEdges][kParts];  // by tile: the last call whose part is here
};

// Sizes as 32-bit integers, in which indices are computed.
struct Grid : Args {
  int rows, cols, channels, side, edge, slots;
  __device__ explicit Grid(const Args& args)
      : Args(args),
        rows(args.rows),
        cols(args.cols),
        channels(args.channels),
        side(args.side),
        edge(args.edge),
        slots((rows * cols + world - 1) / world) {}
};

struct Tile {
  int number, owner, slot, row, col;
  __device__ Tile(const Grid& args, int n)
      : number(n),
        owner(n % args.world),
        slot(n / args.world),
        row(n / args.cols),
        col(n % args.cols) {}
  __device__ bool Exists(const Grid& args) const { return number < args.rows * args.cols; }
};

// What tiles need of the one to the left (0), above (1), and above to the left (2).
struct Edge {
  int below, right, height, width, offset;
  __device__ Edge(const Grid& args, int n)
      : below(n > 0),
        right(n != 1),
        height(below ? args.edge : args.side),
        width(right ? args.edge : args.side),
        offset(n * args.channels * args.side * args.edge) {}
};

__device__ float4* SlotOf(const Grid& args, int rank, std::uint32_t call, int slot, int edge) {
  Control* control = reinterpret_cast<Control*>(args.scratch_peers[rank]);
  const int size = args.channels * args.edge * (2 * args.side + args.edge);
  return reinterpret_cast<float4*>(control + 1) +
         ((call % 2 * args.slots + slot) * size + Edge(args, edge).offset) / 4;
}

__device__ void PushEdge(const Grid& args, const Tile& from, const Tile& to, int n, int part,
                         std::uint32_t call) {
  const Edge edge(args, n);
  float4* slot = SlotOf(args, to.owner, call, to.slot, n);
  const int quads = edge.width / 4, size = args.channels * edge.height * quads;
  for (int i = part * kThreads + threadIdx.x; i < size; i += kParts * kThreads) {
    const int channel = i / quads / edge.height, y = i / quads % edge.height, x = i % quads;
    const int row = channel * args.side + args.side - edge.height + y;
    const int at =
        ((from.slot * args.channels * args.side + row) * args.side + args.side - edge.width) / 4 +
        x;
    slot[i] = reinterpret_cast<const float4*>(args.latent)[at];
  }
}

__device__ float Mix(float a, float b, float share) { return a * (1 - share) + b * share; }
__device__ float4 Mix(float4 a, float4 b, float s) {
  return {Mix(a.x, b.x, s), Mix(a.y, b.y, s), Mix(a.z, b.z, s), Mix(a.w, b.w, s)};
}

// Four latents of a tile: which neighbours they are blended with.
struct Place {
  int channel, y, quad;
  bool top, left;
};

__device__ void Blend(const Grid& args, const Tile& tile, const Place& at, std::uint32_t call) {
  const int side = args.side, edge = args.edge, quads = side / 4;
  const int row = (tile.slot * args.channels + at.channel) * side + at.y;
  const float4* left_edge = SlotOf(args, args.rank, call, tile.slot, 0);
  const float4* top_edge = SlotOf(args, args.rank, call, tile.slot, 1);
  const float4* corner = SlotOf(args, args.rank, call, tile.slot, 2);
  const float4 own = reinterpret_cast<const float4*>(args.latent)[row * quads + at.quad];
  const float4 above = at.top ? top_edge[(at.channel * edge + at.y) * quads + at.quad] : own;
  const float4 left = at.left ? left_edge[(at.channel * side + at.y) * edge / 4 + at.quad] : own;
  const float4 both =
      at.top && at.left ? corner[(at.channel * edge + at.y) * edge / 4 + at.quad] : left;
  const float unit = 0.5f / static_cast<float>(edge);
#pragma unroll
  for (int dy = 0; dy < 2; ++dy) {
    const float v = at.top ? static_cast<float>(2 * at.y + dy) * unit : 1;
    const float4 b = Mix(above, own, v), a = at.left ? Mix(both, left, v) : b;
    const float x = static_cast<float>(8 * at.quad);
    const auto h = [&](int dx) { return at.left ? (x + static_cast<float>(dx)) * unit : 1; };
    float4* out = reinterpret_cast<float4*>(args.out) + (2 * row + dy) * 2 * quads + 2 * at.quad;
    out[0] = {Mix(a.x, b.x, h(0)), Mix(a.x, b.x, h(1)), Mix(a.y, b.y, h(2)), Mix(a.y, b.y, h(3))};
    out[1] = {Mix(a.z, b.z, h(4)), Mix(a.z, b.z, h(5)), Mix(a.w, b.w, h(6)), Mix(a.w, b.w, h(7))};
  }
}

// The latents of rows [y0, y1) and columns [x0, x1) of a tile.
__device__ void BlendArea(const Grid& args, const Tile& tile, int part, int y0, int y1, int x0,
                          int x1, std::uint32_t call) {
  const int width = (x1 - x0) / 4, height = y1 - y0, size = args.channels * height * width;
  for (int i = part * kThreads + threadIdx.x; i < size; i += kParts * kThreads) {
    const int y = y0 + i / width % height, quad = x0 / 4 + i % width;
    const bool top = tile.row > 0 && y < args.edge;
    const bool left = tile.col > 0 && 4 * quad < args.edge;
    Blend(args, tile, {i / width / height, y, quad, top, left}, call);
  }
}

__global__ void __launch_bounds__(kThreads) BlendTiles(Args given) {
  const Grid args(given);
  const int team = blockIdx.x / kParts, part = blockIdx.x % kParts, teams = gridDim.x / kParts;
  const int thread = threadIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[team][part] + 1;                     //@epoch
  if (thread < args.world) WaitAcquireSys(&mine->entered[thread], call - 1);  //@credit
  __syncthreads();                                                            //@credited
  const auto neighbour = [&](const Tile& tile, int n) {
    const Edge edge(args, n);
    const bool exists = tile.row + edge.below < args.rows && tile.col + edge.right < args.cols;
    const int last = args.rows * args.cols;
    return Tile(args, exists ? tile.number + edge.below * args.cols + edge.right : last);
  };
  for (int slot = team; slot < args.slots; slot += teams) {
    const Tile tile(args, slot * args.world + args.rank);
    for (int n = 0; n < kEdges && tile.Exists(args); ++n) {
      const Tile to = neighbour(tile, n);
      if (to.Exists(args)) PushEdge(args, tile, to, n, part, call);
    }
  }
  __syncthreads();  //@pushed
  for (int slot = team; slot < args.slots && thread < kEdges; slot += teams) {
    const Tile tile(args, slot * args.world + args.rank);
    const Tile to = neighbour(tile, thread);
    if (!tile.Exists(args) || !to.Exists(args)) continue;
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[to.owner]);
    StoreReleaseSys(&peer->arrived[to.slot][thread][part], call);  //@tell
  }
  const int told = thread - 32;  // by another warp than the edges
  if (blockIdx.x == 0 && told >= 0 && told < args.world) {
    Control* peer = reinterpret_cast<Control*>(args.scratch_peers[told]);
    StoreReleaseSys(&peer->entered[args.rank], call);  //@enter
  }
  for (int pass = 0; pass < 2; ++pass) {  // first what needs no edge
    for (int slot = team; slot < args.slots; slot += teams) {
      const Tile tile(args, slot * args.world + args.rank);
      if (!tile.Exists(args)) break;
      const int bottom = tile.row + 1 < args.rows ? args.side - args.edge : args.side;
      const int right = tile.col + 1 < args.cols ? args.side - args.edge : args.side;
      const int y = tile.row > 0 ? args.edge : 0, x = tile.col > 0 ? args.edge : 0;
      if (pass == 0) {
        BlendArea(args, tile, part, y, bottom, x, right, call);
        continue;
      }
      if (thread < kEdges * kParts) {
        const int n = thread / kParts;
        const Edge edge(args, n);
        if (tile.row >= edge.below && tile.col >= edge.right) {
          WaitAcquireSys(&mine->arrived[slot][n][thread % kParts], call);  //@wait
        }
      }
      __syncthreads();  //@arrived
      BlendArea(args, tile, part, 0, y, 0, right, call);
      BlendArea(args, tile, part, y, bottom, 0, x, call);
    }
  }
  if (thread == 0) mine->calls[team][part] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t slots = (args.rows * args.cols + args.world - 1) / args.world;
  const int teams = static_cast<int>(slots < kMaxTeams ? slots : kMaxTeams);
  BlendTiles<<<teams * kParts, kThreads, 0, stream>>>(args);
}
