#include <allranks/flags.h>

// A block has 32 channels of one chunk and a part of its rows. Blocks of the last part begin with
// sending the chunk's last rows to where the next chunk of the sequence lies. All convolve rows
// that need no halo, which hides the trip. Blocks of the first part then take the halo and finish.
//
// Each number travels in a word of 64 bits beside the number of the call: a word arrives whole, so
// neither flags nor fences are needed. Words exist twice, for odd and even calls. Neighbours send
// to each other in every call. A sender in call k + 2 has the neighbour's words of call k + 1, so
// the neighbour has ended call k and has read its words.

using namespace allranks;

constexpr int kThreads = 256, kSlice = 32, kMaxBlocks = 64;
constexpr int kWords = 1024;  // bytes before the words: calls by block

__global__ void __launch_bounds__(kThreads) Convolve(Args args, int slices, int parts) {
  extern __shared__ float halo[];  // [taps - 1][kSlice]: the rows before the chunk
  std::uint32_t* calls = reinterpret_cast<std::uint32_t*>(args.scratch);
  const std::uint32_t call = calls[blockIdx.x] + 1;  //@epoch
  const int chunk = blockIdx.x % 2, part = blockIdx.x / 2 / slices;
  const int first = blockIdx.x / 2 % slices * kSlice;  // channel
  const int taps = args.taps, rank = args.rank, rows = args.rows, channels = args.channels;
  const int words = (taps - 1) * channels, quads = channels / 4;
  const std::int64_t box = kWords / 8 + call % 2 * 2 * words + chunk * words;
  const int peer = chunk == 0 ? rank + 1 : rank - 1;
  const float* chunk_x = args.x + chunk * rows * channels;

  if (part == parts - 1 && peer >= 0 && peer < args.world) {  //@send
    std::uint64_t* to = reinterpret_cast<std::uint64_t*>(args.scratch_peers[peer]) + box;
    for (int i = threadIdx.x; i < (taps - 1) * kSlice; i += kThreads) {
      const int j = i / kSlice, channel = first + i % kSlice;
      if (channel >= channels) continue;
      const float value = chunk_x[(args.rows - taps + 1 + j) * channels + channel];
      const std::uint64_t word = std::uint64_t{call} << 32 | __float_as_uint(value);
      StoreRelaxedSys(&to[j * channels + channel], word);  //@put
    }
  }

  // Four channels of a row per thread.
  const int inner = rows - taps + 1, quad = first / 4 + threadIdx.x % (kSlice / 4);
  const float4* w = reinterpret_cast<const float4*>(args.w) + quad;
  const float4* x = reinterpret_cast<const float4*>(chunk_x) + quad;
  float4* y = reinterpret_cast<float4*>(args.y) + chunk * rows * quads + quad;
  const int last = taps - 1 + inner * (part + 1) / parts;
  for (int row = taps - 1 + inner * part / parts + threadIdx.x / (kSlice / 4);
       row < last && quad < quads; row += kThreads / (kSlice / 4)) {
    float4 sum = {0, 0, 0, 0};
    for (int j = 0; j < taps; ++j) {
      const float4 a = w[j * quads], b = x[(row - j) * quads];
      sum = {sum.x + a.x * b.x, sum.y + a.y * b.y, sum.z + a.z * b.z, sum.w + a.w * b.w};
    }
    y[row * quads] = sum;
  }

  if (part == 0) {
    // The chunk before chunk 1 of the last rank is its own chunk 0; before the sequence are zeros.
    const int source = chunk == 0 ? rank - 1 : rank + 1;
    const float* own = rank == args.world - 1 ? args.x + inner * channels : nullptr;
    const std::uint64_t* from = reinterpret_cast<const std::uint64_t*>(args.scratch) + box;
    for (int i = threadIdx.x; i < (taps - 1) * kSlice; i += kThreads) {
      const int j = i / kSlice, channel = first + i % kSlice;
      if (channel >= channels) continue;
      float value = 0;
      if (chunk == 1 && own != nullptr) {
        value = own[j * channels + channel];
      } else if (source >= 0) {
        std::uint64_t word;
        do {
          word = LoadRelaxedSys(&from[j * channels + channel]);  //@get
        } while (std::uint32_t(word >> 32) != call);  //@wait
        value = __uint_as_float(static_cast<std::uint32_t>(word));
      }
      halo[i] = value;
    }
    __syncthreads();  //@received
    for (int i = threadIdx.x; i < (taps - 1) * kSlice; i += kThreads) {
      const int row = i / kSlice, at = i % kSlice, channel = first + at;
      if (channel >= channels) continue;
      float sum = 0;
      for (int j = 0; j < taps; ++j) {
        const float value = j <= row ? chunk_x[(row - j) * channels + channel]
                                     : halo[(taps - 1 + row - j) * kSlice + at];
        sum += args.w[j * channels + channel] * value;
      }
      args.y[(chunk * rows + row) * channels + channel] = sum;
    }
  }
  __syncthreads();                                 //@all_done
  if (threadIdx.x == 0) calls[blockIdx.x] = call;  //@advance
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int slices = (args.channels + kSlice - 1) / kSlice;
  const int most = kMaxBlocks / 2 / slices, wanted = args.rows / 32 + 1;
  const int parts = wanted < most ? wanted : most;
  Convolve<<<2 * slices * parts, kThreads, (args.taps - 1) * kSlice * sizeof(float), stream>>>(
      args, slices, parts);
}
