// Thrust on the device back end. Its sorts and scans are CUB's; what it adds is for_each, transform
// and the search and set algorithms.
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

struct Half {
  __device__ float operator()(int x) const { return static_cast<float>(x) * 0.5f; }
};

int Algorithms(int* ints, float* floats, int n) {
  thrust::sequence(thrust::device, ints, ints + n);
  thrust::transform(thrust::device, ints, ints + n, floats, Half());
  thrust::lower_bound(thrust::device, ints, ints + n, ints, ints + n, ints);
  thrust::sort_by_key(thrust::device, ints, ints + n, floats);
  return thrust::reduce(thrust::device, ints, ints + n);
}
