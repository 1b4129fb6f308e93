// wmma and wgmma against matrix algebra on the host: wmma as a whole from memory to memory, since
// its fragments are opaque; wgmma with shared memory laid out as in the figures of the PTX ISA
// ("Shared Memory Matrix Layout", "Register Fragments for wgmma.mma_async.m64nNk16").
#include <functional>

#include "matrix_fixture.h"

namespace allranks::node {
namespace {

using Matrix = std::vector<std::vector<int>>;

class MatrixTilesTest : public MatrixFixture {
 protected:
  Matrix RandomMatrix(int rows, int cols, const Format& format) {
    Matrix out(static_cast<std::size_t>(rows), std::vector<int>(static_cast<std::size_t>(cols)));
    for (auto& row : out) {
      for (int& v : row) v = Number(format.low, format.high);
    }
    return out;
  }
  static Matrix Product(const Matrix& a, const Matrix& b, Matrix d, bool bits = false) {
    for (std::size_t i = 0; i < d.size(); ++i) {
      for (std::size_t j = 0; j < d[i].size(); ++j) {
        for (std::size_t k = 0; k < b.size(); ++k) {
          d[i][j] += bits ? a[i][k] ^ b[k][j] : a[i][k] * b[k][j];
        }
      }
    }
    return d;
  }
  // A matrix in memory with a stride in elements.
  static std::vector<std::uint8_t> Image(const Matrix& x, const std::string& type, bool row_major,
                                         int stride) {
    const int bits = FormatOf(type).bits;
    const std::size_t rows = x.size(), cols = x[0].size();
    std::vector<std::uint8_t> out((row_major ? rows : cols) * static_cast<std::size_t>(stride) *
                                      static_cast<std::size_t>(bits) / 8 +
                                  8);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < cols; ++j) {
        const std::size_t at = row_major ? i * static_cast<std::size_t>(stride) + j
                                         : j * static_cast<std::size_t>(stride) + i;
        const std::uint64_t value = Encode(type, x[i][j]);
        if (bits < 8) {
          const std::size_t bit = at * static_cast<std::size_t>(bits);
          out[bit / 8] |= static_cast<std::uint8_t>((value & ((1u << bits) - 1)) << bit % 8);
        } else {
          std::memcpy(out.data() + at * static_cast<std::size_t>(bits) / 8, &value,
                      static_cast<std::size_t>(bits) / 8);
        }
      }
    }
    return out;
  }
};

struct WmmaCase {
  int m, n, k;
  std::string a, b, c, d;
  int as, bs, cs, ds;  // registers
  bool sub_byte;
};

