// The device heap: malloc and free by many threads, new and delete with constructors, memory that
// outlives the kernel that took it, the limit of the heap, and what happens when it is exhausted.
#include "arrays.h"

namespace {

__global__ void OwnArrays(unsigned* out, int size) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* mine = static_cast<unsigned*>(malloc(size * sizeof(unsigned)));
  if (!mine) {
    out[thread] = ~0u;
    return;
  }
  for (int i = 0; i < size; ++i) mine[i] = thread * i;
  __syncthreads();
  unsigned sum = 0;
  for (int i = 0; i < size; ++i) sum += mine[i];
  out[thread] = reinterpret_cast<unsigned long long>(mine) % 16 ? ~1u : sum;
  free(mine);
}

__device__ int* destroyed;

struct Node {
  __device__ Node(int v, Node* n) : value(v), next(n) {}
  __device__ ~Node() { atomicAdd(destroyed, 1); }
  int value;
  Node* next;
};

__global__ void BuildLists(Node** heads, int* counter) {
  if (threadIdx.x == 0) destroyed = counter;
  for (unsigned i = 0; i <= threadIdx.x; ++i)
    heads[threadIdx.x] = new Node(i, i ? heads[threadIdx.x] : nullptr);
}

__global__ void SumLists(Node* const* heads, int* sums) {
  int sum = 0;
  for (Node* node = heads[threadIdx.x]; node;) {
    Node* next = node->next;
    sum += node->value;
    delete node;
    node = next;
  }
  sums[threadIdx.x] = sum;
}

__global__ void TooMuch(int* out) {
  void* huge = malloc(1ull << 40);
  free(nullptr);
  out[0] = huge == nullptr;
}

}  // namespace

int main() {
  size_t limit = 0;
  CUDA_CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  REQUIRE(limit >= 8u << 20, "a heap of %zu bytes", limit);
  CUDA_CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));

  constexpr int kCount = 128, kSize = 100;
  unsigned* out = Unwritten<unsigned>(kCount);
  std::vector<unsigned> expected;
  for (int i = 0; i < kCount; ++i) expected.push_back(i * kSize * (kSize - 1) / 2);
  for (int round = 0; round < 5; ++round) {
    OwnArrays<<<2, kCount / 2>>>(out, kSize);
    REQUIRE_SAME(ToHost(out, kCount), expected);
  }

  Node** heads = Zeroed<Node*>(32);
  int* counter = Zeroed<int>(1);
  int* sums = Unwritten<int>(32);
  BuildLists<<<1, 32>>>(heads, counter);
  SumLists<<<1, 32>>>(heads, sums);
  std::vector<int> list_sums;
  for (int i = 0; i < 32; ++i) list_sums.push_back(i * (i + 1) / 2);
  REQUIRE_SAME(ToHost(sums, 32), list_sums);
  REQUIRE(Fetch(counter) == 32 * 33 / 2, "%d nodes were destroyed", Fetch(counter));

  int* refused = Unwritten<int>(1);
  TooMuch<<<1, 1>>>(refused);
  REQUIRE(ToHost(refused, 1)[0] == 1, "a terabyte was granted");
  std::puts("PASS device_malloc");
}
