// Tokens of a subgroup in the order of its members, and sums of their shares, which are exact.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

// The subgroup of a rank: [first, last), and where the rows of each member begin.
struct Subgroup {
  int first, last;
  std::vector<std::int64_t> at = {0};  // one more than members
  Subgroup(const Call& call, int rank) {
    const auto group = static_cast<int>(call.Param("group"));
    first = rank / group * group;
    last = std::min(first + group, call.world());
    for (int r = first; r < last; ++r)
      at.push_back(at.back() + call.In<std::int32_t>(r, "rows")[0]);
  }
  std::int64_t Rows(int rank) const { return at[rank - first + 1] - at[rank - first]; }
};

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t width = 4 * call.Param("quads");
  for (int rank = 0; rank < call.world(); ++rank) {
    const Subgroup group(call, rank);
    std::vector<std::int32_t> counts;
    std::vector<float> sums(group.Rows(rank) * width);
    for (int r = group.first; r < group.last; ++r) {
      const std::int64_t at = group.at[r - group.first] * width;
      counts.push_back(static_cast<std::int32_t>(group.Rows(r)));
      check.ExactAt<float>(rank, "gathered", at,
                           call.In<float>(r, "x").subspan(0, group.Rows(r) * width));
      const float* shares = call.In<float>(r, "y").data() + group.at[rank - group.first] * width;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += shares[i];
    }
    check.Untouched(rank, "gathered", group.at.back() * width);
    check.Exact(rank, "counts", counts);
    check.Exact(rank, "out", sums);
  }
}

// Tokens of all others must come, and the sum of the others' shares for own tokens; own tokens and
// own shares for all others must leave.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const Subgroup group(call, rank);
  const std::int64_t all = group.last - group.first > 1 ? group.at.back() : 0;
  floor.ingress = floor.egress = 16.0 * static_cast<double>(all * call.Param("quads"));
}
