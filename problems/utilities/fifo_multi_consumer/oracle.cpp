// Records of one call: any mixture of the producers' sequences.
#include <allranks/oracle.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace allranks::oracle;

static std::vector<std::uint64_t> Firsts(const Call& call) {
  std::vector<std::uint64_t> firsts = {0};
  for (const std::int32_t count : call.In<std::int32_t>(0, "counts"))
    firsts.push_back(firsts.back() + static_cast<std::uint64_t>(count));
  return firsts;
}

extern "C" void Verify(const Call& call, Check& check) {
  const std::vector<std::uint64_t> firsts = Firsts(call);
  const std::uint64_t all = firsts.back();
  check.Exact(0, "total", std::vector{static_cast<std::uint32_t>(all)});
  const auto values = call.In<std::uint32_t>(0, "values");
  const auto out = check.Out<std::uint64_t>(0, "out");
  std::vector<std::uint64_t> taken(firsts.begin(), firsts.end() - 1);
  for (std::uint64_t n = 0; n < all; ++n) {
    const std::uint64_t producer = out[n] >> 32;
    const auto value = static_cast<std::uint32_t>(out[n]);
    if (check.IsPoison(0, "out", n)) {
      check.Wrong(0, "out", n, "a record", "never written");
    } else if (producer >= taken.size() || taken[producer] == firsts[producer + 1]) {
      check.Wrong(0, "out", n, "a producer with items left", std::to_string(producer));
    } else if (const std::uint32_t expected = values[taken[producer]++]; value != expected) {
      check.Wrong(0, "out", n, std::to_string(expected), std::to_string(value));
    }
  }
  check.Untouched(0, "out", all);
}

// An item has four random bytes; each further 8192 of them wait until the queue is free again.
extern "C" void Floors(const Call& call, int, Floor& floor) {
  const std::uint64_t bytes = 4 * Firsts(call).back();
  floor.egress = static_cast<double>(bytes);
  floor.hops = static_cast<double>(2 * std::max<std::uint64_t>(1, (bytes + 8191) / 8192) - 1);
}
