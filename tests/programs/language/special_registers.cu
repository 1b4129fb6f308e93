// What a thread can ask the machine: %laneid and the lane masks, %nwarpid, %smid below %nsmid,
// %gridid of two launches, clocks that only grow, %globaltimer across a nanosleep, and the sizes of
// shared memory.
#include "arrays.h"

namespace {

// Readers of one special register each.
#define SPECIAL(function, type, constraint, move, name)                   \
  __device__ type function() {                                            \
    type value;                                                           \
    asm volatile("mov." move " %0, %%" name ";" : "=" constraint(value)); \
    return value;                                                         \
  }
#define SPECIAL32(function, name) SPECIAL(function, unsigned, "r", "u32", name)
#define SPECIAL64(function, name) SPECIAL(function, unsigned long long, "l", "u64", name)
SPECIAL32(LaneId, "laneid")
SPECIAL32(LaneEq, "lanemask_eq")
SPECIAL32(LaneLt, "lanemask_lt")
SPECIAL32(LaneLe, "lanemask_le")
SPECIAL32(LaneGt, "lanemask_gt")
SPECIAL32(LaneGe, "lanemask_ge")
SPECIAL32(WarpId, "warpid")
SPECIAL32(NWarpId, "nwarpid")
SPECIAL32(SmId, "smid")
SPECIAL32(NSmId, "nsmid")
SPECIAL32(Dynamic, "dynamic_smem_size")
SPECIAL32(Total, "total_smem_size")
SPECIAL64(GridId, "gridid")
SPECIAL64(Timer, "globaltimer")

__global__ void Ask(unsigned* wrong, unsigned* per_sm, unsigned long long* grid, unsigned dynamic) {
  extern __shared__ unsigned memory[];
  const unsigned lane = threadIdx.x % 32, bit = 1u << lane;
  if (LaneId() != lane || LaneEq() != bit || LaneLt() != bit - 1) atomicOr(wrong, 1);
  if (LaneLe() != (bit | (bit - 1)) || LaneGt() != ~(bit | (bit - 1)) || LaneGe() != ~(bit - 1))
    atomicOr(wrong, 2);
  if (WarpId() >= NWarpId() || NWarpId() < blockDim.x / 32) atomicOr(wrong, 4);
  if (SmId() >= NSmId()) atomicOr(wrong, 8);
  if (Dynamic() != dynamic || Total() < dynamic) atomicOr(wrong, 16);
  if (threadIdx.x == 0) atomicAdd(&per_sm[SmId()], 1);
  if (blockIdx.x == 0 && threadIdx.x == 0) *grid = GridId();
  memory[threadIdx.x] = lane;

  const long long start = clock64();
  const unsigned long long before = Timer();
  __nanosleep(100000);
  const unsigned long long after = Timer();
  if (clock64() <= start) atomicOr(wrong, 32);
  // nanosleep takes between 0 and twice the time; 1 ms is far beyond that.
  if (after < before || after - before > 1000000) atomicOr(wrong, 64);
}

}  // namespace

int main() {
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  const int sms = properties.multiProcessorCount;
  unsigned* wrong = Zeroed<unsigned>(1);
  unsigned* per_sm = Zeroed<unsigned>(sms);
  unsigned long long* grids = Zeroed<unsigned long long>(2);
  Ask<<<2 * sms, 64, 1000>>>(wrong, per_sm, grids, 1000);
  Ask<<<1, 1024, 4096>>>(wrong, per_sm, grids + 1, 4096);
  CUDA_CHECK(cudaDeviceSynchronize());
  REQUIRE(Fetch(wrong) == 0, "wrong: 0x%x", Fetch(wrong));
  REQUIRE(Fetch(grids) != Fetch(grids + 1), "two launches have the same %%gridid");
  unsigned blocks = 0, used = 0;
  for (const unsigned count : ToHost(per_sm, sms)) blocks += count, used += count > 0;
  REQUIRE(blocks == 2u * sms + 1, "%u blocks", blocks);
  REQUIRE(used == static_cast<unsigned>(sms), "%u of %d SMs were used", used, sms);
  std::printf("PASS special_registers: %d SMs\n", sms);
}
