// Cooperative groups, tiles: thread_block_tile of 1 to 32 threads and of more than a warp, their
// ranks and sizes, shuffles, votes and matches inside a tile, tiles of tiles, and sync.
#include <cooperative_groups.h>

#include "arrays.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 128, kResults = 8;

template <int kSize>
__global__ void Tiles(int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<kSize>(block);
  const int thread = static_cast<int>(block.thread_rank());
  int* r = out + thread * kResults;
  r[0] = static_cast<int>(tile.thread_rank() + 100 * tile.meta_group_rank());
  r[1] = static_cast<int>(tile.num_threads() + 1000 * tile.meta_group_size());
  r[2] = tile.shfl(thread, kSize - 1);
  r[3] = tile.shfl_down(thread, 1);
  r[4] = tile.shfl_xor(thread, kSize / 2);
  r[5] = static_cast<int>(tile.ballot(thread % 3 == 0));
  r[6] = tile.any(thread == 5) + 2 * tile.all(thread >= 64);
  r[7] = static_cast<int>(tile.match_any(thread / 3));
  tile.sync();
}

template <int kSize>
void Check() {
  int* out = Unwritten<int>(kThreads * kResults);
  Tiles<kSize><<<1, kThreads>>>(out);
  std::vector<int> expected;
  for (int thread = 0; thread < kThreads; ++thread) {
    const int first = thread / kSize * kSize, rank = thread % kSize;
    unsigned thirds = 0, same = 0;
    bool five = false, high = true;
    for (int i = 0; i < kSize; ++i) {
      if ((first + i) % 3 == 0) thirds |= 1u << i;
      if ((first + i) / 3 == thread / 3) same |= 1u << i;
      five = five || first + i == 5;
      high = high && first + i >= 64;
    }
    expected.insert(
        expected.end(),
        {rank + 100 * (thread / kSize), kSize + 1000 * (kThreads / kSize), first + kSize - 1,
         rank + 1 < kSize ? thread + 1 : thread, first + (rank ^ kSize / 2),
         static_cast<int>(thirds), five + 2 * high, static_cast<int>(same)});
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
}

// Tiles of tiles, and ranks within a block of three dimensions.
__global__ void Nested(int* out) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto quarter = cg::tiled_partition<8>(warp);
  auto dynamic = cg::tiled_partition(warp, 4);
  const int thread = static_cast<int>(block.thread_rank());
  out[thread * 3] = static_cast<int>(quarter.meta_group_rank() * 10 + quarter.thread_rank());
  out[thread * 3 + 1] = static_cast<int>(dynamic.thread_rank() * 100 + dynamic.size());
  out[thread * 3 + 2] =
      static_cast<int>(block.size() * 1000 + block.thread_index().z * 10 + block.group_dim().y);
  block.sync();
}

}  // namespace

int main() {
  Check<2>();
  Check<8>();
  Check<32>();
  int* out = Unwritten<int>(3 * kThreads);
  Nested<<<1, dim3(4, 8, 4)>>>(out);
  std::vector<int> expected;
  for (int thread = 0; thread < kThreads; ++thread) {
    expected.insert(expected.end(), {thread % 32 / 8 * 10 + thread % 8, thread % 4 * 100 + 4,
                                     128000 + thread / 32 * 10 + 8});
  }
  REQUIRE_SAME(ToHost(out, expected.size()), expected);
  std::puts("PASS tiles");
}
