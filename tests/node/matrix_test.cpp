// mma.sync against matrix algebra on the host. Where the elements of a lane stand is written here
// as in the figures of the PTX ISA ("Matrix Fragments for mma..."), shape by shape, and not derived
// from the rule that the implementation uses.
#include <functional>

#include "matrix_fixture.h"

namespace allranks::node {
namespace {

struct At {
  int row, col;
};
using Layout = std::function<At(int lane, int i)>;

struct Shape {
  int m, n, k, bits;
  Layout a, b;
};

int G(int lane) { return lane >> 2; }  // groupID
int T(int lane) { return lane % 4; }   // threadID_in_group

// C and D of m16n8 and m8n8: row = groupID for i < 2, groupID + 8 otherwise.
At Accumulator(int lane, int i) { return {G(lane) + (i < 2 ? 0 : 8), T(lane) * 2 + (i & 1)}; }

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  const auto add = [&](int m, int k, int bits, Layout a, Layout b) {
    shapes.push_back({m, 8, k, bits, std::move(a), std::move(b)});
  };
  // m8n8k4 .f64
  add(
      8, 4, 64, [](int l, int) { return At{G(l), T(l)}; },
      [](int l, int) { return At{T(l), G(l)}; });
  // m16n8k4 .f64
  add(
      16, 4, 64, [](int l, int i) { return At{i == 0 ? G(l) : G(l) + 8, T(l)}; },
      [](int l, int) { return At{T(l), G(l)}; });
  // m16n8k8 .f64
  add(
      16, 8, 64,
      [](int l, int i) { return At{i == 0 || i == 2 ? G(l) : G(l) + 8, i < 2 ? T(l) : T(l) + 4}; },
      [](int l, int i) { return At{i == 0 ? T(l) : T(l) + 4, G(l)}; });
  // m16n8k16 .f64
  add(
      16, 16, 64,
      [](int l, int i) {
        return At{i % 2 == 0 ? G(l) : G(l) + 8, i % 2 == 0 ? i * 2 + T(l) : i * 2 - 2 + T(l)};
      },
      [](int l, int i) { return At{T(l) + i * 4, G(l)}; });
  // m16n8k4 .tf32
  add(
      16, 4, 32, [](int l, int i) { return At{i == 0 ? G(l) : G(l) + 8, T(l)}; },
      [](int l, int) { return At{T(l), G(l)}; });
  // m16n8k8 .tf32
  add(
      16, 8, 32,
      [](int l, int i) { return At{i == 0 || i == 2 ? G(l) : G(l) + 8, i < 2 ? T(l) : T(l) + 4}; },
      [](int l, int i) { return At{i == 0 ? T(l) : T(l) + 4, G(l)}; });
  // m16n8k8 .f16, .bf16
  add(
      16, 8, 16, [](int l, int i) { return At{i < 2 ? G(l) : G(l) + 8, T(l) * 2 + (i & 1)}; },
      [](int l, int i) { return At{T(l) * 2 + i, G(l)}; });
  // m16n8k16 .f16, .bf16
  add(
      16, 16, 16,
      [](int l, int i) {
        const bool low = (0 <= i && i < 2) || (4 <= i && i < 6);
        return At{low ? G(l) : G(l) + 8, T(l) * 2 + (i & 1) + (i < 4 ? 0 : 8)};
      },
      [](int l, int i) { return At{T(l) * 2 + (i & 1) + (i < 2 ? 0 : 8), G(l)}; });
  // m8n8k16 of 8 bits
  add(
      8, 16, 8, [](int l, int i) { return At{G(l), T(l) * 4 + i}; },
      [](int l, int i) { return At{T(l) * 4 + i, G(l)}; });
  // m16n8k16 of 8 bits
  add(
      16, 16, 8, [](int l, int i) { return At{i < 4 ? G(l) : G(l) + 8, T(l) * 4 + (i & 3)}; },
      [](int l, int i) { return At{T(l) * 4 + i, G(l)}; });
  // m16n8k32 of 8 bits
  add(
      16, 32, 8,
      [](int l, int i) {
        const bool low = (0 <= i && i < 4) || (8 <= i && i < 12);
        return At{low ? G(l) : G(l) + 8, T(l) * 4 + (i & 3) + (i < 8 ? 0 : 16)};
      },
      [](int l, int i) { return At{T(l) * 4 + (i & 3) + (i < 4 ? 0 : 16), G(l)}; });
  // m8n8k32 of 4 bits
  add(
      8, 32, 4, [](int l, int i) { return At{G(l), T(l) * 8 + i}; },
      [](int l, int i) { return At{T(l) * 8 + i, G(l)}; });
  // m16n8k32 of 4 bits
  add(
      16, 32, 4, [](int l, int i) { return At{i < 8 ? G(l) : G(l) + 8, T(l) * 8 + (i & 7)}; },
      [](int l, int i) { return At{T(l) * 8 + (i & 7), G(l)}; });
  // m16n8k64 of 4 bits
  add(
      16, 64, 4,
      [](int l, int i) {
        const bool low = (0 <= i && i < 8) || (16 <= i && i < 24);
        return At{low ? G(l) : G(l) + 8, T(l) * 8 + (i & 7) + (i < 16 ? 0 : 32)};
      },
      [](int l, int i) { return At{T(l) * 8 + (i & 7) + (i < 8 ? 0 : 32), G(l)}; });
  // m8n8k128 .b1
  add(
      8, 128, 1, [](int l, int i) { return At{G(l), T(l) * 32 + i}; },
      [](int l, int i) { return At{T(l) * 32 + i, G(l)}; });
  // m16n8k128 .b1
  add(
      16, 128, 1, [](int l, int i) { return At{i < 32 ? G(l) : G(l) + 8, T(l) * 32 + (i & 31)}; },
      [](int l, int i) { return At{T(l) * 32 + i, G(l)}; });
  // m16n8k256 .b1
  add(
      16, 256, 1,
      [](int l, int i) {
        const bool low = (0 <= i && i < 32) || (64 <= i && i < 96);
        return At{low ? G(l) : G(l) + 8, T(l) * 32 + (i & 31) + (i < 64 ? 0 : 128)};
      },
      [](int l, int i) { return At{T(l) * 32 + (i & 31) + (i < 32 ? 0 : 128), G(l)}; });
  return shapes;
}

using Matrix = std::vector<std::vector<int>>;

class MatrixTest : public MatrixFixture {
 protected:
  Matrix RandomMatrix(int rows, int cols, const Format& format) {
    Matrix out(static_cast<std::size_t>(rows), std::vector<int>(static_cast<std::size_t>(cols)));
    for (auto& row : out) {
      for (int& v : row) v = Number(format.low, format.high);
    }
    return out;
  }

