// The flat parameters, rounded, row by row to where they are served.
#include <allranks/oracle.h>

#include <algorithm>
#include <bit>
#include <vector>

using namespace allranks::oracle;

namespace {
struct Sizes {
  explicit Sizes(const Call& call)
      : world(call.world()),
        cols(call.Param("cols")),
        queries(call.Param("q") * call.Param("dim")),
        keys(call.Param("kv") * call.Param("dim")),
        rows(1 + world * (queries + 2 * keys)),
        shard((rows * cols + 8 * world - 1) / (8 * world) * 8) {}
  std::int64_t world, cols, queries, keys;  // rows of query, key or value heads of a rank
  std::int64_t rows, shard;

  // Calls f(row of the trained layout, row of qkv) for all rows that a rank serves.
  template <class F>
  void Served(std::int64_t rank, F f) const {
    const std::int64_t own[] = {queries, keys, keys};
    std::int64_t trained = 1, served = 0;
    for (const std::int64_t part : own) {
      for (std::int64_t i = 0; i < part; ++i) f(trained + rank * part + i, served + i);
      trained += world * part, served += part;
    }
  }
};

// To nearest even; finite.
BF16 RoundBf16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const Sizes sizes(call);
  std::vector<BF16> flat;
  std::vector<std::uint32_t> versions;
  for (int rank = 0; rank < call.world(); ++rank) {
    for (const float x : call.In<float>(rank, "in")) flat.push_back(RoundBf16(x));
    versions.push_back(call.In<std::uint32_t>(rank, "version")[0]);
  }
  const std::span<const BF16> all(flat);
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "norm", all.first(sizes.cols));
    check.Exact(rank, "versions", versions);
    sizes.Served(rank, [&](std::int64_t trained, std::int64_t served) {
      check.ExactAt<BF16>(rank, "qkv", served * sizes.cols,
                          all.subspan(trained * sizes.cols, sizes.cols));
    });
  }
}

// What is not in the rank's own shard comes over links, and all of that leaves others.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const Sizes sizes(call);
  const auto inside = [&](std::int64_t row, std::int64_t owner) {
    const std::int64_t begin = std::max(row * sizes.cols, owner * sizes.shard);
    const std::int64_t end = std::min((row + 1) * sizes.cols, (owner + 1) * sizes.shard);
    return std::max<std::int64_t>(0, end - begin);
  };
  std::int64_t comes = sizes.cols - inside(0, rank), goes = (sizes.world - 1) * inside(0, rank);
  for (std::int64_t other = 0; other < sizes.world; ++other) {
    sizes.Served(other, [&](std::int64_t trained, std::int64_t) {
      if (other == rank) comes += sizes.cols - inside(trained, rank);
      if (other != rank) goes += inside(trained, rank);
    });
  }
  floor.ingress = 2.0 * static_cast<double>(comes);
  floor.egress = 2.0 * static_cast<double>(goes);
  floor.hbm = 4.0 * static_cast<double>(sizes.shard);
}
