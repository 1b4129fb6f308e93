// CUB's block-wide and warp-wide primitives, in kernels of one block.
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

namespace {

constexpr int kThreads = 128;
constexpr int kItems = 4;

struct Minimum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Less {
  template <typename T>
  __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Minus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a - b;
  }
};

}  // namespace

template <typename T, cub::BlockReduceAlgorithm kReduce, cub::BlockScanAlgorithm kScan>
__global__ void ReduceAndScan(T* data) {
  using Reduce = cub::BlockReduce<T, kThreads, kReduce>;
  using Scan = cub::BlockScan<T, kThreads, kScan>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
  } storage;
  T items[kItems];
  cub::LoadDirectBlockedVectorized(threadIdx.x, data, items);
  const T sum = Reduce(storage.reduce).Sum(items);
  __syncthreads();
  const T least = Reduce(storage.reduce).Reduce(items, Minimum());
  __syncthreads();
  T total;
  Scan(storage.scan).ExclusiveSum(items, items, total);
  __syncthreads();
  Scan(storage.scan).InclusiveScan(items, items, Minimum());
  items[0] += sum + least + total;
  cub::StoreDirectStriped<kThreads>(threadIdx.x, data, items);
}
template __global__ void
ReduceAndScan<int, cub::BLOCK_REDUCE_WARP_REDUCTIONS, cub::BLOCK_SCAN_WARP_SCANS>(int*);
template __global__ void ReduceAndScan<double, cub::BLOCK_REDUCE_RAKING, cub::BLOCK_SCAN_RAKING>(
    double*);
template __global__ void ReduceAndScan<long long, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
                                       cub::BLOCK_SCAN_RAKING_MEMOIZE>(long long*);

template <typename T>
__global__ void Rearrange(T* data) {
  using Load = cub::BlockLoad<T, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<T, kThreads, kItems, cub::BLOCK_STORE_TRANSPOSE>;
  using Exchange = cub::BlockExchange<T, kThreads, kItems>;
  using Shuffle = cub::BlockShuffle<T, kThreads>;
  using Difference = cub::BlockAdjacentDifference<T, kThreads>;
  using Heads = cub::BlockDiscontinuity<T, kThreads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Exchange::TempStorage exchange;
    typename Shuffle::TempStorage shuffle;
    typename Difference::TempStorage difference;
    typename Heads::TempStorage heads;
  } storage;
  T items[kItems];
  Load(storage.load).Load(data, items);
  __syncthreads();
  Exchange(storage.exchange).BlockedToStriped(items, items);
  __syncthreads();
  Exchange(storage.exchange).WarpStripedToBlocked(items, items);
  __syncthreads();
  Shuffle(storage.shuffle).Up(items, items);
  __syncthreads();
  Difference(storage.difference).SubtractLeft(items, items, Minus());
  __syncthreads();
  bool flags[kItems];
  Heads(storage.heads).FlagHeads(flags, items, Less());
  for (int i = 0; i < kItems; ++i) items[i] += flags[i];
  __syncthreads();
  Store(storage.store).Store(data, items);
}
template __global__ void Rearrange<float>(float*);
template __global__ void Rearrange<short>(short*);

template <typename Key, typename Value>
__global__ void Sort(Key* keys, Value* values) {
  using Radix = cub::BlockRadixSort<Key, kThreads, kItems, Value>;
  using Merge = cub::BlockMergeSort<Key, kThreads, kItems>;
  using WarpMerge = cub::WarpMergeSort<Key, kItems>;
  __shared__ union {
    typename Radix::TempStorage radix;
    typename Merge::TempStorage merge;
    typename WarpMerge::TempStorage warp[kThreads / 32];
  } storage;
  Key k[kItems];
  Value v[kItems];
  cub::LoadDirectWarpStriped(threadIdx.x, keys, k);
  cub::LoadDirectStriped<kThreads>(threadIdx.x, values, v);
  Radix(storage.radix).Sort(k, v);
  __syncthreads();
  Radix(storage.radix).SortDescendingBlockedToStriped(k, v, 2, 9);
  __syncthreads();
  Merge(storage.merge).Sort(k, Less());
  __syncthreads();
  WarpMerge(storage.warp[threadIdx.x / 32]).Sort(k, Less());
  cub::StoreDirectWarpStriped(threadIdx.x, keys, k);
  cub::StoreDirectBlocked(threadIdx.x, values, v);
}
template __global__ void Sort<float, int>(float*, int*);
template __global__ void Sort<unsigned long long, char>(unsigned long long*, char*);

template <typename T>
__global__ void Warps(T* data) {
  using Reduce = cub::WarpReduce<T>;
  using Sixteen = cub::WarpReduce<T, 16>;
  using Scan = cub::WarpScan<T>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Sixteen::TempStorage sixteen;
    typename Scan::TempStorage scan;
  } storage[kThreads / 32];
  auto& own = storage[threadIdx.x / 32];
  T x = data[threadIdx.x];
  x += Reduce(own.reduce).Sum(x);
  x += Reduce(own.reduce).HeadSegmentedSum(x, threadIdx.x % 5 == 0);
  x += Sixteen(own.sixteen).Reduce(x, Minimum());
  Scan(own.scan).InclusiveSum(x, x);
  Scan(own.scan).ExclusiveScan(x, x, T(1), Minimum());
  data[threadIdx.x] = Scan(own.scan).Broadcast(x, 3);
}
template __global__ void Warps<int>(int*);
template __global__ void Warps<float>(float*);
template __global__ void Warps<double>(double*);
template __global__ void Warps<unsigned char>(unsigned char*);

__global__ void Histogram(unsigned char* samples, unsigned* bins) {
  using Atomic = cub::BlockHistogram<unsigned char, kThreads, kItems, 256, cub::BLOCK_HISTO_ATOMIC>;
  using Sort = cub::BlockHistogram<unsigned char, kThreads, kItems, 256, cub::BLOCK_HISTO_SORT>;
  __shared__ union {
    Atomic::TempStorage atomic;
    Sort::TempStorage sort;
  } storage;
  __shared__ unsigned counts[256];
  unsigned char items[kItems];
  cub::LoadDirectBlocked(threadIdx.x, samples, items);
  Atomic(storage.atomic).Histogram(items, counts);
  __syncthreads();
  Sort(storage.sort).Composite(items, counts);
  __syncthreads();
  bins[threadIdx.x] = counts[threadIdx.x];
}