  // The registers of a fragment, each lane's elements placed by `layout`.
  static Words Fragment(const Matrix& x, const std::string& type, int per_lane,
                        const Layout& layout) {
    std::vector<std::vector<std::uint64_t>> lanes(32);
    for (int l = 0; l < 32; ++l) {
      for (int i = 0; i < per_lane; ++i) {
        const At at = layout(l, i);
        lanes[static_cast<std::size_t>(l)].push_back(
            Encode(type, x[static_cast<std::size_t>(at.row)][static_cast<std::size_t>(at.col)]));
      }
    }
    return Pack(lanes, FormatOf(type).bits);
  }

  // One mma with random factors, compared exactly.
  void Check(const Shape& s, const std::string& a_type, const std::string& b_type,
             const std::string& c_type, const std::string& d_type, const std::string& before = "",
             const std::string& after = "", const std::string& kind = "") {
    const Format fa = FormatOf(a_type), fb = FormatOf(b_type);
    Format fc = FormatOf(c_type);
    if (before == ".satfinite") fc = {c_type, 32, INT32_MAX - 2000, INT32_MAX};
    const Matrix a = RandomMatrix(s.m, s.k, fa), b = RandomMatrix(s.k, 8, fb),
                 c = RandomMatrix(s.m, 8, fc);
    const int na = s.m * s.k / 32, nb = s.k * 8 / 32, nc = s.m * 8 / 32;
    const Words wa = Fragment(a, a_type, na, s.a), wb = Fragment(b, b_type, nb, s.b),
                wc = Fragment(c, c_type, nc, Accumulator);
    const bool wide = fa.bits == 64;
    const int unit = wide ? 64 : 32;
    const int ra = static_cast<int>(wa.size()) / unit, rb = static_cast<int>(wb.size()) / unit,
              rc = static_cast<int>(wc.size()) / unit;
    const int rd = nc * FormatOf(d_type).bits / unit;
    Words in = wa;
    in.insert(in.end(), wb.begin(), wb.end());
    in.insert(in.end(), wc.begin(), wc.end());
    const std::string name =
        fmt::format("mma.sync.aligned{}.m{}n8k{}.row.col{}.{}.{}.{}.{}{}", kind, s.m, s.k, before,
                    d_type, a_type, b_type, c_type, after);
    const std::string body =
        Load("a", ra, 0, wide) + Load("b", rb, static_cast<int>(wa.size()), wide) +
        Load("c", rc, static_cast<int>(wa.size() + wb.size()), wide) +
        fmt::format("  .reg .b{} %d<{}>;\n  {} {}, {}, {}, {};\n", unit, rd + 1, name,
                    Vector("d", rd), Vector("a", ra), Vector("b", rb), Vector("c", rc)) +
        Store("d", rd, wide);
    const Words got = Run(body, in, static_cast<std::size_t>(rd * unit));
    Matrix d(static_cast<std::size_t>(s.m), std::vector<int>(8));
    for (std::size_t i = 0; i < d.size(); ++i) {
      for (std::size_t j = 0; j < 8; ++j) {
        std::int64_t sum = c[i][j];
        for (std::size_t k = 0; k < b.size(); ++k) {
          sum += after == ".xor.popc"   ? a[i][k] ^ b[k][j]
                 : after == ".and.popc" ? a[i][k] & b[k][j]
                                        : a[i][k] * b[k][j];
        }
        if (before == ".satfinite") sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
        d[i][j] = static_cast<int>(sum);
      }
    }
    EXPECT_EQ(got, Fragment(d, d_type, nc, Accumulator)) << name;
  }
};

TEST_F(MatrixTest, MmaOfEveryShapeAndType) {
  int checked = 0;
  for (const Shape& s : Shapes()) {
    const auto check = [&](const std::vector<std::string>& types, const std::string& before = "",
                           const std::string& after = "") {
      for (int round = 0; round < 3; ++round, ++checked) {
        Check(s, types[0], types[1], types[2], types[3], before, after);
      }
    };
    if (s.bits == 64) check({"f64", "f64", "f64", "f64"});
    if (s.bits == 32) check({"tf32", "tf32", "f32", "f32"});
    if (s.bits == 16) {
      check({"f16", "f16", "f32", "f32"});
      check({"f16", "f16", "f16", "f16"});
      check({"bf16", "bf16", "f32", "f32"});
    }
    if (s.bits == 8) {
      for (const std::string a : {"s8", "u8"}) {
        for (const std::string b : {"s8", "u8"}) {
          check({a, b, "s32", "s32"});
          check({a, b, "s32", "s32"}, ".satfinite");
        }
      }
      if (s.m == 16) {
        for (const std::string a : {"e4m3", "e5m2"}) {
          for (const std::string b : {"e4m3", "e5m2"}) {
            check({a, b, "f32", "f32"});
            check({a, b, "f16", "f16"});
          }
        }
      }
    }
    if (s.bits == 4) {
      for (const std::string a : {"s4", "u4"}) {
        for (const std::string b : {"s4", "u4"}) {
          check({a, b, "s32", "s32"});
          check({a, b, "s32", "s32"}, ".satfinite");
        }
      }
    }
    if (s.bits == 1) {
      check({"b1", "b1", "s32", "s32"}, "", ".xor.popc");
      check({"b1", "b1", "s32", "s32"}, "", ".and.popc");
    }
  }
  EXPECT_EQ(checked, 3 * (4 + 2 + 2 * 3 + 3 * 8 + 2 * 8 + 3 * 8 + 3 * 2));
}

// mma with .kind::f8f6f4 (PTX ISA 8.7): numbers of six and four bits, each in a byte.
TEST_F(MatrixTest, MmaOfNarrowFloats) {
  const std::vector<std::string> types = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};
  for (const Shape& s : Shapes()) {
    if (s.bits != 8 || s.k != 32) continue;
    for (const std::string& a : types) {
      for (const std::string& b : types) {
        Check(s, a, b, "f32", "f32", "", "", ".kind::f8f6f4");
        Check(s, a, b, "f16", "f16", "", "", ".kind::f8f6f4");
      }
    }
  }
}

