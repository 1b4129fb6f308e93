#include <allranks/flags.h>
#include <cstring>

// The tile without gaps is a row of vectors of 16 bytes, a thread makes one of them at a time:
// from two aligned vectors of its row, shifted against each other, or byte by byte where a row or
// the input ends. So all stores across PCIe are whole and aligned, and what arrives is contiguous.
//
// 128 vectors are a chunk, with a flag that holds the number of the call. Blocks fill chunks, host
// threads copy chunks out, both in turn: all threads have something to do as soon as possible.
constexpr int kThreads = 128, kMaxBlocks = 32, kHosts = 16, kChunk = 16 * kThreads;

struct Landing {
  std::uint32_t call;                       // written by launch
  alignas(64) std::uint32_t flags[1 << 11];  // by chunk: the last call whose bytes are there
  __host__ __device__ std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

// 16 bytes from any address. Reads the aligned vectors in which they lie.
__device__ uint4 Load16(const std::uint8_t* at) {
  const int phase = static_cast<int>(reinterpret_cast<std::uintptr_t>(at) % 16);
  const uint4* vectors = reinterpret_cast<const uint4*>(at - phase);
  uint4 a = vectors[0], b = vectors[phase != 0];
  if (phase & 8) a = {a.z, a.w, b.x, b.y}, b = {b.z, b.w, 0, 0};
  if (phase & 4) a = {a.y, a.z, a.w, b.x}, b.x = b.y;
  const int bits = phase % 4 * 8;
  return {__funnelshift_r(a.x, a.y, bits), __funnelshift_r(a.y, a.z, bits),
          __funnelshift_r(a.z, a.w, bits), __funnelshift_r(a.w, b.x, bits)};
}

__global__ void __launch_bounds__(kThreads) Pack(Args args, std::uint32_t call) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  const unsigned width = args.width, pitch = args.left + args.width + args.right;
  const unsigned bytes = args.rows * width, size = args.rows * pitch;
  const unsigned chunks = (bytes + kChunk - 1) / kChunk;
  for (unsigned chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const unsigned vector = chunk * kThreads + threadIdx.x;
    if (vector * 16 < bytes) {
      unsigned column = vector * 16 % width;
      unsigned source = vector * 16 / width * pitch + args.left + column;
      uint4 packed;
      if (column + 16 <= args.width && source + 32 <= size) {
        packed = Load16(args.in + source);
      } else {
        std::uint32_t words[4] = {};
#pragma unroll
        for (int k = 0; k < 16; ++k) {
          if (vector * 16 + k < bytes) words[k / 4] |= args.in[source] << k % 4 * 8;
          ++source;
          if (++column < width) continue;
          column = 0;
          source += pitch - width;
        }
        packed = {words[0], words[1], words[2], words[3]};
      }
      reinterpret_cast<uint4*>(landing->data())[vector] = packed;
    }
    __syncthreads();                                                                 //@landed
    if (threadIdx.x == 0) allranks::StoreReleaseSys(&landing->flags[chunk], call);  //@publish
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  const std::uint32_t call = landing->call + 1;  //@advance
  landing->call = call;
  const int chunks = static_cast<int>((args.rows * args.width + kChunk - 1) / kChunk);
  Pack<<<chunks < kMaxBlocks ? chunks : kMaxBlocks, kThreads, 0, stream>>>(args, call);
}

extern "C" void host(const Args& args, int thread) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  const std::uint32_t call = landing->call;
  const std::int64_t bytes = args.rows * args.width;
  const std::int64_t chunks = (bytes + kChunk - 1) / kChunk;  // all
  for (std::int64_t chunk = thread; chunk < chunks; chunk += kHosts) {
    while (__atomic_load_n(&landing->flags[chunk], __ATOMIC_ACQUIRE) != call) {  //@wait
    }
    const std::int64_t at = chunk * kChunk;
    const std::int64_t count = bytes - at < kChunk ? bytes - at : kChunk;
    std::memcpy(args.out + at, landing->data() + at, count);
  }
}
