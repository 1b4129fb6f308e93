// A cooperative launch that iterates: red-black relaxation of a rod with grid.sync between the
// colours, all in one kernel; a launch that cannot be resident at once is refused.
//
// finds: api_error
#include <cooperative_groups.h>

#include "arrays.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kCells = 1000;

__host__ __device__ long long Relax(const long long* cells, int i) {
  return (cells[i - 1] + cells[i + 1]) / 2;
}

__global__ void Iterate(long long* cells, int rounds, unsigned* wrong) {
  cg::grid_group grid = cg::this_grid();
  if (!grid.is_valid() || grid.size() != gridDim.x * blockDim.x) atomicAdd(wrong, 1);
  if (grid.thread_rank() != blockIdx.x * blockDim.x + threadIdx.x) atomicAdd(wrong, 1);
  for (int round = 0; round < rounds; ++round) {
    for (int colour = 0; colour < 2; ++colour) {
      for (int i = 1 + static_cast<int>(grid.thread_rank()); i < kCells - 1;
           i += static_cast<int>(grid.size())) {
        if (i % 2 == colour) cells[i] = Relax(cells, i);
      }
      grid.sync();
    }
  }
}

}  // namespace

int main() {
  constexpr int kRounds = 25;
  std::vector<long long> cells(kCells, 0);
  cells[0] = 1 << 30;
  cells[kCells / 2] = -(1 << 29);
  long long* device_cells = ToDevice(cells);
  for (int round = 0; round < kRounds; ++round) {
    for (int colour = 0; colour < 2; ++colour) {
      for (int i = 1; i < kCells - 1; ++i) {
        if (i % 2 == colour) cells[i] = Relax(cells.data(), i);
      }
    }
  }
  unsigned* wrong = Zeroed<unsigned>(1);
  int rounds = kRounds;
  void* arguments[] = {&device_cells, &rounds, &wrong};
  CUDA_CHECK(cudaLaunchCooperativeKernel(Iterate, dim3(9), dim3(64), arguments, 0, nullptr));
  REQUIRE_SAME(ToHost(device_cells, kCells), cells);
  REQUIRE(Fetch(wrong) == 0, "%u threads saw a wrong grid", Fetch(wrong));

  int per_sm = 0, sms = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, Iterate, 1024, 0));
  CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  REQUIRE(per_sm >= 1 && per_sm <= 2, "%d blocks of 1024 threads per SM", per_sm);
  CUDA_EXPECT(cudaErrorCooperativeLaunchTooLarge,
              cudaLaunchCooperativeKernel(Iterate, dim3(per_sm * sms + 1), dim3(1024), arguments, 0,
                                          nullptr));
  cudaGetLastError();
  std::puts("PASS grid_iterations");
}
