// See banks.h.
#include "node/code/banks.h"

#include <algorithm>
#include <bit>

#include "node/code/lanes.h"

namespace allranks::node {
namespace {

constexpr std::uint32_t kBanks = 32, kWord = 4;

// The most words that one bank has to give.
std::uint32_t Deepest(const std::uint32_t* words, std::uint32_t count, bool serial) {
  // Nearly always every bank is asked for one word, or all lanes for the same.
  std::uint32_t asked = 0, differing = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    asked |= 1u << (words[i] % kBanks);
    differing |= words[i] ^ words[0];
  }
  if (static_cast<std::uint32_t>(std::popcount(asked)) == count) return 1;
  if (differing == 0) return serial ? count : 1;
  std::uint32_t sorted[kLanes * 2];
  std::copy_n(words, count, sorted);
  // By bank, then by word: the words of a bank stand together.
  std::sort(sorted, sorted + count, [](std::uint32_t a, std::uint32_t b) {
    return a % kBanks != b % kBanks ? a % kBanks < b % kBanks : a < b;
  });
  std::uint32_t deepest = 1, depth = 1;
  for (std::uint32_t i = 1; i < count; ++i) {
    if (sorted[i] % kBanks != sorted[i - 1] % kBanks) {
      depth = 1;
    } else if (serial || sorted[i] != sorted[i - 1]) {
      deepest = std::max(deepest, ++depth);
    }
  }
  return deepest;
}

}  // namespace

std::uint32_t BankPasses(std::uint32_t lanes, const std::uint64_t* offset, std::uint32_t bytes,
                         bool serial) {
  const std::uint32_t per_lane = std::max(bytes, kWord) / kWord;
  const int together = kLanes / static_cast<int>(std::min(per_lane, 4u));
  std::uint32_t passes = 0;
  for (int first = 0; first < kLanes; first += together) {
    std::uint32_t words[kLanes * 2], count = 0;
    for (int l = first; l < first + together; ++l) {
      if ((lanes >> l & 1) == 0) continue;
      const auto word = static_cast<std::uint32_t>(offset[l] / kWord);
      for (std::uint32_t w = 0; w < per_lane; ++w) words[count++] = word + w;
    }
    if (count != 0) passes += Deepest(words, count, serial);
  }
  return passes;
}

}  // namespace allranks::node
