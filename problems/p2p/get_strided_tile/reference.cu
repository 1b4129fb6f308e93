#include <allranks/flags.h>

// Every thread reads vectors of 16 bytes that are aligned in the owner's memory, four of them
// before it uses the first, and stores those of their words that belong to the tile one by one:
// unaligned stores to own memory are cheap, requests over the link are not.
//
// A rank's `in` is open once the rank has told its reader so; it leaves the call after the reader
// has told it that all was read. Block b of a rank deals with block b of its neighbours only.
using namespace allranks;

constexpr int kMaxBlocks = 64, kThreads = 512, kInFlight = 4;

struct Control {
  std::uint32_t calls[kMaxBlocks];  // own: that this block has completed
  std::uint32_t open[kMaxBlocks];   // by the owner of the tile: the last call that it has entered
  std::uint32_t done[kMaxBlocks];   // by the reader: the last call of which it has read everything
};

// Words at to at + 3 of a matrix of `count` words, of which the last vector may have fewer.
__device__ uint4 Load(const std::uint32_t* in, int at, int count) {
  if (at + 4 <= count) return *reinterpret_cast<const uint4*>(in + at);
  return {in[at], at + 1 < count ? in[at + 1] : 0, at + 2 < count ? in[at + 2] : 0, 0};
}

__global__ void __launch_bounds__(kThreads) Get(Args args) {
  const int next = (args.rank + 1) % args.world, block = blockIdx.x;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* owner = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* reader =
      reinterpret_cast<Control*>(args.scratch_peers[(args.rank + args.world - 1) % args.world]);
  const std::uint32_t call = mine->calls[block] + 1;
  if (threadIdx.x == 0) {
    StoreReleaseSys(&reader->open[block], call);  //@open
    WaitAcquireSys(&mine->open[block], call);     //@see_open
  }
  __syncthreads();  //@after_open

  const int rows = args.rows, pitch = args.pitch, width = args.width;
  const std::uint32_t* in = args.in_peers[next];
  // Vectors that a row of the tile touches at most; the first begins up to three words before it.
  const int per_row = (width + 6) / 4, items = rows * per_row;
  const int stride = gridDim.x * kThreads;
  for (int first = block * kThreads + threadIdx.x; first < items; first += kInFlight * stride) {
    uint4 words[kInFlight];
    int places[kInFlight], columns[kInFlight];  // of a vector's first word: in `out`, in the tile
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const int item = first + i * stride, row = item / per_row, k = item % per_row;
      const int start = row * pitch + static_cast<int>(args.column);
      columns[i] = 4 * k - (start & 3);
      places[i] = row * width + columns[i];
      if (item >= items) columns[i] = width;
      if (columns[i] < width) words[i] = Load(in, start + columns[i], rows * pitch);
    }
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      const std::uint32_t word[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const int column = columns[i] + w;
        if (column >= 0 && column < width) args.out[places[i] + w] = word[w];
      }
    }
  }

  __syncthreads();  //@before_done
  if (threadIdx.x == 0) {
    StoreReleaseSys(&owner->done[block], call);  //@done
    WaitAcquireSys(&mine->done[block], call);    //@see_done
    mine->calls[block] = call;                   //@advance
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int items = args.rows * ((args.width + 6) / 4);
  const int needed = (items + kThreads - 1) / kThreads;
  const int blocks = needed < kMaxBlocks ? needed : kMaxBlocks;
  Get<<<blocks, kThreads, 0, stream>>>(args);
}
