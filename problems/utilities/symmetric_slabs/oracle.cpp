// Runs every heap and compares all offsets on all ranks.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  constexpr std::size_t kRequests = 16;
  const auto heaps = static_cast<std::size_t>(call.Param("heaps"));
  std::vector<std::uint8_t> sums(heaps * kRequests, 0), offsets;
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto want = call.In<std::uint8_t>(rank, "want");
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] = static_cast<std::uint8_t>(sums[i] + want[i]);
    }
  }
  for (std::size_t h = 0; h < heaps; ++h) {
    std::uint32_t free = ~0u, ending[2 * kRequests + 1] = {};
    for (std::size_t i = 0; i < kRequests; ++i) {
      const std::uint32_t s = sums[h * kRequests + i], need = 1 + s % 8, slabs = (1u << need) - 1;
      free |= ending[i];
      std::uint32_t offset = 0;
      while (offset + need <= 32 && (free >> offset & slabs) != slabs) ++offset;
      const bool found = offset + need <= 32;
      offsets.push_back(found ? static_cast<std::uint8_t>(offset) : 255);
      if (!found) continue;
      free &= ~(slabs << offset);
      ending[i + 1 + s / 8 % 16] |= slabs << offset;
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "offset", offsets);
}
