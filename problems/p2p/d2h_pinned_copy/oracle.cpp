// The tile, row by row without gaps.
#include <allranks/oracle.h>

using namespace allranks::oracle;

extern "C" void Verify(const Call& call, Check& check) {
  const auto rows = static_cast<std::size_t>(call.Param("rows"));
  const auto width = static_cast<std::size_t>(call.Param("width"));
  const auto left = static_cast<std::size_t>(call.Param("left"));
  const std::size_t pitch = left + width + static_cast<std::size_t>(call.Param("right"));
  const auto in = call.In<std::uint8_t>(0, "in");
  for (std::size_t r = 0; r < rows; ++r) {
    check.ExactAt<std::uint8_t>(0, "out", r * width, in.subspan(r * pitch + left, width));
  }
}
