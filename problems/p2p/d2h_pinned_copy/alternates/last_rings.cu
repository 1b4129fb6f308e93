#include <allranks/flags.h>
#include <cstring>

// All blocks work on the front of the message at the same time, in words: eight pieces of 1 KiB,
// each by another block, are a chunk. Counters on the device tell which block has come last; it
// rings for the chunk. So blocks do not wait for PCIe more often than needed, and the host gets
// large pieces in order.
constexpr int kThreads = 256, kMaxBlocks = 32, kHosts = 16, kPieces = 8, kPiece = 4 * kThreads;
constexpr int kChunk = kPieces * kPiece;

struct Landing {
  std::uint32_t call;
  std::uint32_t flags[1023];  // by chunk
  __host__ __device__ std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

__global__ void __launch_bounds__(kThreads) Copy(Args args, std::uint32_t call) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  auto* done = reinterpret_cast<std::uint32_t*>(args.scratch);  // pieces of a chunk, of all calls
  const unsigned width = args.width, pitch = args.left + args.width + args.right;
  const unsigned bytes = args.rows * width, pieces = (bytes + kPiece - 1) / kPiece;
  for (unsigned piece = blockIdx.x; piece < pieces; piece += gridDim.x) {
    const unsigned first = piece * kPiece + 4 * threadIdx.x;
    if (first < bytes) {
      const unsigned row = first / width, column = first % width;
      const std::uint8_t* from = args.in + row * pitch + args.left + column;
      const unsigned phase = reinterpret_cast<std::uintptr_t>(from) % 4;
      std::uint32_t word = 0;
      if (column + 8 <= width) {
        const auto* words = reinterpret_cast<const std::uint32_t*>(from - phase);
        word = __funnelshift_r(words[0], words[phase != 0], 8 * phase);
      } else {
        for (unsigned k = 0; k < 4 && first + k < bytes; ++k) {
          const unsigned r = (first + k) / width, c = (first + k) % width;
          word |= std::uint32_t{args.in[r * pitch + args.left + c]} << 8 * k;
        }
      }
      reinterpret_cast<std::uint32_t*>(landing->data())[first / 4] = word;
    }
    __syncthreads();
    if (threadIdx.x > 0) continue;
    const unsigned chunk = piece / kPieces, all = min(pieces - chunk * kPieces, kPieces + 0u);
    const std::uint32_t before = allranks::FetchAddAcqRelSys(&done[chunk], 1u);
    if (before + 1 == call * all) allranks::StoreReleaseSys(&landing->flags[chunk], call);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t pieces = (args.rows * args.width + kPiece - 1) / kPiece;
  const int blocks = pieces < kMaxBlocks ? static_cast<int>(pieces) : kMaxBlocks;
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  Copy<<<blocks, kThreads, 0, stream>>>(args, ++landing->call);
}

extern "C" void host(const Args& args, int thread) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  const std::uint32_t call = landing->call;
  const std::int64_t bytes = args.rows * args.width;
  for (std::int64_t at = std::int64_t{thread} * kChunk; at < bytes; at += kHosts * kChunk) {
    while (__atomic_load_n(&landing->flags[at / kChunk], __ATOMIC_ACQUIRE) != call) {
    }
    std::memcpy(args.out + at, landing->data() + at, bytes - at < kChunk ? bytes - at : kChunk);
  }
}
