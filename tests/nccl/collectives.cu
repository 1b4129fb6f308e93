// The installed libnccl.so.2, as it is: every collective, types and operations, point to point.
// Every element is compared. Usage: collectives DEVICES COUNT [few]
//   few: one of each kind, for runs of many processes
#include <cstring>

#include "ranks.h"

namespace {

bool PowerOfTwo() { return (g_world & (g_world - 1)) == 0; }

// Products of more than four ranks are not exact in every type, averages of floats for powers of
// two only; those of integers are rounded down.
template <class T>
void Operations(const std::string& type_name, ncclDataType_t type, bool products, std::size_t n) {
  AllReduce<T>(("all-reduce sum " + type_name).c_str(), type, ncclSum, n);
  if (products) AllReduce<T>(("all-reduce prod " + type_name).c_str(), type, ncclProd, n);
  AllReduce<T>(("all-reduce min " + type_name).c_str(), type, ncclMin, n);
  AllReduce<T>(("all-reduce max " + type_name).c_str(), type, ncclMax, n);
}

template <class T>
void Average(const char* name, ncclDataType_t type, bool whole, std::size_t n) {
  Run<T>(
      name, n, n,
      [&](int r, const void* in, void* out) {
        return ncclAllReduce(in, out, n, type, ncclAvg, g_comms[r], g_streams[r]);
      },
      [&](int, std::size_t i) {
        const float mean = Reduced(ncclAvg, i);
        return whole ? static_cast<float>(static_cast<int>(mean)) : mean;
      });
}

// Each rank has its own factor, once given by value and once in the memory of its device.
void Scaled(std::size_t n) {
  for (const bool on_device : {false, true}) {
    std::vector<ncclRedOp_t> ops(g_world);
    std::vector<float*> factors(g_world);
    Each([&](int r) {
      float factor = static_cast<float>(r + 1);
      CUDA_CHECK(cudaMalloc(&factors[r], sizeof factor));
      Upload(factors[r], &factor, 1);
      NCCL_CHECK(ncclRedOpCreatePreMulSum(&ops[r], on_device ? factors[r] : &factor, ncclFloat32,
                                          on_device ? ncclScalarDevice : ncclScalarHostImmediate,
                                          g_comms[r]));
    });
    Run<float>(
        on_device ? "all-reduce, factors on devices" : "all-reduce, factors by value", n, n,
        [&](int r, const void* in, void* out) {
          return ncclAllReduce(in, out, n, ncclFloat32, ops[r], g_comms[r], g_streams[r]);
        },
        [&](int, std::size_t i) {
          int sum = 0;
          for (int r = 0; r < g_world; ++r) sum += (r + 1) * Input(r, i);
          return sum;
        });
    Each([&](int r) {
      NCCL_CHECK(ncclRedOpDestroy(ops[r], g_comms[r]));
      CUDA_CHECK(cudaFree(factors[r]));
    });
  }
}

void Types(std::size_t n) {
  Operations<float>("f32", ncclFloat32, true, n);
  Operations<__half>("f16", ncclFloat16, g_world <= 4, n);
  Operations<__nv_bfloat16>("bf16", ncclBfloat16, g_world <= 4, n);
  Operations<std::int32_t>("i32", ncclInt32, true, n);
  Operations<std::uint8_t>("u8", ncclUint8, g_world <= 4, n);
  if (PowerOfTwo()) {
    Average<float>("all-reduce avg f32", ncclFloat32, false, n);
    Average<__half>("all-reduce avg f16", ncclFloat16, false, n);
    Average<__nv_bfloat16>("all-reduce avg bf16", ncclBfloat16, false, n);
  }
  Average<std::int32_t>("all-reduce avg i32", ncclInt32, true, n);
  Average<std::uint8_t>("all-reduce avg u8", ncclUint8, true, n);
  AllReduce<double>("all-reduce sum f64", ncclFloat64, ncclSum, n);
  AllReduce<std::int64_t>("all-reduce sum i64", ncclInt64, ncclSum, n);
  // Four significant bits hold sums of five ranks.
  const ncclRedOp_t fp8 = g_world <= 5 ? ncclSum : ncclMax;
  AllReduce<__nv_fp8_e4m3>("all-reduce e4m3", ncclFloat8e4m3, fp8, n);
  AllReduce<__nv_fp8_e5m2>("all-reduce e5m2", ncclFloat8e5m2, ncclMax, n);
  Scaled(n);
}

void Rooted(std::size_t n) {
  const int root = g_world - 1;
  Run<float>(
      "broadcast", n, n,
      [&](int r, const void* in, void* out) {
        return ncclBroadcast(in, out, n, ncclFloat32, root, g_comms[r], g_streams[r]);
      },
      [&](int, std::size_t i) { return Input(root, i); });
  Run<float>(
      "reduce", n, n,
      [&](int r, const void* in, void* out) {
        return ncclReduce(in, out, n, ncclFloat32, ncclSum, root, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return r == root ? Reduced(ncclSum, i) : -1; });
  Run<float>(
      "gather", n, n * g_world,
      [&](int r, const void* in, void* out) {
        return ncclGather(in, out, n, ncclFloat32, root, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return r == root ? Input(static_cast<int>(i / n), i % n) : -1; });
  Run<float>(
      "scatter", n * g_world, n,
      [&](int r, const void* in, void* out) {
        return ncclScatter(in, out, n, ncclFloat32, root, g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return Input(root, static_cast<std::size_t>(r) * n + i); });
}

void Ring(std::size_t n) {
  const int world = g_world;
  Run<float>(
      "send and receive in a ring", n, n,
      [&](int r, const void* in, void* out) {
        const ncclResult_t sent =
            ncclSend(in, n, ncclFloat32, (r + 1) % world, g_comms[r], g_streams[r]);
        return sent != ncclSuccess ? sent
                                   : ncclRecv(out, n, ncclFloat32, (r + world - 1) % world,
                                              g_comms[r], g_streams[r]);
      },
      [&](int r, std::size_t i) { return Input((r + world - 1) % world, i); });
}

// As programs wrote it before there was ncclAlltoAll.
void AllToAllOfSends(std::size_t n) {
  const int world = g_world;
  Run<float>(
      "all-to-all of sends", n * world, n * world,
      [&](int r, const void* in, void* out) {
        for (int peer = 0; peer < world; ++peer) {
          ncclResult_t result = ncclSend(static_cast<const float*>(in) + peer * n, n, ncclFloat32,
                                         peer, g_comms[r], g_streams[r]);
          if (result == ncclSuccess)
            result = ncclRecv(static_cast<float*>(out) + peer * n, n, ncclFloat32, peer, g_comms[r],
                              g_streams[r]);
          if (result != ncclSuccess) return result;
        }
        return ncclSuccess;
      },
      [&](int r, std::size_t i) {
        return Input(static_cast<int>(i / n), static_cast<std::size_t>(r) * n + i % n);
      });
}

}  // namespace

int main(int argc, char** argv) {
  const bool few = argc > 3 && std::strcmp(argv[3], "few") == 0;
  Begin(static_cast<int>(Argument(argc, argv, 1, 2)));
  const auto n = static_cast<std::size_t>(Argument(argc, argv, 2, 4104));
  AllReduce<float>("all-reduce", ncclFloat32, ncclSum, n);
  AllGather(n);
  ReduceScatter(n);
  Ring(n);
  if (!few) {
    Types(n);
    Rooted(n);
    AllToAll(n);
    AllToAllOfSends(n);
  }
  End();
}
