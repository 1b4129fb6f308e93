// malloc, free, new and delete in kernels: a list built by one kernel and taken apart by another,
// exhaustion, reuse, limits, and objects with virtual destructors.
//
// finds: api_error
// faults: a double free in a kernel
#include <cstdint>

#include "check.h"

namespace {

struct Node {
  int value;
  Node* next;
};

__device__ int destroyed;

struct Base {
  __device__ virtual ~Base() { atomicAdd(&destroyed, 1); }
  __device__ virtual int Value() const { return 1; }
};
struct Derived : Base {
  explicit __device__ Derived(int v) : value(v) {}
  __device__ ~Derived() override { atomicAdd(&destroyed, 100); }
  __device__ int Value() const override { return value; }
  int value;
};

__global__ void Build(Node** heads, int length) {
  Node* head = nullptr;
  for (int i = 0; i < length; ++i) {
    auto* node = static_cast<Node*>(malloc(sizeof(Node)));
    if (node == nullptr) return;
    node->value = static_cast<int>(threadIdx.x) * 1000 + i;
    node->next = head;
    head = node;
  }
  heads[threadIdx.x] = head;
}

__global__ void Sum(Node** heads, int* sums) {
  int sum = 0;
  for (Node* node = heads[threadIdx.x]; node != nullptr;) {
    Node* next = node->next;
    sum += node->value;
    free(node);
    node = next;
  }
  sums[threadIdx.x] = sum;
}

__global__ void Exhaust(size_t bytes, int* got) {
  void* pieces[64];
  int n = 0;
  while (n < 64 && (pieces[n] = malloc(bytes)) != nullptr) ++n;
  *got = n;
  for (int i = 0; i < n; ++i) free(pieces[i]);
}

__global__ void Objects(int* out) {
  Base* base = threadIdx.x % 2 == 0 ? new Base : new Derived(static_cast<int>(threadIdx.x));
  out[threadIdx.x] = base->Value();
  delete base;
  int* array = new int[100];
  for (int i = 0; i < 100; ++i) array[i] = i;
  out[threadIdx.x] += array[99];
  delete[] array;
}

__global__ void FreeTwice() {
  void* p = malloc(16);
  free(p);
  free(p);
}

}  // namespace

int main() {
  size_t limit = 0;
  CUDA_CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  REQUIRE(limit == 8u << 20, "default heap of %zu bytes", limit);

  constexpr int kThreads = 64, kLength = 20;
  Node** heads = nullptr;
  int* out = nullptr;
  CUDA_CHECK(cudaMalloc(&heads, kThreads * sizeof(Node*)));
  CUDA_CHECK(cudaMalloc(&out, kThreads * sizeof(int)));
  CUDA_CHECK(cudaMemset(heads, 0, kThreads * sizeof(Node*)));
  int host[kThreads];
  for (int round = 0; round < 2; ++round) {
    Build<<<1, kThreads>>>(heads, kLength);
    Sum<<<1, kThreads>>>(heads, out);
    CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int t = 0; t < kThreads; ++t)
      REQUIRE(host[t] == t * 1000 * kLength + kLength * (kLength - 1) / 2, "thread %d: %d", t,
              host[t]);
  }

  // Something of the heap goes to its own keeping, so not all of 8 pieces of 1 MB need fit.
  for (int round = 0; round < 2; ++round) {
    Exhaust<<<1, 1>>>(1u << 20, out);
    CUDA_CHECK(cudaMemcpy(host, out, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(host[0] >= 4 && host[0] <= 8, "%d pieces of 1 MB in a heap of 8 MB", host[0]);
  }

  Objects<<<1, kThreads>>>(out);
  CUDA_CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (int t = 0; t < kThreads; ++t)
    REQUIRE(host[t] == (t % 2 == 0 ? 1 : t) + 99, "object of thread %d: %d", t, host[t]);
  int count = 0;
  CUDA_CHECK(cudaMemcpyFromSymbol(&count, destroyed, sizeof count));
  REQUIRE(count == kThreads + kThreads / 2 * 100, "%d destroyed", count);

  FreeTwice<<<1, 1>>>();
  REQUIRE(cudaDeviceSynchronize() != cudaSuccess, "a double free went unnoticed");
  CUDA_CHECK(cudaDeviceReset());

  CUDA_CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32u << 20));
  CUDA_CHECK(cudaMalloc(&out, sizeof(int)));
  Exhaust<<<1, 1>>>(1u << 20, out);
  CUDA_CHECK(cudaMemcpy(host, out, sizeof(int), cudaMemcpyDeviceToHost));
  REQUIRE(host[0] >= 24 && host[0] <= 32, "%d pieces of 1 MB in a heap of 32 MB", host[0]);
  return 0;
}
