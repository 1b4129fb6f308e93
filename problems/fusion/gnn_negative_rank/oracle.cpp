// Places by scoring every entry of every list; all integers, so exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t rows = call.Param("rows"), width = 16 * call.Param("quads");
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto heads = call.In<std::int8_t>(rank, "heads");
    const auto negatives = call.In<std::int32_t>(rank, "negatives");
    const auto positives = call.In<std::int32_t>(rank, "positives");
    const auto score = [&](std::int64_t query, std::int32_t id) {
      const auto table = call.In<std::int8_t>(static_cast<int>(id / rows), "table");
      const std::int8_t *a = &heads[query * width], *b = &table[id % rows * width];
      std::int32_t sum = 0;
      for (std::int64_t j = 0; j < width; ++j) sum += a[j] * b[j];
      return sum;
    };
    std::vector<std::int32_t> place;
    std::int64_t at = 0;
    for (const std::int32_t count : call.In<std::int32_t>(rank, "counts")) {
      const auto query = static_cast<std::int64_t>(place.size());
      const std::int32_t positive = positives[query], at_stake = score(query, positive);
      place.push_back(1);
      for (const std::int32_t id : negatives.subspan(at, count)) {
        const std::int32_t s = score(query, id);
        place.back() += s > at_stake || (s == at_stake && id < positive);
      }
      at += count;
    }
    check.Exact(rank, "place", place);
  }
}

// Whoever scores: at least one bit comes for a query whose list or true node lies elsewhere.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t rows = call.Param("rows");
  const auto negatives = call.In<std::int32_t>(rank, "negatives");
  const auto positives = call.In<std::int32_t>(rank, "positives");
  std::size_t query = 0, at = 0, bits = 0;
  for (const std::int32_t count : call.In<std::int32_t>(rank, "counts")) {
    const std::int32_t positive = positives[query++];
    for (const std::int32_t id : negatives.subspan(at, count)) {
      if (id == positive || (id / rows == rank && positive / rows == rank)) continue;
      ++bits;
      break;
    }
    at += count;
  }
  floor.ingress = static_cast<double>(bits / 8);
}
