// Random PTX programs without data races: what they leave in memory depends on nothing but their
// text and input, so every order of execution must give the same bytes.
#pragma once

#include <cstdint>
#include <string>

namespace allranks::node::random {

struct Program {
  std::string text;  // one entry, `k(in, out, sums, exchange, arrived)`, all pointers
  std::uint32_t ctas = 1, threads = 32;
  std::uint32_t in_words = 0, out_words = 0, sum_words = 0, exchange_words = 0;
};

// The same seed gives the same program. With `racy` its barriers are left out: such a program must
// be found out.
Program Generate(std::uint64_t seed, bool racy = false);

}  // namespace allranks::node::random
