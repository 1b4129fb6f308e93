// Priorities: their range, what streams say about themselves, and that blocks of an urgent kernel
// go before those of one that was there first.
// unchecked: it compares modelled times, which stalls under a schedule change
#include "check.h"

namespace {

// Every thread of a block works for a while; the last block of a launch to end notes the time.
__global__ void Work(unsigned long long* end, int rounds) {
  extern __shared__ int heavy[];
  heavy[threadIdx.x] = int(threadIdx.x);
  for (int i = 0; i < rounds; ++i) {
    __syncthreads();
    const int next = heavy[(threadIdx.x + 1) % blockDim.x] + i;
    __syncthreads();
    heavy[threadIdx.x] = next;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    atomicMax(end, now);
  }
}

}  // namespace

int main() {
  int least = 1, greatest = 1;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  REQUIRE(least == 0 && greatest < least, "range %d to %d", least, greatest);
  cudaStream_t low, high, clamped;
  CUDA_CHECK(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least));
  CUDA_CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
  CUDA_CHECK(cudaStreamCreateWithPriority(&clamped, cudaStreamDefault, greatest - 100));
  int priority = 1;
  unsigned flags = 99;
  CUDA_CHECK(cudaStreamGetPriority(high, &priority));
  REQUIRE(priority == greatest, "priority %d", priority);
  CUDA_CHECK(cudaStreamGetPriority(clamped, &priority));
  REQUIRE(priority == greatest, "priority %d is clamped to the range", priority);
  CUDA_CHECK(cudaStreamGetPriority(nullptr, &priority));
  REQUIRE(priority == 0, "priority %d of the default stream", priority);
  CUDA_CHECK(cudaStreamGetFlags(low, &flags));
  REQUIRE(flags == cudaStreamNonBlocking, "flags %u", flags);
  CUDA_CHECK(cudaStreamGetFlags(clamped, &flags));
  REQUIRE(flags == cudaStreamDefault, "flags %u", flags);
  unsigned long long ids[3];
  CUDA_CHECK(cudaStreamGetId(low, &ids[0]));
  CUDA_CHECK(cudaStreamGetId(high, &ids[1]));
  CUDA_CHECK(cudaStreamGetId(nullptr, &ids[2]));
  REQUIRE(ids[0] != ids[1] && ids[1] != ids[2], "ids must differ");
  int device = -1;
  CUDA_CHECK(cudaStreamGetDevice(low, &device));
  REQUIRE(device == 0, "device %d", device);

  // One block per SM at a time: the low-priority kernel needs three rounds over the device.
  cudaDeviceProp prop;
  CUDA_CHECK(cudaGetDeviceProperties(&prop, 0));
  const int shared = int(prop.sharedMemPerBlockOptin);
  CUDA_CHECK(cudaFuncSetAttribute(Work, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  auto* ends = ZeroedOn<unsigned long long>(0, 4);
  const int sms = prop.multiProcessorCount;
  const auto race = [&](cudaStream_t second, unsigned long long* first_end,
                        unsigned long long* second_end) {
    Work<<<3 * sms, 32, shared, low>>>(first_end, 200);
    Work<<<sms / 2, 32, shared, second>>>(second_end, 50);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
    return Fetch(second_end) < Fetch(first_end);
  };
  cudaStream_t equal;
  CUDA_CHECK(cudaStreamCreateWithPriority(&equal, cudaStreamNonBlocking, least));
  REQUIRE(race(high, ends, ends + 1), "the urgent kernel has to overtake");
  REQUIRE(!race(equal, ends + 2, ends + 3), "an equal one has to wait for its turn");

  // As an attribute of a launch and of a stream.
  CUDA_CHECK(cudaMemset(ends, 0, 32));
  CUDA_CHECK(cudaDeviceSynchronize());
  cudaLaunchAttributeValue value = {};
  value.priority = greatest;
  CUDA_CHECK(cudaStreamSetAttribute(equal, cudaLaunchAttributePriority, &value));
  value.priority = 1;
  CUDA_CHECK(cudaStreamGetAttribute(equal, cudaLaunchAttributePriority, &value));
  REQUIRE(value.priority == greatest, "attribute %d", value.priority);
  REQUIRE(race(equal, ends, ends + 1), "the stream's attribute counts");
  std::printf("PASS stream_priorities\n");
  return 0;
}
