#include <allranks/flags.h>
#include <cstring>

// Byte by byte, one flag for everything, and one host thread that takes it.
struct Landing {
  std::uint32_t call, flag;
  std::uint8_t data[1];
};

__global__ void Copy(Args args, std::uint32_t call) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  auto* done = reinterpret_cast<std::uint32_t*>(args.scratch);  // blocks, of all calls
  const std::int64_t pitch = args.left + args.width + args.right, bytes = args.rows * args.width;
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < bytes;
       i += gridDim.x * blockDim.x) {
    landing->data[i] = args.in[i / args.width * pitch + args.left + i % args.width];
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x > 0) return;
  const std::uint32_t before = allranks::FetchAddAcqRelGpu(done, 1u);
  if (before % gridDim.x == gridDim.x - 1) allranks::StoreReleaseSys(&landing->flag, call);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  Copy<<<16, 256, 0, stream>>>(args, ++landing->call);
}

extern "C" void host(const Args& args, int thread) {
  if (thread > 0) return;
  Landing* landing = reinterpret_cast<Landing*>(args.landing);
  while (__atomic_load_n(&landing->flag, __ATOMIC_ACQUIRE) != landing->call) {
  }
  std::memcpy(args.out, landing->data, args.rows * args.width);
}