TEST_F(MatrixTilesTest, WmmaFromMemoryToMemory) {
  std::vector<WmmaCase> cases;
  for (const auto& [m, n] : {std::pair{16, 16}, {8, 32}, {32, 8}}) {
    for (const std::string c : {"f16", "f32"}) {
      for (const std::string d : {"f16", "f32"}) {
        cases.push_back(
            {m, n, 16, "f16", "f16", c, d, 8, 8, c == "f16" ? 4 : 8, d == "f16" ? 4 : 8, false});
      }
    }
    cases.push_back({m, n, 16, "bf16", "bf16", "f32", "f32", m / 4, n / 4, 8, 8, false});
    cases.push_back({m, n, 16, "s8", "s8", "s32", "s32", m / 8, n / 8, 8, 8, false});
    cases.push_back({m, n, 16, "u8", "u8", "s32", "s32", m / 8, n / 8, 8, 8, false});
  }
  cases.push_back({16, 16, 8, "tf32", "tf32", "f32", "f32", 4, 4, 8, 8, false});
  cases.push_back({8, 8, 4, "f64", "f64", "f64", "f64", 1, 1, 2, 2, false});
  cases.push_back({8, 8, 32, "s4", "s4", "s32", "s32", 1, 1, 2, 2, true});
  cases.push_back({8, 8, 32, "u4", "u4", "s32", "s32", 1, 1, 2, 2, true});
  cases.push_back({8, 8, 128, "b1", "b1", "s32", "s32", 1, 1, 2, 2, true});
  for (const WmmaCase& x : cases) {
    for (int layouts = 0; layouts < 8; ++layouts) {
      const bool a_row = (layouts & 1) == 0, b_row = (layouts & 2) != 0, c_row = (layouts & 4) == 0;
      if (x.sub_byte && (!a_row || b_row)) continue;
      const Matrix a = RandomMatrix(x.m, x.k, FormatOf(x.a)),
                   b = RandomMatrix(x.k, x.n, FormatOf(x.b)),
                   c = RandomMatrix(x.m, x.n, FormatOf(x.c));
      // Strides of more than a row, in multiples of 16 bytes.
      const auto stride = [&](const std::string& type, int contiguous) {
        const int step = 128 / FormatOf(type).bits;
        return (contiguous + step - 1) / step * step + step;
      };
      const int lda = stride(x.a, a_row ? x.k : x.m), ldb = stride(x.b, b_row ? x.n : x.k),
                ldc = stride(x.c, c_row ? x.n : x.m), ldd = stride(x.d, c_row ? x.n : x.m);
      Words in(4096);
      const auto put = [&](std::size_t word, const std::vector<std::uint8_t>& bytes) {
        ASSERT_LE(bytes.size(), 5000u);
        std::memcpy(in.data() + word, bytes.data(), bytes.size());
      };
      put(0, Image(a, x.a, a_row, lda));
      put(1280, Image(b, x.b, b_row, ldb));
      put(2560, Image(c, x.c, c_row, ldc));
      const bool wide = x.a == "f64";
      const std::string shape = fmt::format("m{}n{}k{}", x.m, x.n, x.k);
      const auto layout = [](bool row) { return row ? "row" : "col"; };
      const std::string types = x.a == "f16" ? fmt::format("{}.{}", x.d, x.c)
                                             : fmt::format("{}.{}.{}.{}", x.d, x.a, x.b, x.c);
      const std::string body =
          fmt::format("  .reg .b{} %a<9>, %b<9>, %c<9>, %d<9>;\n", wide ? 64 : 32) +
          fmt::format("  wmma.load.a.sync.aligned.{}.{}.global.{} {}, [%rd1], {};\n", layout(a_row),
                      shape, x.a, Vector("a", x.as), lda) +
          fmt::format("  mov.u32 %s3, {};\n", ldb) +
          fmt::format("  wmma.load.b.sync.aligned.{}.{}.{} {}, [%rd1+5120], %s3;\n", layout(b_row),
                      shape, x.b, Vector("b", x.bs)) +
          fmt::format("  wmma.load.c.sync.aligned.{}.{}.global.{} {}, [%rd1+10240], {};\n",
                      layout(c_row), shape, x.c, Vector("c", x.cs), ldc) +
          fmt::format("  wmma.mma{}.sync.aligned.{}.{}.{}.{} {}, {}, {}, {};\n",
                      x.a == "b1" ? ".xor.popc" : "", layout(a_row), layout(b_row), shape, types,
                      Vector("d", x.ds), Vector("a", x.as), Vector("b", x.bs), Vector("c", x.cs)) +
          fmt::format("  wmma.store.d.sync.aligned.{}.{}.global.{} [%rd2], {}, {};\n",
                      layout(c_row), shape, x.d, Vector("d", x.ds), ldd);
      const auto want = Image(Product(a, b, c, x.a == "b1"), x.d, c_row, ldd);
      const std::size_t words = want.size() / 4;
      const Words got = Run(body, in, words);
      ASSERT_EQ(got.size(), words);
      // Between the rows nothing was written: compare where `want` has elements.
      Matrix mask(static_cast<std::size_t>(x.m),
                  std::vector<int>(static_cast<std::size_t>(x.n), 1));
      const auto where = Image(mask, x.d, c_row, ldd);
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(got.data());
      const int size = FormatOf(x.d).bits / 8;
      int wrong = 0;
      for (std::size_t i = 0; i + 8 <= want.size(); i += static_cast<std::size_t>(size)) {
        bool element = false;
        for (int e = 0; e < size; ++e) element |= where[i + static_cast<std::size_t>(e)] != 0;
        wrong +=
            element && std::memcmp(bytes + i, want.data() + i, static_cast<std::size_t>(size)) != 0;
      }
      EXPECT_EQ(wrong, 0) << shape << " " << types << " layouts " << layouts;
    }
  }
}

// 1 + 2^-60 lies between 1 and its neighbour above.
TEST_F(MatrixTilesTest, WmmaOfDoublesRoundsAsAsked) {
  for (const auto& [rounding, up] :
       {std::pair{"", false}, {".rn", false}, {".rz", false}, {".rm", false}, {".rp", true}}) {
    const std::string body = fmt::format(R"(
  .reg .f64 %x<8>;
  mov.f64 %x0, 0d3c30000000000000;
  mov.f64 %x1, 0d3ff0000000000000;
  setp.ne.u32 %p1, %lane, 0;
  @%p1 mov.f64 %x0, 0d0000000000000000;
  wmma.mma.sync.aligned.row.col.m8n8k4{}.f64.f64.f64.f64 {{%x2, %x3}}, {{%x0}}, {{%x1}}, {{%x1, %x1}};
  mov.b64 {{%s0, %s1}}, %x2;
  @!%p1 st.global.v2.b32 [%rd2], {{%s0, %s1}};
)",
                                         rounding);
    const Words got = Run(body, Words(32), 2);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0], up ? 1u : 0u) << rounding;
    EXPECT_EQ(got[1], 0x3ff00000u) << rounding;
  }
}

