// See stalls.h. Everything is a function of the seed, the launch's number since it was set, and the
// block's number, so that no order of events can change it.
#include "node/state/stalls.h"

#include <algorithm>
#include <bit>

#include "base/splitmix.h"

namespace allranks::node {
namespace {

constexpr std::uint64_t kBlocks = 8;  // one in so many blocks stalls, and of fewer about one
constexpr std::uint64_t kPlaces = 4;  // at one in so many of its instructions
constexpr Time kLeast = Us(2);        // times 2^0 to 2^8, and up to twice that
constexpr std::uint64_t kMagnitudes = 9, kBriefMagnitudes = 3;

}  // namespace

Time Stall::At(std::uint32_t pc, std::uint32_t warp) {
  if (key == 0 || Mix(key, std::uint64_t{warp} << 32 | pc) % kPlaces != 0) return 0;
  if (passes > 0) {
    --passes;
    return 0;
  }
  key = 0;
  return length;
}

void Stalls::SetSeed(std::uint64_t seed, bool brief) {
  seed_ = seed;
  brief_ = brief;
  launches_ = 0;
}

std::uint64_t Stalls::OfLaunch() {
  if (seed_ == 0) return 0;
  return Mix(seed_, ++launches_) | 1;
}

Stall Stalls::OfBlock(std::uint64_t launch, std::uint64_t block, std::uint64_t blocks) const {
  if (launch == 0) return {};
  const std::uint64_t drawn = Mix(launch, block + 1);
  if (drawn % std::min(kBlocks, std::max<std::uint64_t>(1, blocks)) != 0) return {};
  Stall stall;
  stall.key = drawn | 1;
  // Half of them at the first time, the others after 1, 2, 4 ... 64.
  const int late = std::countr_zero(drawn >> 8 | 0x80);
  stall.passes = late == 0 ? 0 : 1u << (late - 1);
  const std::uint64_t length = launch >> 8;
  const Time least = kLeast << length % (brief_ ? kBriefMagnitudes : kMagnitudes);
  stall.length = least + static_cast<Time>((length >> 8) % static_cast<std::uint64_t>(least));
  return stall;
}

}  // namespace allranks::node
