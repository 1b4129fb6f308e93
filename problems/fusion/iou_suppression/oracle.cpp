// Objects of all ranks, gone through in order.
#include <allranks/oracle.h>

#include <algorithm>
#include <bit>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = 4 * call.Param("quads");
  struct Object {
    int rank;
    std::int64_t index;
    std::int32_t score;
    const std::uint32_t* mask;
  };
  std::vector<Object> objects;
  std::vector<std::vector<std::int32_t>> keep;
  for (int rank = 0; rank < call.world(); ++rank) {
    const std::int64_t count = call.In<std::int32_t>(rank, "count")[0];
    const auto masks = call.In<std::uint32_t>(rank, "masks");
    for (std::int64_t i = 0; i < count; ++i) {
      objects.push_back({rank, i, call.In<std::int32_t>(rank, "scores")[i], &masks[i * width]});
    }
    keep.emplace_back(count);
  }
  std::stable_sort(objects.begin(), objects.end(),
                   [](const Object& a, const Object& b) { return a.score > b.score; });
  std::vector<const std::uint32_t*> kept;
  for (const Object& object : objects) {
    const bool beaten = std::any_of(kept.begin(), kept.end(), [&](const std::uint32_t* mask) {
      int both = 0, any = 0;
      for (std::int64_t w = 0; w < width; ++w) {
        both += std::popcount(mask[w] & object.mask[w]);
        any += std::popcount(mask[w] | object.mask[w]);
      }
      return 5 * both > 2 * any;
    });
    if (beaten) continue;
    kept.push_back(object.mask);
    keep[object.rank][object.index] = 1;
  }
  const std::vector<std::int32_t> total = {static_cast<std::int32_t>(kept.size())};
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "keep", keep[rank]);
    check.Exact(rank, "total", total);
  }
}

// Any rank may compare: what must come is a part of the total, if others have objects.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  std::int64_t others = 0;
  for (int r = 0; r < call.world(); ++r) {
    if (r != rank) others += call.In<std::int32_t>(r, "count")[0];
  }
  const std::int64_t count = call.In<std::int32_t>(rank, "count")[0];
  floor.ingress = others > 0 ? 1 : 0;
  floor.hbm = static_cast<double>(count * (16 * call.Param("quads") + 8) + 4);
}
