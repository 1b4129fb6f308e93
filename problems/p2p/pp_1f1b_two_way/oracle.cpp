// All stages step by step, each in the order of the statement, as soon as its input is there.
#include <allranks/oracle.h>

#include <algorithm>
#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  using Words = std::vector<std::uint32_t>;
  const auto micro = static_cast<std::size_t>(call.Param("micro"));
  const auto n = static_cast<std::size_t>(call.Param("n"));
  const std::size_t world = call.world();
  const auto in = call.In<std::uint32_t>(0, "in");
  const auto target = call.In<std::uint32_t>(call.world() - 1, "target");
  std::vector<Words> acts(world, Words(micro * n)), grads(world, Words(micro * n)), w(world);
  std::vector<std::size_t> forwards(world), backwards(world);  // steps done
  for (std::size_t s = 0; s < world; ++s) {
    const auto weights = call.In<std::uint32_t>(static_cast<int>(s), "weights");
    w[s].assign(weights.begin(), weights.end());
  }
  // Executes the next step of a stage, if its input is there.
  const auto advance = [&](std::size_t s) {
    const auto table = call.In<std::uint32_t>(static_cast<int>(s), "table");
    const auto step = [&](std::uint32_t v, std::uint32_t weight) {
      const std::uint32_t t = (v + weight) * 0x9E3779B1u;
      return t ^ table[t >> 17];
    };
    const std::size_t warm = std::min(micro, world - 1 - s);
    if (forwards[s] < micro && forwards[s] <= backwards[s] + warm) {
      if (s > 0 && forwards[s - 1] <= forwards[s]) return false;
      const std::size_t at = forwards[s]++ * n;
      for (std::size_t i = 0; i < n; ++i) {
        acts[s][at + i] = step(s == 0 ? in[at + i] : acts[s - 1][at + i], w[s][i]);
      }
    } else {
      if (backwards[s] == micro || (s + 1 < world && backwards[s + 1] <= backwards[s]))
        return false;
      const std::size_t at = backwards[s]++ * n;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t d = s + 1 == world ? target[at + i] : grads[s + 1][at + i];
        grads[s][at + i] = step(d ^ acts[s][at + i], w[s][i]);
        w[s][i] += grads[s][at + i];
      }
    }
    return true;
  };
  while (backwards[0] < micro) {
    for (std::size_t s = 0; s < world; ++s) {
      while (advance(s)) {
      }
    }
  }
  for (int rank = 0; rank < call.world(); ++rank) {
    check.Exact(rank, "acts", acts[rank]);
    check.Exact(rank, "grads", grads[rank]);
    check.Exact(rank, "new_weights", w[rank]);
  }
}

// The stages at the ends have one neighbour. A step follows those whose results it needs, one hop
// after those of neighbours; only the whole tables could shorten this. They travel through scratch,
// which takes two hops each time that it is filled, and may begin to do so one call earlier.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const std::int64_t micro = call.Param("micro"), n = call.Param("n"), last = call.world() - 1;
  floor.ingress = floor.egress =
      4.0 * ((rank > 0) + (rank < last)) * static_cast<double>(micro * n);
  // Hops before step m of a stage; all forward steps of m need only backward steps before m.
  std::vector<std::vector<std::int64_t>> forward(micro), backward(micro);
  for (std::int64_t m = 0; m < micro; ++m) {
    forward[m].resize(last + 1), backward[m].resize(last + 1);
    for (std::int64_t s = 0; s <= last; ++s) {
      const std::int64_t updated = m - 1 - (last - s);  // the last step back that it needs
      forward[m][s] =
          std::max(s > 0 ? forward[m][s - 1] + 1 : 0, updated >= 0 ? backward[updated][s] : 0);
    }
    for (std::int64_t s = last; s >= 0; --s) {
      backward[m][s] = std::max(
          {s < last ? backward[m][s + 1] + 1 : 0, forward[m][s], m > 0 ? backward[m - 1][s] : 0});
    }
  }
  const std::int64_t fillings = 131072 / (24 * n + 1024);
  floor.hops =
      static_cast<double>(std::max<std::int64_t>(1, std::min(backward[micro - 1][0], fillings)));
}
