// The installed libnccl.so.2, as it is: collectives, types, operations, groups, point to point.
// Every element is compared. The ranks are the devices of one process, or, started by `exec
// --ranks`, a process each. Usage: collectives DEVICES COUNT
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "check.h"
#include "nccl_check.h"
#include "store.h"

namespace {

int g_world = 0;
int g_first = 0, g_end = 0;  // the ranks of this process
int g_device = 0;            // of the first of them; the others follow
std::vector<ncclComm_t> g_comms;
std::vector<cudaStream_t> g_streams;

void Use(int rank) { CUDA_CHECK(cudaSetDevice(g_device + rank - g_first)); }

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
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
    CUDA_CHECK(cudaMalloc(&from[r], in * sizeof(T)));
    CUDA_CHECK(cudaMalloc(&to[r], out * sizeof(T)));
    CUDA_CHECK(cudaMemset(to[r], 0xff, out * sizeof(T)));
    std::vector<T> values(in);
    for (std::size_t i = 0; i < in; ++i) values[i] = Make<T>(Input(r, i));
    CUDA_CHECK(cudaMemcpy(from[r], values.data(), in * sizeof(T), cudaMemcpyHostToDevice));
  }
  NCCL_CHECK(ncclGroupStart());
  for (int r = g_first; r < g_end; ++r) NCCL_CHECK(call(r, from[r], to[r]));
  NCCL_CHECK(ncclGroupEnd());
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
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
  if (g_first == 0) std::printf("%s ok\n", name);
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

// One all-reduce, captured on every rank and launched twice.
void Graph(std::size_t n) {
  std::vector<float*> data(g_world);
  std::vector<cudaGraphExec_t> execs(g_world);
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(Input(r, i));
    CUDA_CHECK(cudaMalloc(&data[r], n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(data[r], values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  }
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
    CUDA_CHECK(cudaStreamBeginCapture(g_streams[r], cudaStreamCaptureModeThreadLocal));
  }
  NCCL_CHECK(ncclGroupStart());
  for (int r = g_first; r < g_end; ++r)
    NCCL_CHECK(ncclAllReduce(data[r], data[r], n, ncclFloat32, ncclSum, g_comms[r], g_streams[r]));
  NCCL_CHECK(ncclGroupEnd());
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
    cudaGraph_t graph;
    CUDA_CHECK(cudaStreamEndCapture(g_streams[r], &graph));
    CUDA_CHECK(cudaGraphInstantiate(&execs[r], graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
  }
  for (int launch = 0; launch < 2; ++launch) {
    for (int r = g_first; r < g_end; ++r) {
      Use(r);
      CUDA_CHECK(cudaGraphLaunch(execs[r], g_streams[r]));
    }
  }
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    std::vector<float> values(n);
    CUDA_CHECK(cudaMemcpy(values.data(), data[r], n * sizeof(float), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < n; ++i) {
      const float wanted = Reduced(ncclSum, i) * static_cast<float>(g_world);
      REQUIRE(values[i] == wanted, "graph: rank %d, element %zu is %g, not %g", r, i, values[i],
              wanted);
    }
    CUDA_CHECK(cudaGraphExecDestroy(execs[r]));
    CUDA_CHECK(cudaFree(data[r]));
  }
  if (g_first == 0) std::puts("graph ok");
}

// The even and the odd ranks apart.
void Split(std::size_t n) {
  std::vector<ncclComm_t> halves(g_world);
  NCCL_CHECK(ncclGroupStart());
  for (int r = g_first; r < g_end; ++r)
    NCCL_CHECK(ncclCommSplit(g_comms[r], r % 2, r, &halves[r], nullptr));
  NCCL_CHECK(ncclGroupEnd());
  std::swap(g_comms, halves);
  Run<float>(
      "all-reduce of a split", n, n,
      [&](int r, const void* in, void* out) {
        return ncclAllReduce(in, out, n, ncclFloat32, ncclSum, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) {
        float sum = 0;
        for (int q = r % 2; q < g_world; q += 2) sum += static_cast<float>(Input(q, i));
        return sum;
      });
  std::swap(g_comms, halves);
  for (int r = g_first; r < g_end; ++r) NCCL_CHECK(ncclCommDestroy(halves[r]));
}

// All ranks in this process, or this process is one of them.
void Begin(int world) {
  g_world = world;
  g_comms.resize(static_cast<std::size_t>(world));
  g_streams.resize(static_cast<std::size_t>(world));
  if (std::getenv("WORLD_SIZE") == nullptr) {
    g_end = world;
    NCCL_CHECK(ncclCommInitAll(g_comms.data(), world, nullptr));
  } else {
    const int rank = FromEnvironment("RANK");
    REQUIRE(FromEnvironment("WORLD_SIZE") == world, "%d ranks are wanted", world);
    g_first = rank;
    g_end = rank + 1;
    g_device = FromEnvironment("LOCAL_RANK");
    Store store(rank, world);
    ncclUniqueId id{};
    if (rank == 0) NCCL_CHECK(ncclGetUniqueId(&id));
    id = store.AllGather(id)[0];
    Use(rank);
    NCCL_CHECK(ncclCommInitRank(&g_comms[rank], world, id, rank));
  }
  for (int r = g_first; r < g_end; ++r) {
    Use(r);
    CUDA_CHECK(cudaStreamCreate(&g_streams[r]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Begin(argc > 1 ? std::atoi(argv[1]) : 2);
  const std::size_t n = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 4100;
  const auto world = static_cast<std::size_t>(g_world);

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
  Graph(n);
  // In one process NCCL launches the halves in the order of its communicators' addresses, which are
  // not the same in every run.
  if (g_end - g_first == 1) Split(n);
  for (int r = g_first; r < g_end; ++r) NCCL_CHECK(ncclCommDestroy(g_comms[r]));
  if (g_first == 0) std::puts("done");
}
