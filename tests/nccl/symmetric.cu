// Symmetric windows: buffers of ncclMemAlloc that all ranks register as windows. NCCL then has
// other kernels, which load and store the memory of all ranks; --stats names them.
// Usage: symmetric DEVICES COUNT
#include "ranks.h"

namespace {

struct Window {
  char* data = nullptr;
  ncclWindow_t handle = nullptr;
};

std::vector<Window> Register(std::size_t bytes) {
  std::vector<Window> windows(g_world);
  Each([&](int r) {
    void* data = nullptr;
    NCCL_CHECK(ncclMemAlloc(&data, bytes));
    windows[r].data = static_cast<char*>(data);
  });
  Group([&](int r) {
    return ncclCommWindowRegister(g_comms[r], windows[r].data, bytes, &windows[r].handle,
                                  NCCL_WIN_COLL_SYMMETRIC);
  });
  Each([&](int r) { REQUIRE(windows[r].handle != nullptr, "rank %d has no window", r); });
  return windows;
}

void Deregister(const std::vector<Window>& windows) {
  Each([&](int r) {
    NCCL_CHECK(ncclCommWindowDeregister(g_comms[r], windows[r].handle));
    NCCL_CHECK(ncclMemFree(windows[r].data));
  });
}

}  // namespace

int main(int argc, char** argv) {
  Begin(static_cast<int>(Argument(argc, argv, 1, 2)));
  const auto n = static_cast<std::size_t>(Argument(argc, argv, 2, 1024));
  const std::size_t bytes = n * g_world * sizeof(float);
  const auto in = Register(bytes), out = Register(bytes);
  std::vector<int> taken(g_world);  // Run() takes the input first
  g_allocate = [&](int r, std::size_t) { return (taken[r]++ % 2 == 0 ? in : out)[r].data; };
  g_free = [](int, void*) {};

  AllReduce<float>("all-reduce sum f32", ncclFloat32, ncclSum, n);
  AllReduce<__half>("all-reduce sum f16", ncclFloat16, ncclSum, n);
  AllReduce<__nv_bfloat16>("all-reduce sum bf16", ncclBfloat16, ncclSum, n);
  AllReduce<float>("all-reduce max f32", ncclFloat32, ncclMax, n);  // no symmetric kernel
  AllGather(n);
  ReduceScatter(n);
  AllToAll(n);
  Synchronize();
  Deregister(in);
  Deregister(out);
  End();
}
