// Host calls that nothing orders, for sites_test.sh: the lines that findings have to name are marked.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

constexpr int kCount = 4096;

__global__ void Fill(int* to, int value) {
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) to[i] = value;
}

template <class T>
T* Device(std::size_t count) {
  T* made = nullptr;
  cudaMalloc(&made, count * sizeof(T));  // allocated
  return made;
}

__attribute__((noinline)) void Send(int* to, const int* from, cudaStream_t stream) {
  cudaMemcpyAsync(to, from, kCount * sizeof(int), cudaMemcpyDefault, stream);  // copied
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  int* a = Device<int>(kCount);
  int* b = Device<int>(kCount);
  int* pinned = nullptr;
  cudaMallocHost(&pinned, kCount * sizeof(int));  // pinned
  std::memset(pinned, 0, kCount * sizeof(int));
  cudaStream_t s, t;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
  Fill<<<1, 128, 0, s>>>(a, 1);
  Fill<<<1, 128, 0, s>>>(b, 1);
  cudaStreamSynchronize(s);
  int got = 0;
  if (mode == "copy") {
    Fill<<<1, 128, 0, s>>>(a, 2);  // launched
    Send(b, a, t);                 // sent
  } else if (mode == "memset") {
    Fill<<<1, 128, 0, s>>>(a, 2);
    cudaMemsetAsync(a, 0, kCount * sizeof(int), t);  // cleared
  } else if (mode == "host") {
    Send(pinned, a, s);
    got = pinned[kCount - 1];  // read
  } else if (mode == "graph") {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
    cudaEvent_t fork, join;
    cudaEventCreate(&fork);
    cudaEventCreate(&join);
    cudaEventRecord(fork, s);
    cudaStreamWaitEvent(t, fork, 0);
    Fill<<<1, 128, 0, s>>>(a, 3);
    cudaMemcpyAsync(b, a, 64, cudaMemcpyDefault, t);  // captured
    cudaEventRecord(join, t);
    cudaStreamWaitEvent(s, join, 0);
    cudaStreamEndCapture(s, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphLaunch(executable, s);
    cudaStreamSynchronize(s);
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  } else if (mode == "free") {
    cudaFreeAsync(a, s);           // freed
    Fill<<<1, 128, 0, s>>>(a, 4);  // used
    a = nullptr;
  }
  const cudaError_t last = cudaDeviceSynchronize();
  std::printf("%d %s\n", got, cudaGetErrorName(last));
  return 0;
}
