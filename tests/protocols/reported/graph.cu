// A captured graph over two devices: forked by an event, joined by an event, launched three times.
// EXPECT 1 race: fork: the second branch does not depend on the kernel whose output it reads (explicit nodes, an edge missing)
// EXPECT 2 race: memcpy node does not depend on the kernel that fills its source
// EXPECT 3 race: two launches share a buffer with a kernel in another stream
#include "common.h"
constexpr int N = 2048, L = 3;
__global__ void Add(int* p, const int* q, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) p[i] = q[i] + k;
}
int main() {
  peers(2);
  int *a = alloc<int>(0, N), *b = alloc<int>(0, N), *c = alloc<int>(1, N), *d = alloc<int>(1, N),
      *e = alloc<int>(1, N);
  sync_all(2);
  CK(cudaSetDevice(0));
  cudaGraph_t g;
  CK(cudaGraphCreate(&g, 0));
  cudaGraphNode_t n1, n2, n3, n4;
  auto kernel = [&](cudaGraphNode_t* n, std::vector<cudaGraphNode_t> deps, int dev, int* p,
                    const int* q, int k) {
    CK(cudaSetDevice(dev));
    void* args[] = {&p, &q, &k};
    cudaKernelNodeParams kp{};
    kp.func = (void*)Add;
    kp.gridDim = N / 256;
    kp.blockDim = 256;
    kp.kernelParams = args;
    CK(cudaGraphAddKernelNode(n, g, deps.data(), deps.size(), &kp));
  };
  kernel(&n1, {}, 0, b, a, 1);  // b = a + 1
  std::vector<cudaGraphNode_t> dep = {n1};
  if (BUG == 2) dep.clear();
  CK(cudaGraphAddMemcpyNode1D(&n2, g, dep.data(), dep.size(), c, b, N * sizeof(int),
                              cudaMemcpyDefault));  // c = b
  kernel(&n3, BUG == 1 ? std::vector<cudaGraphNode_t>{n1} : std::vector<cudaGraphNode_t>{n2}, 1, d,
         c, 1);                   // d = c + 1
  kernel(&n4, {n3}, 0, a, d, 1);  // a = d + 1, by peer access
  CK(cudaSetDevice(0));
  cudaGraphExec_t x;
  CK(cudaGraphInstantiate(&x, g, 0));
  cudaStream_t s, t;
  CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  cudaEvent_t ev;
  CK(cudaEventCreate(&ev));
  for (int l = 0; l < L; ++l) {
    CK(cudaGraphLaunch(x, s));
    CK(cudaEventRecord(ev, s));
    if (BUG != 3) CK(cudaStreamWaitEvent(t, ev, 0));
    Add<<<N / 256, 256, 0, t>>>(e, d, 0);
    CK(cudaEventRecord(ev, t));
    CK(cudaStreamWaitEvent(s, ev, 0));
  }
  sync_all(2);
  long wrong = 0;
  auto v = get(0, a, N);
  for (int i = 0; i < N; ++i) wrong += v[i] != 3 * L;
  auto w = get(1, e, N);
  for (int i = 0; i < N; ++i) wrong += w[i] != 3 * L - 1;
  CK(cudaSetDevice(0));
  CK(cudaGraphExecDestroy(x));
  CK(cudaGraphDestroy(g));
  CK(cudaEventDestroy(ev));
  CK(cudaStreamDestroy(s));
  CK(cudaStreamDestroy(t));
  return finish(wrong, 2);
}
