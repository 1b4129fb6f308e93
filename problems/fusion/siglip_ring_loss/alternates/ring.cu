// Texts go around: in step s a rank has those of rank - s, passes them on to the next rank and
// compares them with its own images. A block has four images and passes on four texts, with a flag
// behind them; it waits for those of all blocks. A slot per step, and two sets of them, used in
// turn: when a rank has ended call k + 1, texts of the next rank have gone around to it, so that
// the next rank has left call k.
#include <allranks/flags.h>

constexpr int kImages = 4, kThreads = 128, kWords = 16;
constexpr float kScale = 1.0f / 32768;

struct Control {
  std::uint32_t calls[64], here[kMaxRanks][64];  // here: by step and block
};

__global__ void __launch_bounds__(kThreads) Ring(Args args) {
  __shared__ float coefficients[kImages][kThreads / kImages], losses[kThreads];
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  const int next = (args.rank + 1) % args.world, n = static_cast<int>(args.n);
  const int thread = threadIdx.x, first = blockIdx.x * kImages, rows = kThreads / kImages;
  const std::uint32_t call = mine->calls[blockIdx.x] + 1;
  const auto slot = [&](int rank, int step) {
    return reinterpret_cast<int*>(args.scratch_peers[rank] + sizeof(Control)) +
           (call % 2 * kMaxRanks + step) * n * kWords;
  };
  const auto* image = reinterpret_cast<const int*>(args.image);
  const int m = thread % kImages, mine_of = min(first + m, n - 1);
  float loss = 0, grads[2] = {0, 0};  // images thread / 64 and thread / 64 + 2, column thread % 64
  for (int step = 0; step < args.world; ++step) {
    const int source = (args.rank + args.world - step) % args.world;
    const auto* text = reinterpret_cast<const int*>(args.text);
    if (step > 0) {
      text = slot(args.rank, step);
      if (thread < gridDim.x) allranks::WaitAcquireSys(&mine->here[step][thread], call);
      __syncthreads();
    }
    if (step + 1 < args.world) {
      const int word = first * kWords + thread;
      if (word < n * kWords && thread < kImages * kWords) slot(next, step + 1)[word] = text[word];
      __syncthreads();
      Control* peer = reinterpret_cast<Control*>(args.scratch_peers[next]);
      if (thread == 0) allranks::StoreReleaseSys(&peer->here[step + 1][blockIdx.x], call);
    }
    for (int base = 0; base < n; base += rows) {
      const int j = base + thread / kImages;
      int dot = 0;
      for (int i = 0; j < n && i < kWords; ++i) {
        dot = __dp4a(image[mine_of * kWords + i], text[j * kWords + i], dot);
      }
      const float sign = source == args.rank && j == first + m ? 1 : -1;
      const float y = -sign * (dot * kScale - 2);
      if (j < n) loss += logf(1 + expf(y));
      coefficients[m][thread / kImages] = j < n ? -sign / (1 + expf(-y)) * kScale : 0;
      __syncthreads();
      for (int i = 0; i < min(rows, n - base); ++i) {
        const float x = reinterpret_cast<const std::int8_t*>(text)[(base + i) * 64 + thread % 64];
        grads[0] += coefficients[thread / 64][i] * x;
        grads[1] += coefficients[thread / 64 + 2][i] * x;
      }
      __syncthreads();
    }
  }
  losses[thread] = loss;
  __syncthreads();
  for (int i = thread + kImages; thread < kImages && i < kThreads; i += kImages) loss += losses[i];
  if (thread < kImages && first + m < n) args.loss[first + m] = loss;
  for (int i = 0; i < 2; ++i) {
    const int row = first + thread / 64 + 2 * i;
    if (row < n) args.grad[row * 64 + thread % 64] = grads[i];
  }
  if (thread == 0) mine->calls[blockIdx.x] = call;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Ring<<<(args.n + kImages - 1) / kImages, kThreads, 0, stream>>>(args);
}
