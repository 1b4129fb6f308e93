// Answers of each version, from the columns that the ranks have trained.
#include <allranks/oracle.h>

#include <vector>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto world = static_cast<std::size_t>(call.world());
  const auto size = [&](const char* name) { return static_cast<std::size_t>(call.Param(name)); };
  const std::size_t versions = size("versions"), rows = size("rows"), part = size("part");
  const std::size_t queries = size("queries"), columns = world * part;
  const auto x = call.In<std::uint32_t>(0, "x");
  for (std::size_t t = 0; t < world; ++t) {
    std::vector<std::uint32_t> answers(versions * queries * rows, 0);
    for (std::size_t s = 0; s < world; ++s) {
      const auto in = call.In<std::uint32_t>(static_cast<int>(s), "in");
      for (std::size_t v = 0; v < versions; ++v) {
        for (std::size_t j = 0; j < rows; ++j) {
          const auto w = in.subspan(((v * world + t) * rows + j) * part, part);
          for (std::size_t q = 0; q < queries; ++q) {
            std::uint32_t& sum = answers[(v * queries + q) * rows + j];
            for (std::size_t k = 0; k < part; ++k) sum += w[k] * x[q * columns + s * part + k];
          }
        }
      }
    }
    check.Exact(static_cast<int>(t), "out", answers);
  }
}
