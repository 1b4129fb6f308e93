// Rows of the lists, copied bit by bit; rows of `out` behind the end of a list untouched.
#include <allranks/oracle.h>

#include <set>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = 4 * call.Param("quads");
  for (int rank = 0; rank < call.world(); ++rank) {
    const auto counts = call.In<std::int32_t>(rank, "counts");
    const auto ids = call.In<std::int32_t>(rank, "ids");
    std::int64_t at = 0;
    for (int owner = 0; owner < call.world(); ++owner) {
      const auto features = call.In<std::uint32_t>(owner, "features");
      for (std::int32_t i = 0; i < counts[owner]; ++i, ++at) {
        check.ExactAt<std::uint32_t>(rank, "out", at * width,
                                     features.subspan(ids[at] * width, width));
      }
    }
    check.Untouched(rank, "out", at * width);
  }
}

// Every distinct row that a rank wants of another one comes over a link at least once. Rows that
// several ranks want may be passed on, so nothing is said of what owners send.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const auto counts = call.In<std::int32_t>(rank, "counts");
  const auto ids = call.In<std::int32_t>(rank, "ids");
  std::size_t at = 0, rows = 0;
  for (int owner = 0; owner < call.world(); at += counts[owner++]) {
    const auto list = ids.subspan(at, counts[owner]);
    if (owner != rank) rows += std::set<std::int32_t>(list.begin(), list.end()).size();
  }
  floor.ingress = 16.0 * static_cast<double>(rows) * static_cast<double>(call.Param("quads"));
}