// --- wgmma ---

struct Tile {
  std::vector<std::uint8_t> bytes;
  std::uint64_t descriptor = 0;  // without the start address
};

std::uint64_t Descriptor(std::uint64_t leading, std::uint64_t stride, int swizzle_bytes) {
  const std::uint64_t mode = swizzle_bytes == 128  ? 1
                             : swizzle_bytes == 64 ? 2
                             : swizzle_bytes == 32 ? 3
                                                   : 0;
  return leading >> 4 << 16 | stride >> 4 << 32 | mode << 62;
}

// x[outer][k] in shared memory. K-major: rows of `swizzle` bytes (16 without), of which one
// instruction reads 32 from byte `offset` on.
Tile KMajor(const Matrix& x, const std::string& type, int swizzle, int offset) {
  const std::size_t size = static_cast<std::size_t>(FormatOf(type).bits) / 8, rows = x.size();
  Tile tile;
  tile.bytes.resize(rows * static_cast<std::size_t>(std::max(swizzle, 32)));
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < x[r].size(); ++k) {
      const std::size_t c = k * size + static_cast<std::size_t>(offset);
      std::size_t at = 0;
      if (swizzle == 0) {
        at = r / 8 * 256 + c / 16 * 128 + r % 8 * 16 + c % 16;
      } else {
        const std::size_t turn = swizzle == 128 ? r % 8 : swizzle == 64 ? r % 8 / 2 : r % 8 / 4;
        at = r * static_cast<std::size_t>(swizzle) + (c / 16 ^ turn) * 16 + c % 16;
      }
      const std::uint64_t value = Encode(type, x[r][k]);
      std::memcpy(tile.bytes.data() + at, &value, size);
    }
  }
  tile.descriptor = swizzle == 0 ? Descriptor(128, 256, 0)
                                 : Descriptor(16, 8 * static_cast<std::uint64_t>(swizzle), swizzle);
  tile.descriptor += static_cast<std::uint64_t>(offset) >> 4;
  return tile;
}

// The outer dimension contiguous (16-bit elements): rows are values of k.
Tile OuterMajor(const Matrix& x, const std::string& type, int swizzle) {
  const std::size_t outer = x.size(), width = static_cast<std::size_t>(std::max(swizzle, 16)) / 2;
  Tile tile;
  const std::size_t atoms = (outer + width - 1) / width;
  tile.bytes.resize(atoms * 2 * width * 16);
  // Atoms of 8 k: those of one k behind each other along the outer dimension.
  const std::size_t next_outer = width * 16, next_k = atoms * width * 16;
  for (std::size_t o = 0; o < outer; ++o) {
    for (std::size_t k = 0; k < 16; ++k) {
      const std::size_t line = k % 8;
      const std::size_t turn = swizzle == 128  ? line
                               : swizzle == 64 ? line / 2
                               : swizzle == 32 ? line / 4
                                               : 0;
      const std::size_t at = o / width * next_outer + k / 8 * next_k + line * width * 2 +
                             (o % width / 8 ^ turn) * 16 + o % 8 * 2;
      const std::uint64_t value = Encode(type, x[o][k]);
      std::memcpy(tile.bytes.data() + at, &value, 2);
    }
  }
  tile.descriptor =
      swizzle == 0 ? Descriptor(next_k, next_outer, 0) : Descriptor(next_outer, next_k, swizzle);
  return tile;
}

Matrix Transposed(const Matrix& x) {
  Matrix out(x[0].size(), std::vector<int>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < x[i].size(); ++j) out[j][i] = x[i][j];
  }
  return out;
}

class WgmmaTest : public MatrixTilesTest {
 protected:
  struct Options {
    int n = 64;
    std::string a = "f16", b = "f16", d = "f32";
    int a_swizzle = 128, b_swizzle = 128;
    int offset = 0;  // bytes along k into the swizzled rows
    bool a_outer = false, b_outer = false;
    bool a_registers = false;
    bool accumulate = true;
    int a_scale = 1, b_scale = 1;
    std::string before = "";
  };

