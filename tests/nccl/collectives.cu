// The installed libnccl.so.2, as it is, on the devices of one process: collectives, types,
// operations, groups, point to point. Every element is compared. Usage: collectives DEVICES COUNT
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "check.h"

#define NCCL_CHECK(call)                                                         \
  do {                                                                           \
    const ncclResult_t result = (call);                                          \
    REQUIRE(result == ncclSuccess, "%s: %s", #call, ncclGetErrorString(result)); \
  } while (0)

namespace {

int g_world = 0;
std::vector<ncclComm_t> g_comms;
std::vector<cudaStream_t> g_streams;

// Small whole numbers, so that every type holds all sums and products exactly.
int Input(int rank, std::size_t i) {
  return static_cast<int>((i * 7 + rank * 3) % 3) + (i % 5 == 0);
}

template <class T>
T Make(int value) {
  return static_cast<T>(static_cast<float>(value));
}
template <class T>
float Value(T value) {
  return static_cast<float>(value);
}

// Fills `in` of every rank, calls the collective of every rank in one group, and compares.
// `expected(rank, i)` is element i of rank's output; `in` and `out` are its sizes per rank.
template <class T>
void Run(const char* name, std::size_t in, std::size_t out,
         const std::function<ncclResult_t(int, const void*, void*)>& call,
         const std::function<float(int, std::size_t)>& expected) {
  std::vector<T*> from(g_world), to(g_world);
  for (int r = 0; r < g_world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    CUDA_CHECK(cudaMalloc(&from[r], in * sizeof(T)));
    CUDA_CHECK(cudaMalloc(&to[r], out * sizeof(T)));
    CUDA_CHECK(cudaMemset(to[r], 0xff, out * sizeof(T)));
    std::vector<T> values(in);
    for (std::size_t i = 0; i < in; ++i) values[i] = Make<T>(Input(r, i));
    CUDA_CHECK(cudaMemcpy(from[r], values.data(), in * sizeof(T), cudaMemcpyHostToDevice));
  }
  NCCL_CHECK(ncclGroupStart());
  for (int r = 0; r < g_world; ++r) NCCL_CHECK(call(r, from[r], to[r]));
  NCCL_CHECK(ncclGroupEnd());
  for (int r = 0; r < g_world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    std::vector<T> values(out);
    CUDA_CHECK(cudaMemcpy(values.data(), to[r], out * sizeof(T), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < out; ++i) {
      const float wanted = expected(r, i);
      if (wanted < 0) continue;  // not written on this rank
      REQUIRE(Value(values[i]) == wanted, "%s: rank %d, element %zu is %g, not %g", name, r, i,
              Value(values[i]), wanted);
    }
    CUDA_CHECK(cudaFree(from[r]));
    CUDA_CHECK(cudaFree(to[r]));
  }
  std::printf("%s ok\n", name);
}

float Reduced(ncclRedOp_t op, std::size_t i) {
  float result = Input(0, i);
  for (int r = 1; r < g_world; ++r) {
    const auto x = static_cast<float>(Input(r, i));
    if (op == ncclSum || op == ncclAvg) result += x;
    if (op == ncclProd) result *= x;
    if (op == ncclMin) result = x < result ? x : result;
    if (op == ncclMax) result = x > result ? x : result;
  }
  return op == ncclAvg ? result / static_cast<float>(g_world) : result;
}

template <class T>
void AllReduce(const char* name, ncclDataType_t type, ncclRedOp_t op, std::size_t n) {
  Run<T>(
      name, n, n,
      [&](int r, const void* in, void* out) {
        return ncclAllReduce(in, out, n, type, op, g_comms[r], g_streams[r]);
      },
      [&](int, std::size_t i) { return Reduced(op, i); });
}

}  // namespace

int main(int argc, char** argv) {
  g_world = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::size_t n = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 4099;
  const auto world = static_cast<std::size_t>(g_world);
  g_comms.resize(world);
  g_streams.resize(world);
  NCCL_CHECK(ncclCommInitAll(g_comms.data(), g_world, nullptr));
  for (int r = 0; r < g_world; ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    CUDA_CHECK(cudaStreamCreate(&g_streams[r]));
  }

  AllReduce<float>("all-reduce f32 sum", ncclFloat32, ncclSum, n);
  AllReduce<float>("all-reduce f32 prod", ncclFloat32, ncclProd, n);
  AllReduce<__half>("all-reduce f16 max", ncclFloat16, ncclMax, n);
  AllReduce<__nv_bfloat16>("all-reduce bf16 sum", ncclBfloat16, ncclSum, n);
  AllReduce<std::int32_t>("all-reduce i32 min", ncclInt32, ncclMin, n);
  AllReduce<std::uint8_t>("all-reduce u8 sum", ncclUint8, ncclSum, n);
  if ((g_world & (g_world - 1)) == 0)
    AllReduce<float>("all-reduce f32 avg", ncclFloat32, ncclAvg, n);
  Run<float>(
      "all-gather", n, n * world,
      [&](int r, const void* in, void* out) {
        return ncclAllGather(in, out, n, ncclFloat32, g_comms[r], g_streams[r]);
      },
      [&](int, std::size_t i) { return Input(static_cast<int>(i / n), i % n); });
  Run<float>(
      "reduce-scatter", n * world, n,
      [&](int r, const void* in, void* out) {
        return ncclReduceScatter(in, out, n, ncclFloat32, ncclSum, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return Reduced(ncclSum, static_cast<std::size_t>(r) * n + i); });
  Run<float>(
      "broadcast", n, n,
      [&](int r, const void* in, void* out) {
        return ncclBroadcast(in, out, n, ncclFloat32, 1, g_comms[r], g_streams[r]);
      },
      [&](int, std::size_t i) { return Input(1, i); });
  Run<float>(
      "reduce", n, n,
      [&](int r, const void* in, void* out) {
        return ncclReduce(in, out, n, ncclFloat32, ncclSum, 0, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return r == 0 ? Reduced(ncclSum, i) : -1; });
  Run<float>(
      "send and receive in a ring", n, n,
      [&](int r, const void* in, void* out) {
        const ncclResult_t sent =
            ncclSend(in, n, ncclFloat32, (r + 1) % g_world, g_comms[r], g_streams[r]);
        return sent != ncclSuccess ? sent
                                   : ncclRecv(out, n, ncclFloat32, (r + g_world - 1) % g_world,
                                              g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return Input((r + g_world - 1) % g_world, i); });
  Run<float>(
      "all-to-all", n * world, n * world,
      [&](int r, const void* in, void* out) {
        for (std::size_t peer = 0; peer < world; ++peer) {
          ncclResult_t result = ncclSend(static_cast<const float*>(in) + peer * n, n, ncclFloat32,
                                         static_cast<int>(peer), g_comms[r], g_streams[r]);
          if (result == ncclSuccess)
            result = ncclRecv(static_cast<float*>(out) + peer * n, n, ncclFloat32,
                              static_cast<int>(peer), g_comms[r], g_streams[r]);
          if (result != ncclSuccess) return result;
        }
        return ncclSuccess;
      },
      [&](int r, std::size_t i) {
        return Input(static_cast<int>(i / n), static_cast<std::size_t>(r) * n + i % n);
      });
  for (const ncclComm_t comm : g_comms) NCCL_CHECK(ncclCommDestroy(comm));
  std::puts("done");
}
