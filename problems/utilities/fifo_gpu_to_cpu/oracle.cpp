// Records of one call: any mixture of the producers' sequences.
#include <allranks/oracle.h>

#include <string>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto producers = static_cast<std::uint64_t>(call.Param("producers"));
  const auto items = static_cast<std::uint64_t>(call.Param("items"));
  const auto values = call.In<std::uint32_t>(0, "values");
  const auto out = check.Out<std::uint64_t>(0, "out");
  std::vector<std::uint64_t> taken(producers, 0);
  for (std::uint64_t n = 0; n < out.size(); ++n) {
    const std::uint64_t producer = out[n] >> 32;
    const auto value = static_cast<std::uint32_t>(out[n]);
    if (check.IsPoison(0, "out", n)) {
      check.Wrong(0, "out", n, "a record", "never written");
    } else if (producer >= producers) {
      check.Wrong(0, "out", n, "a producer below " + std::to_string(producers),
                  "producer " + std::to_string(producer));
    } else if (taken[producer] == items) {
      check.Wrong(0, "out", n, "another producer",
                  "one more of producer " + std::to_string(producer) + ", who has no more");
    } else {
      const std::uint64_t i = taken[producer]++;
      const std::uint32_t expected = values[producer * items + i];
      if (value == expected) continue;
      check.Wrong(0, "out", n,
                  "item " + std::to_string(i) + " of producer " + std::to_string(producer) + ", " +
                      std::to_string(expected),
                  std::to_string(value));
    }
  }
}