  void Check(const Options& x) {
    const int bits = FormatOf(x.a).bits, k = 256 / bits;
    const Matrix a = RandomMatrix(64, k, FormatOf(x.a)), b = RandomMatrix(k, x.n, FormatOf(x.b)),
                 c = RandomMatrix(64, x.n, FormatOf(x.d));
    const Tile ta =
        x.a_outer ? OuterMajor(a, x.a, x.a_swizzle) : KMajor(a, x.a, x.a_swizzle, x.offset);
    const Matrix bt = Transposed(b);
    const Tile tb =
        x.b_outer ? OuterMajor(bt, x.b, x.b_swizzle) : KMajor(bt, x.b, x.b_swizzle, x.offset);
    const std::size_t b_at = (ta.bytes.size() + 1023) / 1024 * 1024;
    const std::size_t tile_bytes = (b_at + tb.bytes.size() + 1023) / 1024 * 1024;
    Words in(tile_bytes / 4);
    std::memcpy(in.data(), ta.bytes.data(), ta.bytes.size());
    std::memcpy(reinterpret_cast<std::uint8_t*>(in.data()) + b_at, tb.bytes.data(),
                tb.bytes.size());
    // Accumulators: register i of thread t at word c_at + i * 128 + t.
    const std::size_t c_at = in.size();
    const bool half = x.d == "f16";
    const int elements = x.n / 2, registers = half ? elements / 2 : elements;
    const auto fragment = [&](const Matrix& d) {
      Words out(static_cast<std::size_t>(registers) * 128);
      for (int t = 0; t < 128; ++t) {
        for (int i = 0; i < elements; ++i) {
          const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2),
                    col = i / 4 * 8 + t % 4 * 2 + (i & 1);
          const std::uint64_t value =
              Encode(x.d, d[static_cast<std::size_t>(row)][static_cast<std::size_t>(col)]);
          const int reg = half ? i / 2 : i;
          out[static_cast<std::size_t>(reg * 128 + t)] |= static_cast<std::uint32_t>(value)
                                                          << (half ? i % 2 * 16 : 0);
        }
      }
      return out;
    };
    const Words wc = fragment(c);
    in.insert(in.end(), wc.begin(), wc.end());
    // A in registers: "Register Fragments for wgmma.mma_async.m64k16" and its kin: four registers;
    // rows groupID and groupID + 8 by turns, the upper half of k in the last two.
    const std::size_t a_at = in.size();
    if (x.a_registers) {
      const int per = 32 / bits;
      in.resize(in.size() + 4 * 128);
      for (int t = 0; t < 128; ++t) {
        for (int reg = 0; reg < 4; ++reg) {
          const int row = t / 32 * 16 + t % 32 / 4 + (reg % 2 == 1 ? 8 : 0);
          for (int e = 0; e < per; ++e) {
            const int col = t % 4 * per + e + (reg >= 2 ? 4 * per : 0);
            const std::uint64_t value =
                Encode(x.a, a[static_cast<std::size_t>(row)][static_cast<std::size_t>(col)]) &
                ((std::uint64_t{1} << bits) - 1);
            in[a_at + static_cast<std::size_t>(reg * 128 + t)] |=
                static_cast<std::uint32_t>(value << (e * bits));
          }
        }
      }
    }
    std::string body = R"(
  mul.wide.u32 %rd3, %thread, 4;
  add.s64 %rd3, %rd1, %rd3;
  mul.wide.u32 %rd4, %thread, 4;
  add.s64 %rd4, %rd2, %rd4;
  mov.u32 %s2, tile;
  mul.lo.u32 %s3, %thread, 4;
  add.u32 %s3, %s2, %s3;
)";
    for (std::size_t at = 0; at < tile_bytes; at += 512) {
      body +=
          fmt::format("  ld.global.b32 %s4, [%rd3+{}];\n  st.shared.b32 [%s3+{}], %s4;\n", at, at);
    }
    body += fmt::format("  .reg .b32 %d<{}>, %a<5>;\n", registers + 1);
    for (int i = 0; i < registers; ++i) {
      body += fmt::format("  ld.global.b32 %d{}, [%rd3+{}];\n", i,
                          (c_at + static_cast<std::size_t>(i) * 128) * 4);
    }
    for (int i = 0; x.a_registers && i < 4; ++i) {
      body += fmt::format("  ld.global.b32 %a{}, [%rd3+{}];\n", i,
                          (a_at + static_cast<std::size_t>(i) * 128) * 4);
    }
    body += fmt::format(R"(
  bar.sync 0;
  shr.u32 %s5, %s2, 4;
  cvt.u64.u32 %rd5, %s5;
  add.s64 %rd6, %rd5, {};
  add.s64 %rd7, %rd5, {};
  setp.{}.u32 %p1, %s2, %s2;
  wgmma.fence.sync.aligned;
)",
                        static_cast<std::int64_t>(ta.descriptor),
                        static_cast<std::int64_t>(tb.descriptor + (b_at >> 4)),
                        x.accumulate ? "eq" : "ne");
    const bool is_float = x.d != "s32";
    const std::string name = fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{}", x.n,
                                         k, x.before, x.d, x.a, x.b);
    body += fmt::format("  {} {}, {}, %rd7, %p1", name, Vector("d", registers),
                        x.a_registers ? Vector("a", 4) : "%rd6");
    if (is_float) body += fmt::format(", {}, {}", x.a_scale, x.b_scale);
    if (bits == 16) {
      if (!x.a_registers) body += x.a_outer ? ", 1" : ", 0";
      body += x.b_outer ? ", 1" : ", 0";
    }
    body += ";\n  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";
    for (int i = 0; i < registers; ++i) {
      body += fmt::format("  st.global.b32 [%rd4+{}], %d{};\n", i * 512, i);
    }
    const Words got = Run(body, in, static_cast<std::size_t>(registers) * 128, 128,
                          static_cast<std::uint32_t>(tile_bytes));
    Matrix d = x.accumulate ? c : Matrix(64, std::vector<int>(static_cast<std::size_t>(x.n)));
    Matrix scaled = a;
    for (auto& row : scaled) {
      for (int& v : row) v *= x.a_scale * x.b_scale;
    }
    EXPECT_EQ(got, fragment(Product(scaled, b, d)))
        << name << " swizzle " << x.a_swizzle << "/" << x.b_swizzle << " offset " << x.offset
        << " outer " << x.a_outer << x.b_outer << " registers " << x.a_registers;
  }
};

