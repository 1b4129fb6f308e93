// Matrix instructions that move rather than compute: ldmatrix, stmatrix and movmatrix; how a warp
// meets in them, and what faults. Also redux.sync of f32, which meets by its member mask.
#include <bit>

#include "matrix_fixture.h"

namespace allranks::node {
namespace {

using MatrixRowsTest = MatrixFixture;

// PTX ISA, ldmatrix: thread 8j + r has the address of row r of matrix j; thread 4r + t receives
// elements 2t and 2t+1 of row r, with .trans of column r.
TEST_F(MatrixRowsTest, LdmatrixAndStmatrix) {
  for (const int count : {1, 2, 4}) {
    for (const bool trans : {false, true}) {
      for (const std::string space : {".shared", ".shared::cta", ""}) {
        std::vector<std::uint16_t> image(32 * 8);
        for (auto& v : image) v = static_cast<std::uint16_t>(random_());
        Words in(128);
        std::memcpy(in.data(), image.data(), 512);
        // Row r of the image goes to row 31 - r of the tile, so that addresses are not in order.
        const std::string head = R"(
  mov.u32 %s2, tile;
  mul.lo.u32 %s3, %lane, 16;
  sub.u32 %s4, 496, %s3;
  add.u32 %s2, %s2, %s4;
  cvt.u64.u32 %rd4, %s3;
  add.s64 %rd4, %rd1, %rd4;
  ld.global.v4.b32 {%s5, %s6, %s7, %s8}, [%rd4];
  st.shared.v4.b32 [%s2], {%s5, %s6, %s7, %s8};
  cvt.u64.u32 %rd5, %s2;
  cvta.shared.u64 %rd5, %rd5;
  bar.sync 0;
)";
        const std::string address = space.empty() ? "%rd5" : "%s2";
        const std::string name =
            fmt::format("sync.aligned.m8n8.x{}{}{}.b16", count, trans ? ".trans" : "", space);
        const std::string body =
            head + "  .reg .b32 %d<5>;\n" +
            fmt::format("  ldmatrix.{} {}, [{}];\n", name, Vector("d", count), address) +
            Store("d", count);
        const Words got = Run(body, in, static_cast<std::size_t>(count) * 32);
        Words want(static_cast<std::size_t>(count) * 32);
        for (std::size_t j = 0; j < static_cast<std::size_t>(count); ++j) {
          for (std::size_t l = 0; l < 32; ++l) {
            const std::size_t r = l / 4, c = l % 4 * 2;
            const auto element = [&](std::size_t row, std::size_t col) -> std::uint32_t {
              return image[(8 * j + row) * 8 + col];
            };
            want[j * 32 + l] = trans ? element(c, r) | element(c + 1, r) << 16
                                     : element(r, c) | element(r, c + 1) << 16;
          }
        }
        EXPECT_EQ(got, want) << name;

        // stmatrix is its inverse: what was loaded is stored over a cleared tile.
        const std::string back =
            head + "  .reg .b32 %d<5>;\n" +
            fmt::format("  ldmatrix.{} {}, [{}];\n", name, Vector("d", count), address) +
            "  bar.sync 0;\n  st.shared.v4.b32 [%s2], {0, 0, 0, 0};\n  bar.sync 0;\n" +
            fmt::format("  stmatrix.{} [{}], {};\n", name, address, Vector("d", count)) +
            R"(  bar.sync 0;
  ld.shared.v4.b32 {%s5, %s6, %s7, %s8}, [%s2];
  cvt.u64.u32 %rd4, %s3;
  add.s64 %rd4, %rd2, %rd4;
  st.global.v4.b32 [%rd4], {%s5, %s6, %s7, %s8};
)";
        Words kept = in;
        std::fill(kept.begin() + count * 32, kept.end(), 0);
        EXPECT_EQ(Run(back, in, 128), kept) << name;
      }
    }
  }
}

TEST_F(MatrixRowsTest, Movmatrix) {
  Words in(32);
  std::uint16_t matrix[8][8];
  for (auto& row : matrix) {
    for (auto& v : row) v = static_cast<std::uint16_t>(random_());
  }
  std::memcpy(in.data(), matrix, 128);  // thread 4r + t: columns 2t, 2t+1 of row r
  Words want(32);
  for (std::size_t l = 0; l < 32; ++l) {
    want[l] = matrix[l % 4 * 2][l / 4] | std::uint32_t{matrix[l % 4 * 2 + 1][l / 4]} << 16;
  }
  EXPECT_EQ(Run(Load("a", 1, 0) +
                    "  .reg .b32 %d<2>;\n"
                    "  movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;\n" +
                    Store("d", 1),
                in, 32),
            want);
}

