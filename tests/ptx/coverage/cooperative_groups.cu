// Cooperative groups: every kind of group and every collective of the headers.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <cuda/barrier>

namespace cg = cooperative_groups;

template <typename Group>
__device__ void Common(Group group, int* out) {
  group.sync();
  out[0] = static_cast<int>(group.thread_rank() + group.size() + group.num_threads());
}

template <typename T, typename Group>
__device__ void Reductions(Group group, T* p) {
  p[0] = cg::reduce(group, p[1], cg::plus<T>());
  p[2] = cg::reduce(group, p[3], cg::less<T>());
  p[4] = cg::reduce(group, p[5], cg::greater<T>());
  if constexpr (cuda::std::is_integral_v<T>) {
    p[6] = cg::reduce(group, p[7], cg::bit_and<T>());
    p[8] = cg::reduce(group, p[9], cg::bit_or<T>());
    p[10] = cg::reduce(group, p[11], cg::bit_xor<T>());
  }
  p[12] = cg::inclusive_scan(group, p[13]);
  p[14] = cg::exclusive_scan(group, p[15], cg::greater<T>());
}

template <typename T, typename Group>
__device__ void Warp(Group group, T* p) {
  p[0] = group.shfl(p[1], 3);
  p[2] = group.shfl_up(p[3], 1);
  p[4] = group.shfl_down(p[5], 2);
}

template <typename Group>
__device__ void Votes(Group group, unsigned* p) {
  p[0] = group.any(p[1] != 0) + group.all(p[2] != 0) + group.ballot(p[3] != 0);
  p[4] = group.match_any(p[5]);
  int same;
  p[6] = group.match_all(p[7], same) + same;
  p[8] = group.meta_group_rank() + group.meta_group_size();
}

template <int kSize>
__device__ void Tile(cg::thread_block block, void* p) {
  auto tile = cg::tiled_partition<kSize>(block);
  Common(tile, static_cast<int*>(p));
  Warp(tile, static_cast<int*>(p));
  Warp(tile, static_cast<double*>(p));
  static_cast<int*>(p)[6] = tile.shfl_xor(static_cast<int*>(p)[7], 1);
  Votes(tile, static_cast<unsigned*>(p));
  Reductions(tile, static_cast<int*>(p));
  Reductions(tile, static_cast<unsigned*>(p));
  Reductions(tile, static_cast<float*>(p));
  Reductions(tile, static_cast<long long*>(p));
  Reductions(tile, static_cast<double*>(p));
}

__global__ void Tiles(void* p) {
  auto block = cg::this_thread_block();
  Tile<32>(block, p);
  Tile<4>(block, p);
}

__global__ void Coalesced(void* p, int limit) {
  if (static_cast<int>(threadIdx.x) % 7 < limit) {
    auto group = cg::coalesced_threads();
    Common(group, static_cast<int*>(p));
    Warp(group, static_cast<int*>(p));
    Votes(group, static_cast<unsigned*>(p));
    Reductions(group, static_cast<int*>(p));
    Reductions(group, static_cast<float*>(p));
    auto labeled = cg::labeled_partition(group, static_cast<int>(threadIdx.x) % 3);
    auto binary = cg::binary_partition(group, threadIdx.x % 2 == 0);
    auto part = cg::tiled_partition(group, 4);
    static_cast<unsigned*>(p)[1] = labeled.size() + binary.size() + part.size();
    cg::invoke_one(group, [&] { static_cast<int*>(p)[2] = 1; });
    static_cast<int*>(p)[3] =
        cg::invoke_one_broadcast(group, [&] { return static_cast<int*>(p)[4]; });
  }
}

__global__ void Large(int* p) {
  __shared__ cg::block_tile_memory<512> memory;
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<128>(block);
  Common(tile, p);
  p[1] = cg::reduce(tile, p[2], cg::plus<int>());
  p[3] = tile.shfl(p[4], 40);
  p[5] = tile.any(p[6] != 0) + tile.all(p[7] != 0);
}

__global__ void Blocks(int* p, int n) {
  extern __shared__ int shared[];
  auto block = cg::this_thread_block();
  Common(block, p);
  Common(cg::this_thread(), p);
  auto token = block.barrier_arrive();
  p[1] = block.group_index().x + block.thread_index().y + block.dim_threads().z;
  block.barrier_wait(std::move(token));
  cg::memcpy_async(block, shared, p, sizeof(int) * n);
  cg::memcpy_async(block, shared, p, cuda::aligned_size_t<16>(256));
  cg::memcpy_async(cg::tiled_partition<32>(block), shared, n, p, n);
  cg::wait(block);
  cg::wait_prior<1>(block);
  p[2] = shared[n];
}

__global__ void Grids(int* p) {
  auto grid = cg::this_grid();
  Common(grid, p);
  auto token = grid.barrier_arrive();
  grid.barrier_wait(std::move(token));
  p[1] = grid.is_valid() + grid.block_rank() + grid.num_blocks() + grid.cluster_rank() +
         grid.num_clusters();
  p[2] =
      grid.dim_blocks().x + grid.block_index().y + grid.dim_clusters().z + grid.cluster_index().x;
}

__global__ void __cluster_dims__(2, 1, 1) Clusters(int* p) {
  __shared__ int own;
  auto cluster = cg::this_cluster();
  own = threadIdx.x;
  Common(cluster, p);
  auto token = cluster.barrier_arrive();
  cluster.barrier_wait(std::move(token));
  p[1] = *cluster.map_shared_rank(&own, 1) + cluster.query_shared_rank(&own);
  p[2] = cluster.block_rank() + cluster.num_blocks() + cluster.dim_blocks().x +
         cluster.block_index().y + cluster.dim_threads().x + cluster.thread_index().z;
}

__global__ void AsyncReduce(int* p) {
  __shared__ cuda::atomic<int, cuda::thread_scope_block> total;
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  cg::reduce_update_async(tile, total, p[0], cg::plus<int>());
  cg::reduce_store_async(tile, p + 1, p[2], cg::plus<int>());
}
