// fp32 additions in the order of the trees, which leave one result for each element.
#include <allranks/oracle.h>

using namespace allranks::oracle;

namespace {

struct Tree {
  const Call& call;
  bool second;
  std::int64_t begin, end;

  int RankAt(int v) const {
    if (!second) return v;
    return call.world() % 2 == 0 ? call.world() - 1 - v : (v + 1) % call.world();
  }
  std::vector<float> Sum(int v, int span) const {
    const auto in = call.In<float>(RankAt(v), "in").subspan(begin, end - begin);
    std::vector<float> sum(in.begin(), in.end());
    const auto add = [&](const std::vector<float>& x) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
    };
    if (v > 0 && span > 1) add(Sum(v - span / 2, span / 2));
    int h = span / 2;
    while (h > 0 && v + h >= call.world()) h /= 2;
    if (h > 0) add(Sum(v + h, h));
    return sum;
  }
};

}  // namespace

extern "C" void Verify(const Call& call, Check& check) {
  const std::int64_t n = call.Param("n"), half = (n + 7) / 8 * 4;
  int span = 1;
  while (span < call.world()) span *= 2;
  std::vector<float> sum = Tree{call, false, 0, half}.Sum(0, span);
  const std::vector<float> upper = Tree{call, true, half, n}.Sum(0, span);
  sum.insert(sum.end(), upper.begin(), upper.end());
  for (int rank = 0; rank < call.world(); ++rank) check.Exact(rank, "out", sum);
}