// Lanes that come on different ways wait for each other.
TEST_F(MatrixRowsTest, LanesMeet) {
  Words in(32);
  for (std::size_t l = 0; l < 32; ++l) in[l] = static_cast<std::uint32_t>(l * 0x10001);
  const std::string straight = Load("a", 1, 0) +
                               "  .reg .b32 %d<2>;\n"
                               "  movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;\n" +
                               Store("d", 1);
  const std::string parted = Load("a", 1, 0) + R"(
  .reg .b32 %d<2>;
  setp.lt.u32 %p1, %lane, 7;
  @%p1 bra SLOW;
  bra MEET;
SLOW:
  mov.u32 %s9, 0;
LOOP:
  add.u32 %s9, %s9, 1;
  setp.lt.u32 %p2, %s9, 5000;
  @%p2 bra LOOP;
MEET:
  movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;
)" + Store("d", 1);
  const Words want = Run(straight, in, 32);
  ASSERT_EQ(want.size(), 32u);
  EXPECT_EQ(Run(parted, in, 32), want);
}

// Lanes that have ended are not waited for, also if they end later.
TEST_F(MatrixRowsTest, LanesThatEndAreNotWaitedFor) {
  Words in(32);
  for (std::size_t l = 0; l < 32; ++l) in[l] = static_cast<std::uint32_t>(l * 0x10001);
  const std::string body = Load("a", 1, 0) + R"(
  .reg .b32 %d<2>;
  setp.lt.u32 %p1, %lane, 7;
  @%p1 bra SLOW;
  movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;
)" + Store("d", 1) + R"(
  ret;
SLOW:
  mov.u32 %s9, 0;
LOOP:
  add.u32 %s9, %s9, 1;
  setp.lt.u32 %p2, %s9, 5000;
  @%p2 bra LOOP;
)";
  const Words got = Run(body, in, 32);
  ASSERT_EQ(got.size(), 32u);
  // Lane 31 has elements 6 and 7 of column 7: from lanes 27 and 31.
  EXPECT_EQ(got[31], 27u | 31u << 16);
}

// redux.sync of f32 (PTX ISA 8.6): NaNs are left out unless .NaN is given; -0 is less than +0.
TEST_F(MatrixRowsTest, ReduxOfFloats) {
  const std::uint32_t nan = 0x7fc00001, canonical = 0x7fffffff;
  const auto bits = [](float f) { return std::bit_cast<std::uint32_t>(f); };
  Words plain(32, bits(1.5f)), zeros(32, bits(0.0f)), nans(32, nan);
  plain[3] = bits(-7.25f);
  plain[30] = bits(6.0f);
  zeros[9] = bits(-0.0f);
  Words mixed = plain;
  mixed[11] = nan;
  struct {
    std::string op;
    Words in;
    std::uint32_t want;
  } const cases[] = {{"min", plain, bits(-7.25f)},     {"max", plain, bits(6.0f)},
                     {"min.abs", plain, bits(1.5f)},   {"max.abs", plain, bits(7.25f)},
                     {"min", zeros, bits(-0.0f)},      {"max", zeros, bits(0.0f)},
                     {"min", mixed, bits(-7.25f)},     {"max.abs", mixed, bits(7.25f)},
                     {"min.NaN", mixed, canonical},    {"max.abs.NaN", mixed, canonical},
                     {"min.NaN", plain, bits(-7.25f)}, {"max", nans, canonical}};
  for (const auto& c : cases) {
    const std::string body =
        Load("a", 1, 0) +
        fmt::format("  .reg .b32 %d<2>;\n  redux.sync.{}.f32 %d0, %a0, 0xffffffff;\n", c.op) +
        Store("d", 1);
    EXPECT_EQ(Run(body, c.in, 32), Words(32, c.want)) << c.op;
  }
}

TEST_F(MatrixRowsTest, RowsOutsideSharedMemoryFault) {
  const std::string body = R"(
  .reg .b32 %d<5>;
  mov.u32 %s2, 1073741824;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%s2];
)" + Store("d", 4);
  Run(body, Words(32), 128);
  EXPECT_NE(machine_->StickyError(process_, 0), Status::kSuccess);
}

TEST_F(MatrixRowsTest, RowsMustBeAligned) {
  const std::string body = R"(
  .reg .b32 %d<5>;
  mov.u32 %s2, 8;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0, %d1, %d2, %d3}, [%s2];
)" + Store("d", 4);
  Run(body, Words(32), 128);
  EXPECT_NE(machine_->StickyError(process_, 0), Status::kSuccess);
}

}  // namespace
}  // namespace allranks::node
