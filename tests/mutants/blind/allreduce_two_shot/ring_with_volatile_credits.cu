// expect: race|wrong_result
// A ring of reduce-scatter and all-gather with two slots between neighbours. Chunks are announced
// with release and acquire, but credits are volatile in both directions, "because they carry no
// data". They order the reading of a slot before its next filling, and volatile accesses order
// nothing: the left neighbour's stores race with this rank's reads.

constexpr int kChannels = 16, kThreads = 256, kSlots = 2;

struct Channel {
  std::uint32_t steps;    // own: steps made, of all calls
  std::uint32_t arrived;  // written by the left neighbour: chunks that are here
  std::uint32_t taken;    // written by the right neighbour: chunks that it has taken
  std::uint32_t unused;
};

__device__ std::uint32_t LoadAcquire(const std::uint32_t* flag) {
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__global__ void __launch_bounds__(kThreads) Ring(Args args) {
  const int rank = args.rank, world = args.world, c = blockIdx.x;
  const int right = (rank + 1) % world, left = (rank + world - 1) % world;
  Channel* own = reinterpret_cast<Channel*>(args.scratch) + c;
  Channel* to = reinterpret_cast<Channel*>(args.scratch_peers[right]) + c;
  Channel* from = reinterpret_cast<Channel*>(args.scratch_peers[left]) + c;
  const std::uint32_t done = own->steps;

  // This channel's part of the vector, in one chunk per rank.
  const std::int64_t part = (args.n + kChannels - 1) / kChannels;
  const std::int64_t begin = min(args.n, c * part), end = min(args.n, begin + part);
  const std::int64_t chunk = (part + world - 1) / world;
  const std::size_t slots = kChannels * sizeof(Channel) + c * kSlots * chunk * sizeof(float);
  float* mine = reinterpret_cast<float*>(args.scratch + slots);
  float* theirs = reinterpret_cast<float*>(args.scratch_peers[right] + slots);
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) args.out[i] = args.in[i];
  __syncthreads();

  for (int step = 0; step < 2 * (world - 1); ++step) {
    const std::uint32_t number = done + step;
    const int out = (rank - step + 2 * world) % world, in = (out + world - 1) % world;
    if (threadIdx.x == 0) {  // a free slot there
      volatile std::uint32_t* taken = &own->taken;
      while (static_cast<std::int32_t>(*taken - (number + 1 - kSlots)) < 0) {
      }
    }
    __syncthreads();
    std::int64_t base = begin + out * chunk, count = min(chunk, end - base);
    for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
      theirs[number % kSlots * chunk + i] = args.out[base + i];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(&to->arrived), "r"(number + 1)
                   : "memory");
      while (static_cast<std::int32_t>(LoadAcquire(&own->arrived) - (number + 1)) < 0) {
      }
    }
    __syncthreads();
    base = begin + in * chunk, count = min(chunk, end - base);
    for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
      const float value = mine[number % kSlots * chunk + i];
      args.out[base + i] = step < world - 1 ? args.out[base + i] + value : value;
    }
    __syncthreads();
    if (threadIdx.x == 0) *static_cast<volatile std::uint32_t*>(&from->taken) = number + 1;
  }
  if (threadIdx.x == 0) own->steps = done + 2 * (world - 1);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  Ring<<<kChannels, kThreads, 0, stream>>>(args);
}
