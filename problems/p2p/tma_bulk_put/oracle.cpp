// A rank's `out` holds the words of the rank before, with the stamps added to the first of pages.
#include <allranks/oracle.h>

#include <algorithm>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  std::vector<std::uint32_t> expected(static_cast<std::size_t>(call.Param("n")));
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto in = call.In<std::uint32_t>(rank, "in");
    const auto stamps = call.In<std::uint32_t>(rank, "stamps");
    std::copy(in.begin(), in.end(), expected.begin());
    for (std::size_t page = 0; page < stamps.size(); ++page) expected[512 * page] += stamps[page];
    check.Exact((rank + 1) % call.world(), "out", expected);
  }
}
