// SplitMix64 (Steele, Lea, Flood 2014): draws that depend on nothing but a seed, the same on every
// machine, which the standard's distributions do not promise.
#pragma once

#include <cstdint>

namespace allranks {

inline constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15u;

// The generator's output for a state.
constexpr std::uint64_t SplitMix(std::uint64_t state) {
  state = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
  state = (state ^ state >> 27) * 0x94d049bb133111ebu;
  return state ^ state >> 31;
}

// A draw or key of two numbers.
constexpr std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  return SplitMix(a * kSplitMixStep + b * 0xbf58476d1ce4e5b9u);
}

// The count-th draw of a seed's sequence, counted from 1.
constexpr std::uint64_t Draw(std::uint64_t seed, std::uint64_t count) {
  return SplitMix(seed + kSplitMixStep * count);
}

}  // namespace allranks
