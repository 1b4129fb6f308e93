#include <allranks/flags.h>

// Block p deals with peer p in both directions. It sends the own camera, as words that carry the
// number of the call and so need no fence, and waits for the camera of its peer. It projects the
// own Gaussians for it, and packs those that it sees into slots at the peer, in order; the flag
// behind them has their number. Then it waits for the flags of all sources, whose numbers say where
// the Gaussians of rank p begin in the outputs, and copies those.
//
// Cameras, slots and flags exist twice, for odd and even calls. A block that writes in call k + 2
// has seen the flags of all peers for call k + 1: their kernels of call k had ended then.

using namespace allranks;

constexpr int kThreads = 512, kWarps = kThreads / 32, kBatch = 4;

// The beginning of every rank's scratch; slots of rows of `seen` follow, then those of attributes.
struct Control {
  std::uint64_t cameras[2][kMaxRanks][12];  // by peer: call, entry of its matrix
  std::uint64_t sent[2][kMaxRanks];         // by source: call, Gaussians
  std::uint32_t calls[kMaxRanks];           // that the block has completed
};

// The slots of a source at a rank.
struct Slots {
  int4* seen;
  uint4* attrs;
  __device__ Slots(const Args& args, int at, int odd, int source) {
    seen = reinterpret_cast<int4*>(args.scratch_peers[at] + sizeof(Control));
    attrs = reinterpret_cast<uint4*>(seen + 2 * args.world * args.n);
    seen += (odd * args.world + source) * args.n;
    attrs += (odd * args.world + source) * args.n * args.quads;
  }
};

// Row i of `to` is row rows[i] of `from`, or row i where `rows` is null; some loads at a time.
__device__ void CopyRows(uint4* to, const uint4* from, const int* rows, int count, int quads) {
  for (int at = threadIdx.x; at < count * quads; at += kBatch * kThreads) {
    uint4 v[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int i = at + j * kThreads;
      if (i < count * quads) v[j] = from[rows == nullptr ? i : rows[i / quads] * quads + i % quads];
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (at + j * kThreads < count * quads) to[at + j * kThreads] = v[j];
    }
  }
}

__global__ void __launch_bounds__(kThreads) Route(Args args) {
  __shared__ int c[12], of_warp[kWarps], rows[kThreads], counts[kMaxRanks];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int peer = blockIdx.x, rank = args.rank, world = args.world, n = args.n, quads = args.quads;
  Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
  const std::uint32_t call = mine->calls[peer] + 1;  //@epoch
  const int odd = call % 2, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int4* points = reinterpret_cast<const int4*>(args.points);

  int4 p = threadIdx.x < n ? points[threadIdx.x] : int4{};  // on its way while we wait
  if (threadIdx.x < 12) {
    const auto entry = static_cast<std::uint32_t>(args.camera[threadIdx.x]);
    std::uint64_t word = std::uint64_t{call} << 32 | entry;
    StoreRelaxedSys(&theirs->cameras[odd][rank][threadIdx.x], word);  //@give
    do {
      word = LoadRelaxedSys(&mine->cameras[odd][peer][threadIdx.x]);
    } while (word >> 32 != call);  //@have
    c[threadIdx.x] = static_cast<int>(word);
  }
  __syncthreads();  //@known

  const Slots to(args, peer, odd, rank);
  int sent = 0;
  for (int base = 0; base < n; base += kThreads) {
    const int i = base + threadIdx.x;
    const int u = c[0] * p.x + c[1] * p.y + c[2] * p.z + 64 * c[3];
    const int v = c[4] * p.x + c[5] * p.y + c[6] * p.z + 64 * c[7];
    const int d = c[8] * p.x + c[9] * p.y + c[10] * p.z + 64 * c[11];
    const bool goes = i < n && d > 0 && abs(u) <= d && abs(v) <= d;
    const std::uint32_t all = __ballot_sync(~0u, goes);
    if (lane == 0) of_warp[warp] = __popc(all);
    if (i + kThreads < n) p = points[i + kThreads];
    __syncthreads();  //@counted
    const int count = lane < kWarps ? of_warp[lane] : 0;
    int at = __reduce_add_sync(~0u, lane < warp ? count : 0);
    at += __popc(all & ((1u << lane) - 1));
    if (goes) {
      const int x = (u + d) * 64 / (2 * d + 1), y = (v + d) * 64 / (2 * d + 1);
      to.seen[sent + at] = make_int4(x, y, d, rank * n + i);
      rows[at] = i;
    }
    __syncthreads();  //@noted
    const int some = __reduce_add_sync(~0u, count);
    CopyRows(to.attrs + sent * quads, reinterpret_cast<const uint4*>(args.attrs), rows, some,
             quads);
    sent += some;
    __syncthreads();  //@again
  }
  if (threadIdx.x == 0) {
    StoreReleaseSys(&theirs->sent[odd][rank], std::uint64_t{call} << 32 | sent);  //@tell
  }
  if (threadIdx.x < world) {
    std::uint64_t word;
    do {
      word = LoadAcquireSys(&mine->sent[odd][threadIdx.x]);  //@look
    } while (word >> 32 != call);  //@come
    counts[threadIdx.x] = static_cast<int>(word);
  }
  __syncthreads();  //@arrived

  int start = 0;
  for (int s = 0; s < peer; ++s) start += counts[s];
  const Slots slots(args, rank, odd, peer);
  uint4* seen = reinterpret_cast<uint4*>(args.seen) + start;
  uint4* attrs = reinterpret_cast<uint4*>(args.seen_attrs) + start * quads;
  CopyRows(seen, reinterpret_cast<const uint4*>(slots.seen), nullptr, counts[peer], 1);
  CopyRows(attrs, slots.attrs, nullptr, counts[peer], quads);
  if (threadIdx.x == 0) {
    args.counts[peer] = counts[peer];
    mine->calls[peer] = call;  //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Route<<<args.world, kThreads, 0, stream>>>(args);
}
