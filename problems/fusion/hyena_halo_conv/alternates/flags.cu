#include <allranks/flags.h>

// Halo rows are stored plainly into a box at the neighbour, and a flag says that they are there. A
// block has 32 channels of both chunks, a warp one row at a time. Boxes alternate between odd and
// even calls: in call k + 1 the neighbour's flag shows that it has ended call k.

using namespace allranks;
constexpr int kMaxBlocks = 64, kThreads = 512, kSlice = 32, kBoxes = 4096;

struct Control {
  std::uint32_t calls[kMaxBlocks];
  std::uint32_t sent[kMaxBlocks][2];  // by chunk: the last call whose halo is here
};

__global__ void __launch_bounds__(kThreads) Convolve(Args args) {
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const int channel = blockIdx.x * kSlice + threadIdx.x % kSlice, lead = args.taps - 1;
  const int channels = args.channels, rows = args.rows, rank = args.rank, words = lead * channels;
  const bool used = channel < channels;
  const int box = kBoxes / 4 + call % 2 * 2 * words + channel;
  for (int i = threadIdx.x / kSlice; i < 2 * lead && used; i += kThreads / kSlice) {
    const int chunk = i / lead, row = i % lead, peer = chunk == 0 ? rank + 1 : rank - 1;
    if (peer < 0 || peer >= args.world) continue;
    float* to = reinterpret_cast<float*>(args.scratch_peers[peer]) + box;
    to[i * channels] = args.x[(chunk * rows + rows - lead + row) * channels + channel];
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    const int chunk = threadIdx.x, peer = chunk == 0 ? rank + 1 : rank - 1;
    const int source = chunk == 0 ? rank - 1 : rank + 1;
    if (peer >= 0 && peer < args.world) {
      Control* theirs = reinterpret_cast<Control*>(args.scratch_peers[peer]);
      StoreReleaseSys(&theirs->sent[blockIdx.x][chunk], call);
    }
    if (source >= 0 && source < args.world) WaitAcquireSys(&mine->sent[blockIdx.x][chunk], call);
  }
  __syncthreads();
  const float* halo = reinterpret_cast<const float*>(args.scratch) + box;
  for (int i = threadIdx.x / kSlice; i < 2 * rows && used; i += kThreads / kSlice) {
    const int chunk = i / rows, row = i % rows;
    const bool nothing = chunk == 0 && rank == 0, own = chunk == 1 && rank == args.world - 1;
    float sum = 0;
    for (int j = 0; j <= lead; ++j) {
      float value = 0;
      if (j <= row || own) {
        value = args.x[(i - j) * channels + channel];  // chunk 1 follows chunk 0
      } else if (!nothing) {
        value = halo[(chunk * lead + lead + row - j) * channels];
      }
      sum += args.w[j * channels + channel] * value;
    }
    args.y[i * channels + channel] = sum;
  }
  if (threadIdx.x == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Convolve<<<(args.channels + kSlice - 1) / kSlice, kThreads, 0, stream>>>(args);
}