TEST_F(WgmmaTest, EverySwizzleAndMajorness) {
  for (const int swizzle : {0, 32, 64, 128}) {
    for (const bool a_outer : {false, true}) {
      for (const bool b_outer : {false, true}) {
        Options x;
        x.a_swizzle = x.b_swizzle = swizzle;
        x.a_outer = a_outer;
        x.b_outer = b_outer;
        Check(x);
        x.a = x.b = "bf16";
        x.n = 128;
        Check(x);
      }
    }
  }
}

TEST_F(WgmmaTest, StepsAlongKWithinASwizzledRow) {
  for (const int swizzle : {64, 128}) {
    for (int offset = 0; offset < swizzle; offset += 32) {
      Options x;
      x.a_swizzle = x.b_swizzle = swizzle;
      x.offset = offset;
      Check(x);
    }
  }
}

TEST_F(WgmmaTest, EveryWidth) {
  for (int n = 8; n <= 256; n += 8) {
    Options x;
    x.n = n;
    Check(x);
    x.a_registers = true;
    x.d = "f16";
    Check(x);
  }
}

TEST_F(WgmmaTest, EveryType) {
  for (const bool registers : {false, true}) {
    Options x;
    x.a_registers = registers;
    x.n = 40;
    x.a = x.b = "tf32";
    Check(x);
    for (const std::string a : {"e4m3", "e5m2"}) {
      for (const std::string b : {"e4m3", "e5m2"}) {
        for (const std::string d : {"f16", "f32"}) {
          x.a = a;
          x.b = b;
          x.d = d;
          Check(x);
        }
      }
    }
    x.d = "s32";
    x.n = 48;
    for (const std::string a : {"s8", "u8"}) {
      for (const std::string b : {"s8", "u8"}) {
        x.a = a;
        x.b = b;
        Check(x);
      }
    }
  }
}

TEST_F(WgmmaTest, ScalesAndFreshAccumulators) {
  for (const int a : {1, -1}) {
    for (const int b : {1, -1}) {
      for (const bool accumulate : {false, true}) {
        Options x;
        x.n = 16;
        x.a_scale = a;
        x.b_scale = b;
        x.accumulate = accumulate;
        Check(x);
      }
    }
  }
}

TEST_F(WgmmaTest, TilesOutsideSharedMemoryFault) {
  const std::string body = R"(
  .reg .b32 %d<9>;
  mov.u32 %d0, 0;
  mov.u32 %d1, 0;
  mov.u32 %d2, 0;
  mov.u32 %d3, 0;
  mov.u64 %rd6, 0x4000004000003fff;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %rd6, %rd6, 1, 1, 1, 0, 0;
  st.global.b32 [%rd2], %d0;
)";
  Run(body, Words(32), 128, 128, 1024);
  EXPECT_EQ(machine_->StickyError(process_, 0), Status::kIllegalAddress);
}

}  // namespace
}  // namespace allranks::node
