// Pages in the new layout at the decode rank's places; all other pages keep their poison.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto param = [&](const char* name) { return static_cast<std::size_t>(call.Param(name)); };
  const std::size_t layers = param("layers"), pages = param("pages"), heads = param("heads");
  const std::size_t tokens = param("tokens"), words = 4 * param("quads");
  const std::size_t page_words = heads * tokens * words;
  const int half = call.world() / 2;
  for (int rank = 0; rank < call.world(); ++rank) {
    if (rank >= half && rank < 2 * half) continue;
    check.Untouched(rank, "out", 0);
    check.Untouched(rank, "sums", 0);
  }
  for (int rank = 0; rank < half; ++rank) {
    const auto cache = call.In<std::uint32_t>(rank, "cache");
    const auto from = call.In<std::int32_t>(rank, "table");
    const auto to = call.In<std::int32_t>(rank + half, "table");
    std::vector<std::uint32_t> sums(layers), page(page_words);
    std::vector<int> source(pages, -1);
    for (std::size_t j = 0; j < to.size(); ++j) source[to[j]] = from[j];
    for (std::size_t at = 0; at < layers * pages; ++at) {
      const std::size_t layer = at / pages, place = at * page_words;
      if (source[at % pages] < 0) {
        check.Untouched(rank + half, "out", place, place + page_words);
        continue;
      }
      const std::uint32_t* in = cache.data() + (layer * pages + source[at % pages]) * page_words;
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t t = 0; t < tokens; ++t) {
          for (std::size_t w = 0; w < words; ++w) {
            sums[layer] += page[(t * heads + h) * words + w] = in[(h * tokens + t) * words + w];
          }
        }
      }
      check.ExactAt<std::uint32_t>(rank + half, "out", place, page);
    }
    check.Exact(rank + half, "sums", sums);
  }
}

extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  double bytes = 16;
  for (const char* name : {"layers", "used", "heads", "tokens", "quads"}) {
    bytes *= static_cast<double>(call.Param(name));
  }
  const int half = call.world() / 2;
  floor.ingress = rank >= half && rank < 2 * half ? bytes : 0;
  floor.egress = rank < half ? bytes : 0;
}
