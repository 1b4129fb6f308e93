// Expected values: three sums over ranks, within the error of any order of fp32 additions.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const char* const kGradients[][2] = {
      {"grad_gate", "sum_gate"}, {"grad_up", "sum_up"}, {"grad_down", "sum_down"}};
  for (const auto& [from, to] : kGradients) {
    std::vector<Piece> in, out;
    for (int rank = 0; rank < call.world(); ++rank) {
      in.push_back({rank, from});
      out.push_back({rank, to});
    }
    check.Sum(in, out, call.Count(from));
  }
}