// "Matrix Fragments for mma.m8n8k4 with .f16 floating point type": four products, the q-th by lanes
// 4q ... 4q+3 and 4q+16 ... 4q+19.
TEST_F(MatrixTest, MmaOfQuadPairs) {
  const auto quad = [](int lane) { return lane % 16 / 4; };
  for (const bool a_row : {true, false}) {
    for (const bool b_row : {true, false}) {
      for (const std::string type : {"f16", "f32"}) {
        // The four matrices below each other (A, C, D) and side by side (B).
        const Matrix a = RandomMatrix(32, 4, FormatOf("f16")),
                     b = RandomMatrix(4, 32, FormatOf("f16")),
                     c = RandomMatrix(32, 8, FormatOf(type));
        const Layout la = [&](int l, int i) {
          const int high = l < 16 ? 0 : 4, block = 8 * quad(l);
          return a_row ? At{block + l % 4 + high, i} : At{block + i % 4 + high, l % 4};
        };
        const Layout lb = [&](int l, int i) {
          const int high = l < 16 ? 0 : 4, block = 8 * quad(l);
          return b_row ? At{l % 4, block + i + high} : At{i, block + l % 4 + high};
        };
        const Layout lc = [&](int l, int i) {
          const int high = l < 16 ? 0 : 4, block = 8 * quad(l);
          if (type == "f16") return At{block + l % 4 + high, i};
          return At{block + (l & 1) + (i & 2) + high, (i & 4) + (l & 2) + (i & 1)};
        };
        const Words wa = Fragment(a, "f16", 4, la), wb = Fragment(b, "f16", 4, lb),
                    wc = Fragment(c, type, 8, lc);
        Words in = wa;
        in.insert(in.end(), wb.begin(), wb.end());
        in.insert(in.end(), wc.begin(), wc.end());
        const int rc = static_cast<int>(wc.size()) / 32;
        const std::string body =
            Load("a", 2, 0) + Load("b", 2, 64) + Load("c", rc, 128) +
            fmt::format(
                "  .reg .b32 %d<9>;\n  mma.sync.aligned.m8n8k4.{}.{}.{}.f16.f16.{} {}, {}, "
                "{}, {};\n",
                a_row ? "row" : "col", b_row ? "row" : "col", type, type, Vector("d", rc),
                Vector("a", 2), Vector("b", 2), Vector("c", rc)) +
            Store("d", rc);
        Matrix d = c;
        for (std::size_t i = 0; i < 32; ++i) {
          for (std::size_t j = 0; j < 8; ++j) {
            for (std::size_t k = 0; k < 4; ++k) d[i][j] += a[i][k] * b[k][i / 8 * 8 + j];
          }
        }
        EXPECT_EQ(Run(body, in, wc.size()), Fragment(d, type, 8, lc)) << a_row << b_row << type;
      }
    }
  }
}

