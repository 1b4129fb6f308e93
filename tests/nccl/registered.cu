// Registered buffers: memory of ncclMemAlloc and of cudaMalloc that each rank registers for itself.
// NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=REG prints what it makes of them. Memory of cudaMalloc is
// first: where the first call through NVLS has buffers that NCCL can bind, and a later one has not,
// NCCL 2.28.9 returns wrong sums (docs/nccl.md), which `wrong` shows. Usage: registered DEVICES
// COUNT [wrong]
#include <cstring>

#include "ranks.h"

namespace {

struct Buffer {
  void* data = nullptr;
  void* handle = nullptr;
};

void All(const char* memory, std::size_t n) {
  const std::size_t bytes = n * g_world * sizeof(float);
  const bool of_nccl = memory[0] == 'n';
  std::vector<Buffer> in(g_world), out(g_world);
  for (auto* buffers : {&in, &out})
    Each([&](int r) {
      Buffer& buffer = (*buffers)[r];
      if (of_nccl)
        NCCL_CHECK(ncclMemAlloc(&buffer.data, bytes));
      else
        CUDA_CHECK(cudaMalloc(&buffer.data, bytes));
      NCCL_CHECK(ncclCommRegister(g_comms[r], buffer.data, bytes, &buffer.handle));
    });
  std::vector<int> taken(g_world);  // Run() takes the input first
  g_allocate = [&](int r, std::size_t) { return (taken[r]++ % 2 == 0 ? in : out)[r].data; };
  g_free = [](int, void*) {};

  Say(std::string("memory of ") + memory);
  AllReduce<float>("all-reduce sum f32", ncclFloat32, ncclSum, n);
  AllReduce<__nv_bfloat16>("all-reduce sum bf16", ncclBfloat16, ncclSum, n);
  AllGather(n);
  ReduceScatter(n);
  AllToAll(n);
  for (auto* buffers : {&in, &out})
    Each([&](int r) {
      Buffer& buffer = (*buffers)[r];
      NCCL_CHECK(ncclCommDeregister(g_comms[r], buffer.handle));
      if (of_nccl)
        NCCL_CHECK(ncclMemFree(buffer.data));
      else
        CUDA_CHECK(cudaFree(buffer.data));
    });
}

}  // namespace

int main(int argc, char** argv) {
  Begin(static_cast<int>(Argument(argc, argv, 1, 2)));
  const auto n = static_cast<std::size_t>(Argument(argc, argv, 2, 1024));
  const bool wrong = argc > 3 && std::strcmp(argv[3], "wrong") == 0;
  if (!wrong) All("cudaMalloc", n);
  All("ncclMemAlloc", n);
  if (wrong) All("cudaMalloc", n);
  End();
}
