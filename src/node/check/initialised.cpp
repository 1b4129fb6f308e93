// Bits of copied ranges; see initialised.h.
#include "node/check/initialised.h"

namespace allranks::node::check {

std::shared_ptr<Initialised> Initialised::Make(std::uint64_t size) {
  // Large blocks come from the operating system as pages of zeros that exist when touched.
  auto* bits = static_cast<std::uint64_t*>(std::calloc(size / 64 + 1, sizeof(std::uint64_t)));
  return bits == nullptr ? nullptr : std::shared_ptr<Initialised>(new Initialised(size, bits));
}

InitialisedRange Initialised::Take(std::uint64_t offset, std::uint64_t size) const {
  InitialisedRange range;
  if (All(offset, size)) return range;
  range.whole = false;
  range.bits.resize((size + 63) / 64);
  for (std::uint64_t i = 0; i < range.bits.size(); ++i) {
    // Bits of bytes behind the object are those of the words' ends, which nobody looks at.
    const std::uint64_t at = offset + i * 64;
    if (at >= size_) break;
    const std::uint64_t word = at / 64, shift = at % 64;
    range.bits[i] = bits_[word] >> shift;
    if (shift != 0 && word + 1 <= size_ / 64) range.bits[i] |= bits_[word + 1] << (64 - shift);
  }
  return range;
}

void Initialised::Put(std::uint64_t offset, std::uint64_t size, const InitialisedRange& range) {
  if (range.whole) {
    Write(offset, size);
    return;
  }
  // What was written there before is no longer there: the copy's bytes are.
  const auto bit = [&](std::uint64_t i) { return range.bits[i / 64] >> i % 64 & 1; };
  ForWords(offset, size, [&](std::uint64_t word, std::uint64_t mask) {
    std::uint64_t now = 0;
    for (std::uint64_t left = mask; left != 0; left &= left - 1) {
      const auto at = static_cast<std::uint64_t>(__builtin_ctzll(left));
      now |= bit(word * 64 + at - offset) << at;
    }
    const std::uint64_t before = bits_[word] & mask;
    missing_ += static_cast<std::uint64_t>(__builtin_popcountll(before));
    missing_ -= static_cast<std::uint64_t>(__builtin_popcountll(now));
    bits_[word] = (bits_[word] & ~mask) | now;
    return true;
  });
}

}  // namespace allranks::node::check
