// Received rows in the order (source, token), their metadata, and the answers weighted and added up
// in the order of ranks: all exact, floats too, since the statement fixes every operation.
#include <allranks/oracle.h>
#include <cmath>
#include <vector>

using namespace allranks::oracle;

namespace {

struct Routing {
  std::int64_t world, tokens, topk, per;
  std::vector<std::span<const std::int32_t>> experts;  // by rank
  std::vector<std::int64_t> slots;                     // by source, token, destination; -1: none
  std::vector<std::int64_t> rows;                      // by source, destination
  std::vector<std::int64_t> received;                  // by destination

  explicit Routing(const Call& call)
      : world(call.world()),
        tokens(call.Param("tokens")),
        topk(call.Param("topk")),
        per((call.Param("experts") + world - 1) / world),
        slots(static_cast<std::size_t>(world * tokens * world), -1),
        rows(static_cast<std::size_t>(world * world)),
        received(static_cast<std::size_t>(world)) {
    for (int source = 0; source < world; ++source) {
      experts.push_back(call.In<std::int32_t>(source, "expert_ids"));
      for (std::int64_t token = 0; token < tokens; ++token) {
        for (std::int64_t pick = 0; pick < topk; ++pick) {
          const std::int64_t rank = experts.back()[token * topk + pick] / per;
          std::int64_t& slot = slots[(source * tokens + token) * world + rank];
          if (slot >= 0) continue;
          slot = received[rank]++;
          ++rows[source * world + rank];
        }
      }
    }
  }
  std::int64_t Slot(int source, std::int64_t token, int destination) const {
    return slots[(source * tokens + token) * world + destination];
  }
};

// One fused multiply-add per element, as the statement says.
__attribute__((target_clones("default", "arch=x86-64-v3"))) void Accumulate(float gate,
                                                                            const float* y,
                                                                            std::int64_t width,
                                                                            float* sum) {
  for (std::int64_t i = 0; i < width; ++i) sum[i] = std::fmaf(gate, y[i], sum[i]);
}

void VerifyReceived(const Call& call, const Routing& routing, int rank, Check& check) {
  const std::int64_t width = 4 * call.Param("quads"), topk = routing.topk;
  std::vector<std::int32_t> from, experts, rows;
  for (int source = 0; source < routing.world; ++source) {
    rows.push_back(static_cast<std::int32_t>(routing.rows[source * routing.world + rank]));
    const auto x = call.In<std::uint32_t>(source, "x");
    for (std::int64_t token = 0; token < routing.tokens; ++token) {
      const std::int64_t slot = routing.Slot(source, token, rank);
      if (slot < 0) continue;
      check.ExactAt<std::uint32_t>(rank, "recv_x", slot * width, x.subspan(token * width, width));
      from.push_back(static_cast<std::int32_t>(source * routing.tokens + token));
      for (std::int64_t pick = 0; pick < topk; ++pick) {
        const std::int64_t expert = routing.experts[source][token * topk + pick];
        const bool here = expert / routing.per == rank;
        experts.push_back(static_cast<std::int32_t>(here ? expert - rank * routing.per : -1));
      }
    }
  }
  check.Untouched(rank, "recv_x", routing.received[rank] * width);
  check.Exact<std::int32_t>(rank, "recv_from", from);
  check.Exact<std::int32_t>(rank, "recv_experts", experts);
  check.Exact<std::int32_t>(rank, "recv_rows", rows);
}

void VerifyCombined(const Call& call, const Routing& routing, int rank, Check& check) {
  const std::int64_t width = 4 * call.Param("quads"), topk = routing.topk;
  const auto weights = call.In<float>(rank, "weights");
  std::vector<float> out(routing.tokens * width);
  for (std::int64_t token = 0; token < routing.tokens; ++token) {
    for (int expert_rank = 0; expert_rank < routing.world; ++expert_rank) {
      const std::int64_t slot = routing.Slot(rank, token, expert_rank);
      if (slot < 0) continue;
      float gate = 0;
      for (std::int64_t pick = token * topk; pick < (token + 1) * topk; ++pick) {
        if (routing.experts[rank][pick] / routing.per == expert_rank) gate += weights[pick];
      }
      Accumulate(gate, call.In<float>(expert_rank, "y").data() + slot * width, width,
                 out.data() + token * width);
    }
  }
  check.Exact<float>(rank, "out", out);
}

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const Routing routing(call);
  for (int rank = 0; rank < call.world(); ++rank) {
    VerifyReceived(call, routing, rank, check);
    VerifyCombined(call, routing, rank, check);
  }
}

// Rows and answers that must come to a rank or leave it, if others may forward them; and, for the
// busiest rank, the mean of what must cross links at all: a row for every token and rank other than
// its own, and an answer back.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const Routing routing(call);
  std::int64_t pairs = 0, leaving = 0;
  for (int source = 0; source < routing.world; ++source) {
    for (std::int64_t token = 0; token < routing.tokens; ++token) {
      bool leaves = false;
      for (int peer = 0; peer < routing.world; ++peer) {
        if (peer == source || routing.Slot(source, token, peer) < 0) continue;
        leaves = true;
        ++pairs;
      }
      leaving += leaves && source == rank;
    }
  }
  const std::int64_t came = routing.received[rank] - routing.rows[rank * routing.world + rank];
  const double row_bytes = 16.0 * static_cast<double>(call.Param("quads"));
  floor.ingress = floor.egress = static_cast<double>(came + leaving) * row_bytes;
  floor.busiest = 2.0 * static_cast<double>(pairs) / static_cast<double>(routing.world) * row_bytes;
}
