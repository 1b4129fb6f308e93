// nccl_device.h: kernels of the user with a device communicator. An all-gather stores through the
// pointers of all ranks (LSA), an all-reduce uses multicast; both are between two LSA barriers.
// Usage: device DEVICES COUNT
#include <nccl_device.h>

#include "ranks.h"

namespace {

constexpr int kBlocks = 4, kThreads = 128;

// Each rank stores its `n` elements at its place in the window of every rank.
__global__ void Gather(ncclDevComm comm, ncclWindow_t from, ncclWindow_t to, std::size_t n) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  barrier.sync(ncclCoopCta(), cuda::memory_order_relaxed);
  const auto* own = static_cast<const float*>(ncclGetLocalPointer(from, 0));
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float value = own[i];
    for (int peer = 0; peer < comm.lsaSize; ++peer)
      static_cast<float*>(ncclGetLsaPointer(to, 0, peer))[comm.lsaRank * n + i] = value;
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

// Each rank reduces its share of the elements and stores the sums on all ranks at once.
__global__ void Reduce(ncclDevComm comm, ncclWindow_t from, ncclWindow_t to, std::size_t n) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x,
                                             true);
  barrier.sync(ncclCoopCta(), cuda::memory_order_relaxed);
  const auto* in = static_cast<const float*>(ncclGetLsaMultimemPointer(from, 0, comm));
  auto* out = static_cast<float*>(ncclGetLsaMultimemPointer(to, 0, comm));
  const std::size_t thread = (comm.lsaRank * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::size_t i = thread; i < n; i += comm.lsaSize * gridDim.x * blockDim.x) {
    float sum;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];"
                 : "=f"(sum)
                 : "l"(in + i)
                 : "memory");
    asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" ::"l"(out + i), "f"(sum)
                 : "memory");
  }
  // NCCL's own kernels end with a release alone, so that a copy behind them is not ordered by PTX.
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

struct Rank {
  ncclDevComm comm{};
  float *in = nullptr, *out = nullptr;
  ncclWindow_t from = nullptr, to = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Begin(static_cast<int>(Argument(argc, argv, 1, 2)));
  const auto n = static_cast<std::size_t>(Argument(argc, argv, 2, 1024));
  const std::size_t bytes = n * g_world * sizeof(float);
  std::vector<Rank> ranks(g_world);
  Each([&](int r) {
    void *in = nullptr, *out = nullptr;
    NCCL_CHECK(ncclMemAlloc(&in, bytes));
    NCCL_CHECK(ncclMemAlloc(&out, bytes));
    ranks[r].in = static_cast<float*>(in);
    ranks[r].out = static_cast<float*>(out);
    Upload(ranks[r].in, Inputs<float>(r, n).data(), n);
  });
  for (const bool input : {true, false})
    Group([&](int r) {
      Rank& rank = ranks[r];
      return ncclCommWindowRegister(g_comms[r], input ? rank.in : rank.out, bytes,
                                    input ? &rank.from : &rank.to, NCCL_WIN_COLL_SYMMETRIC);
    });
  ncclDevCommRequirements requirements{};
  requirements.lsaBarrierCount = kBlocks;
  requirements.lsaMultimem = true;
  Group([&](int r) { return ncclDevCommCreate(g_comms[r], &requirements, &ranks[r].comm); });
  Each([&](int r) {
    REQUIRE(ranks[r].comm.lsaSize == g_world && ranks[r].comm.lsaRank == r, "rank %d is %d of %d",
            r, ranks[r].comm.lsaRank, ranks[r].comm.lsaSize);
  });

  Each([&](int r) {
    Gather<<<kBlocks, kThreads, 0, g_streams[r]>>>(ranks[r].comm, ranks[r].from, ranks[r].to, n);
    CUDA_CHECK_LAUNCH();
  });
  Each([&](int r) {
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    Compare<float>("all-gather", r, ranks[r].out, n * g_world, [&](std::size_t i) {
      return static_cast<float>(Input(static_cast<int>(i / n), i % n));
    });
  });
  Say("all-gather by LSA pointers ok");
  Each([&](int r) {
    Reduce<<<kBlocks, kThreads, 0, g_streams[r]>>>(ranks[r].comm, ranks[r].from, ranks[r].to, n);
    CUDA_CHECK_LAUNCH();
  });
  Each([&](int r) {
    CUDA_CHECK(cudaStreamSynchronize(g_streams[r]));
    Compare<float>("all-reduce", r, ranks[r].out, n,
                   [](std::size_t i) { return Reduced(ncclSum, i); });
  });
  Say("all-reduce by multicast ok");
  Each([&](int r) {
    NCCL_CHECK(ncclDevCommDestroy(g_comms[r], &ranks[r].comm));
    NCCL_CHECK(ncclCommWindowDeregister(g_comms[r], ranks[r].from));
    NCCL_CHECK(ncclCommWindowDeregister(g_comms[r], ranks[r].to));
    NCCL_CHECK(ncclMemFree(ranks[r].in));
    NCCL_CHECK(ncclMemFree(ranks[r].out));
  });
  End();
}
