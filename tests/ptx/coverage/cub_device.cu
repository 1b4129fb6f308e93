// CUB's device-wide algorithms: host code that would launch them makes nvcc emit their kernels.
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>

struct IsOdd {
  __device__ bool operator()(int x) const { return (x & 1) != 0; }
};

void Algorithms(void* temporary, std::size_t& bytes, int n, int* ints, float* floats,
                double* doubles, char* flags, int* out, unsigned char* pixels) {
  cub::DeviceReduce::Sum(temporary, bytes, ints, out, n);
  cub::DeviceReduce::Max(temporary, bytes, floats, floats + n, n);
  cub::DeviceReduce::Sum(temporary, bytes, doubles, doubles + n, n);
  cub::DeviceReduce::ArgMin(temporary, bytes, floats, floats, out, n);
  cub::DeviceReduce::ReduceByKey(temporary, bytes, ints, ints, floats, floats, out,
                                 cuda::std::plus<>{}, n);
  cub::DeviceScan::ExclusiveSum(temporary, bytes, ints, out, n);
  cub::DeviceScan::InclusiveSum(temporary, bytes, floats, floats, n);
  cub::DeviceSelect::Flagged(temporary, bytes, ints, flags, out, out, n);
  cub::DeviceSelect::If(temporary, bytes, ints, out, out, n, IsOdd{});
  cub::DeviceSelect::Unique(temporary, bytes, ints, out, out, n);
  cub::DeviceHistogram::HistogramEven(temporary, bytes, pixels, out, 257, 0, 256, n);
  cub::DeviceHistogram::HistogramEven(temporary, bytes, floats, out, 17, 0.0f, 1.0f, n);
  cub::DeviceRunLengthEncode::Encode(temporary, bytes, ints, out, out, out, n);
}
