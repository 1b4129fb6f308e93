// See schedule_choice.h.
#include "node/schedule_choice.h"

#include <algorithm>
#include <numeric>

namespace allranks::node {
namespace {

// Steps through 0 .. count-1 so that every beginning of the sequence is spread over all of it.
std::uint64_t Spread(std::uint64_t i, std::uint64_t count) {
  std::uint64_t step = std::max<std::uint64_t>(1, count * 618 / 1000);
  while (std::gcd(step, count) != 1) ++step;
  return i * step % count;
}

}  // namespace

std::vector<std::uint64_t> ChooseSchedules(const PlaceCounts& places, std::size_t count,
                                           std::uint64_t draw) {
  // By turns: what is late at every time, what stops once and then everything by device, time and
  // warp, and a drawn one.
  std::vector<std::uint64_t> turns[2];
  for (std::uint32_t level = 1; level <= kPlaceLevels; ++level) {
    const std::uint64_t most = std::min(places[level - 1], kDirected - 1);
    for (std::uint64_t i = 0; i < most && i < count; ++i)
      turns[level == 1 ? 0 : 1].push_back(level * kDirected + 1 + Spread(i + draw % most, most));
  }
  std::vector<std::uint64_t> chosen;
  const auto full = [&] { return chosen.size() >= count; };
  for (std::uint64_t round = 0; !full(); ++round) {
    for (const auto& turn : turns)
      if (round < turn.size() && !full()) chosen.push_back(turn[round]);
    if (!full()) chosen.push_back(round + 1);
  }
  return chosen;
}

}  // namespace allranks::node
