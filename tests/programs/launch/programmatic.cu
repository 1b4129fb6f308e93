// Programmatic dependent launch: the second kernel begins when every block of the first has said
// so, waits for its end where it needs the results, and what follows waits for both.
// unchecked: it compares modelled times, which stalls under a schedule change
// nvcc: -arch=sm_90
#include "check.h"

namespace {

__device__ unsigned long long Now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

constexpr unsigned long long kLong = 200000;  // ns

struct Times {
  unsigned long long first_end, second_begin, second_after_wait;
  int value, seen;
};

__global__ void First(Times* times, bool trigger) {
  if (trigger) cudaTriggerProgrammaticLaunchCompletion();
  const unsigned long long until = Now() + kLong;
  while (Now() < until) {
  }
  if (blockIdx.x == 0) times->value = 42;
  __threadfence();
  atomicMax(&times->first_end, Now());
}

__global__ void Second(Times* times) {
  if (blockIdx.x == 0) times->second_begin = Now();
  cudaGridDependencySynchronize();
  if (blockIdx.x == 0) {
    times->second_after_wait = Now();
    times->seen = *reinterpret_cast<volatile int*>(&times->value);
  }
}

__global__ void Third(const Times* times, Times* out) { *out = *times; }

template <class... Arguments>
void LaunchDependent(cudaStream_t stream, void (*kernel)(Arguments...), Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace

int main() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreate(&stream));
  for (const bool trigger : {true, false}) {
    Times* times = ZeroedOn<Times>(0, 2);
    First<<<4, 32, 0, stream>>>(times, trigger);
    LaunchDependent(stream, Second, times);
    Third<<<1, 1, 0, stream>>>(times, times + 1);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaStreamSynchronize(stream));
    const Times got = Fetch(times + 1);
    REQUIRE(got.seen == 42, "saw %d", got.seen);
    REQUIRE(got.second_after_wait >= got.first_end, "went on %lld ns before the end of the first",
            (long long)(got.first_end - got.second_after_wait));
    if (trigger) {
      REQUIRE(got.second_begin + kLong / 2 < got.first_end, "began %lld ns after the first's end",
              (long long)(got.second_begin - got.first_end));
    } else {
      REQUIRE(got.second_begin >= got.first_end, "began %lld ns before the first's end",
              (long long)(got.first_end - got.second_begin));
    }
    CUDA_CHECK(cudaFree(times));
  }

  // Captured into a graph it is an edge of its own kind, and does the same.
  Times* times = ZeroedOn<Times>(0, 2);
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  First<<<4, 32, 0, stream>>>(times, true);
  LaunchDependent(stream, Second, times);
  cudaGraph_t graph;
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  size_t edges = 1;
  cudaGraphNode_t from, to;
  cudaGraphEdgeData data;
  CUDA_CHECK(cudaGraphGetEdges(graph, &from, &to, &data, &edges));
  REQUIRE(edges == 1 && data.type == cudaGraphDependencyTypeProgrammatic &&
              data.from_port == cudaGraphKernelNodePortProgrammatic,
          "edge type %d port %d", data.type, data.from_port);
  cudaGraphExec_t exec;
  CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CUDA_CHECK(cudaGraphLaunch(exec, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  const Times got = Fetch(times);
  REQUIRE(got.seen == 42 && got.second_begin + kLong / 2 < got.first_end, "in a graph");

  // Events of a launch: when all blocks have begun, when all have triggered.
  cudaEvent_t begun, done;
  CUDA_CHECK(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeLaunchCompletionEvent;
  attribute.val.launchCompletionEvent.event = begun;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, First, times, false));
  CUDA_CHECK(cudaEventSynchronize(begun));
  CUDA_EXPECT(cudaErrorNotReady, cudaStreamQuery(stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  std::printf("PASS programmatic\n");
  return 0;
}
