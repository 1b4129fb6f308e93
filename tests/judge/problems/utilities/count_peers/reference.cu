#include "problem.h"

// >>> edit
extern "C" std::size_t answer(const Args&, void* out, std::size_t capacity) {
  int count = 0;
  if (capacity < sizeof count || cudaGetDeviceCount(&count) != cudaSuccess) return 0;
  *static_cast<std::int32_t*>(out) = count;
  return sizeof count;
}
// <<< edit