TEST_F(MatrixTest, SumsAreRoundedToHalfOnceAndNansAreCanonical) {
  // m16n8k8: row 0 of A is {2048, 1, 1, ...}, column 0 of B all ones. 2048 + 7 = 2055 is not a half
  // (they are two apart there): it rounds to even, 2056. Adding halves one by one would stay at
  // 2048.
  std::vector<std::vector<std::uint64_t>> a(32), b(32), c(32);
  for (int l = 0; l < 32; ++l) {
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? G(l) : G(l) + 8, col = T(l) * 2 + (i & 1);
      std::uint64_t value = row == 0 ? Encode("f16", col == 0 ? 2048 : 1) : 0;
      if (row == 1 && col == 0) value = 0xfe01;  // some NaN
      if (row == 2 && col == 0) value = 0x7c00;  // infinity
      a[static_cast<std::size_t>(l)].push_back(value);
    }
    for (int i = 0; i < 2; ++i) {
      b[static_cast<std::size_t>(l)].push_back(G(l) == 0 ? Encode("f16", 1) : 0);
    }
    c[static_cast<std::size_t>(l)] = {0, 0, 0, 0};
  }
  Words in = Pack(a, 16);
  for (const Words& w : {Pack(b, 16), Pack(c, 16)}) in.insert(in.end(), w.begin(), w.end());
  const std::string body = Load("a", 2, 0) + Load("b", 1, 64) + Load("c", 2, 96) +
                           "  .reg .b32 %d<3>;\n"
                           "  mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%d0, %d1}, "
                           "{%a0, %a1}, {%b0}, {%c0, %c1};\n" +
                           Store("d", 2);
  const Words got = Run(body, in, 64);
  ASSERT_EQ(got.size(), 64u);
  EXPECT_EQ(got[0] & 0xffff, Encode("f16", 2056));
  EXPECT_EQ(got[4] & 0xffff, 0x7fffu);  // row 1
  EXPECT_EQ(got[8] & 0xffff, 0x7c00u);  // row 2: infinity * 1 ...
  EXPECT_EQ(got[8] >> 16, 0x7fffu);     // ... and * 0
}

}  // namespace
}  // namespace allranks::node
