#include <allranks/flags.h>

// Three kernels and one slot: wait until it is free, copy word by word, tell; then wait for the own
// message, copy it out, and give the slot back.
struct Box {
  std::uint32_t sent, read, length, words[1];
};
struct Case {
  const void* key;
  Box *mine, *target, *source;
  std::uint32_t calls;
};
static Case cases[256];

__global__ void Push(Args args, Case boxes) {
  const std::int64_t length = args.n - *args.fewer;
  if (threadIdx.x == 0) allranks::WaitAcquireSys(&boxes.mine->read, boxes.calls - 1);
  __syncthreads();
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < length;
       i += gridDim.x * blockDim.x) {
    boxes.target->words[i] = args.in[i];
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) boxes.target->length = length;
}

__global__ void Tell(Args args, Case boxes) {
  __threadfence_system();
  allranks::StoreReleaseSys(&boxes.target->sent, boxes.calls);
  allranks::WaitAcquireSys(&boxes.mine->sent, boxes.calls);
  *args.received = boxes.mine->length;
}

__global__ void Take(Args args, Case boxes) {
  const std::int64_t length = boxes.mine->length;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    args.out[i] = boxes.mine->words[i];
  }
  __syncthreads();
  if (threadIdx.x == 0) allranks::StoreReleaseSys(&boxes.source->read, boxes.calls);
}

extern "C" void setup(allranks::Boot& boot, const Args& args) {
  Case* mine = cases;
  while (mine->key != nullptr) ++mine;
  void *box = nullptr, *mapped = nullptr;
  cudaMalloc(&box, sizeof(Box) + 4 * args.n);
  cudaMemset(box, 0, sizeof(Box) + 4 * args.n);
  cudaDeviceSynchronize();
  cudaIpcMemHandle_t own, handles[kMaxRanks];
  cudaIpcGetMemHandle(&own, box);
  boot.AllGather(&own, handles, sizeof own);
  Box* boxes[kMaxRanks] = {};
  for (int r = 0; r < args.world; ++r) {
    if (r != args.rank) cudaIpcOpenMemHandle(&mapped, handles[r], cudaIpcMemLazyEnablePeerAccess);
    boxes[r] = static_cast<Box*>(r == args.rank ? box : mapped);
  }
  *mine = {args.in, boxes[args.rank], boxes[(args.rank + args.shift) % args.world],
           boxes[(args.rank + (args.world - 1) * args.shift) % args.world], 0};
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Case* mine = cases;
  while (mine->key != args.in) ++mine;
  ++mine->calls;
  Push<<<16, 256, 0, stream>>>(args, *mine);
  Tell<<<1, 1, 0, stream>>>(args, *mine);
  Take<<<1, 1024, 0, stream>>>(args, *mine);
}
