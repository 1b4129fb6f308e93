// Sums over rows and over columns of the grid of ranks, within the error of any order of additions.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const int world = call.world(), cols = static_cast<int>(call.Param("cols"));
  for (int first = 0; first < world; first += cols) {
    std::vector<Piece> in, out;
    for (int r = first; r < world && r < first + cols; ++r) {
      in.push_back({r, "act"});
      out.push_back({r, "act_sum"});
    }
    check.Sum(in, out, call.Param("n"));
  }
  for (int first = 0; first < world && first < cols; ++first) {
    std::vector<Piece> in, out;
    for (int r = first; r < world; r += cols) {
      in.push_back({r, "grad"});
      out.push_back({r, "grad_sum"});
    }
    check.Sum(in, out, call.Param("m"));
  }
}

// Rows and columns of one rank need no link.
extern "C" void Floors(const Call& call, int rank, Floor& floor) {
  const int world = call.world(), cols = static_cast<int>(call.Param("cols"));
  const int row = rank / cols * cols;
  floor.ingress = 0;
  if (cols > 1 && row + 1 < world) floor.ingress += 4.0 * static_cast<double>(call.Param("n"));
  if (rank >= cols || rank + cols < world) {
    floor.ingress += 4.0 * static_cast<double>(call.Param("m"));
  }
  floor.egress = floor.ingress;
}
