// Segments of all receive buffers, from the counts of all ranks.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const std::int32_t world = call.world(), per = static_cast<std::int32_t>(call.Param("per"));
  const auto align = static_cast<std::int32_t>(call.Param("align"));
  std::vector<std::vector<std::int32_t>> send(world, std::vector<std::int32_t>(world * per));
  for (int holder = 0; holder < world; ++holder) {
    std::vector<std::int32_t> counts, offsets, starts = {0};
    for (int e = 0; e < per; ++e) {
      std::int32_t at = starts.back();
      for (int source = 0; source < world; ++source) {
        counts.push_back(call.In<std::int32_t>(source, "counts")[holder * per + e]);
        offsets.push_back(at);
        send[source][holder * per + e] = at;
        at += counts.back();
      }
      const std::int32_t rows = at - starts.back();
      starts.push_back(starts.back() + (rows + align - 1) / align * align);
    }
    check.Exact(holder, "recv_counts", counts);
    check.Exact(holder, "recv_offsets", offsets);
    check.Exact(holder, "expert_starts", starts);
  }
  for (int rank = 0; rank < world; ++rank) check.Exact(rank, "send_offsets", send[rank]);
}
