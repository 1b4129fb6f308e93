// One graph over two devices, built node by node: fill x on both, copy the x of device 1 to device 0, add, clear the
// x of device 1 for an accumulating fill; it is launched several times into one stream.
// EXPECT 1 race: no edge from the peer copy to the adding kernel
// EXPECT 2 race: no edge from the fill on device 1 to the peer copy
// EXPECT 3 race: no edge from the fill on device 0 to the adding kernel
// EXPECT 4 race: no edge from the peer copy to the memset of its source
// EXPECT 5 none: the adding kernel depends on the memset only, which depends on the copy: edges are transitive
// EXPECT 6 none: the two inputs of the adding kernel are joined by an empty node
#include "common.h"

static const int D = 2, N = 128, LAUNCHES = 3;

static __global__ void fill(unsigned* x, unsigned* epoch, unsigned add) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] += add + i;
  if (i == 0) ++*epoch;
}

static __global__ void sum(const unsigned* x, const unsigned* y, unsigned* total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  total[i] += x[i] + y[i];
}

static cudaGraphNode_t kernel(cudaGraph_t g, void* f, void** args,
                              std::vector<cudaGraphNode_t> after) {
  cudaKernelNodeParams p = {};
  p.func = f;
  p.gridDim = dim3(2);
  p.blockDim = dim3(N / 2);
  p.kernelParams = args;
  cudaGraphNode_t node;
  CK(cudaGraphAddKernelNode(&node, g, after.data(), after.size(), &p));
  return node;
}

int main() {
  peers(D);
  unsigned *x0 = alloc<unsigned>(0, N), *x1 = alloc<unsigned>(1, N), *y = alloc<unsigned>(0, N);
  unsigned *total = alloc<unsigned>(0, N), *epoch0 = alloc<unsigned>(0, 1),
           *epoch1 = alloc<unsigned>(1, 1);
  sync_all(D);

  cudaGraph_t g;
  cudaGraphNode_t copied, cleared, joined;
  CK(cudaGraphCreate(&g, 0));
  unsigned add0 = 1, add1 = 1000;
  void* args0[] = {&x0, &epoch0, &add0};
  void* args1[] = {&x1, &epoch1, &add1};
  void* args2[] = {&x0, &y, &total};
  CK(cudaSetDevice(0));
  cudaGraphNode_t fill0 = kernel(g, reinterpret_cast<void*>(fill), args0, {});
  CK(cudaSetDevice(1));
  cudaGraphNode_t fill1 = kernel(g, reinterpret_cast<void*>(fill), args1, {});
  CK(cudaGraphAddMemcpyNode1D(&copied, g, &fill1, BUG != 2, y, x1, N * sizeof(unsigned),
                              cudaMemcpyDefault));
  cudaMemsetParams m = {};
  m.dst = x1;
  m.elementSize = 4;
  m.width = N;
  m.height = 1;
  cudaGraphNode_t before_clear[] = {fill1, copied};
  CK(cudaGraphAddMemsetNode(&cleared, g, before_clear, BUG == 4 ? 1 : 2, &m));
  CK(cudaSetDevice(0));
  std::vector<cudaGraphNode_t> inputs = {fill0, copied};
  if (BUG == 1) inputs = {fill0};
  if (BUG == 3) inputs = {copied};
  if (BUG == 5) inputs = {fill0, cleared};
  if (BUG == 6) {
    CK(cudaGraphAddEmptyNode(&joined, g, inputs.data(), inputs.size()));
    inputs = {joined};
  }
  kernel(g, reinterpret_cast<void*>(sum), args2, inputs);

  cudaGraphExec_t exec;
  cudaStream_t s;
  CK(cudaGraphInstantiate(&exec, g, 0));
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (int e = 0; e < LAUNCHES; ++e) CK(cudaGraphLaunch(exec, s));
  sync_all(D);
  long wrong = 0;
  std::vector<unsigned> v = get(0, total, N);
  for (unsigned i = 0; i < N; ++i) wrong += v[i] != (1 + 2 + 3) * (1 + i) + 3 * (1000 + i);
  wrong += get(1, epoch1, 1)[0] != LAUNCHES;
  CK(cudaGraphExecDestroy(exec));
  CK(cudaGraphDestroy(g));
  CK(cudaStreamDestroy(s));
  return finish(wrong, D);
}
