// Each rank's rows of the output are a product of its own; all ranks have all of them.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto k = static_cast<std::size_t>(call.Param("depth")) * 64;
  const auto rows = static_cast<std::size_t>(call.Param("tiles")) * 64;
  const auto integers = [&](int rank, const char* tensor) {
    const std::vector<double> values = call.InAsDouble(rank, tensor);
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  std::vector<float> c;  // sums are far below 2^24, so exact in any order
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::vector<std::int32_t> a = integers(rank, "a"), b = integers(rank, "b");
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < 32; ++j) {
        std::int32_t sum = 0;
        for (std::size_t n = 0; n < k; ++n) sum += a[i * k + n] * b[j * k + n];
        c.push_back(static_cast<float>(sum));
      }
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "c", c);
}
