// The tile product that fused problems give: 64 x 32 elements of C = A * B^T by 128 threads, from
// halves to floats, with mma.sync. What is left to a solution is the schedule: which tile, when,
// and where its operands lie.
//
// A and B are rows along the depth, the inner dimension, as activations and weights are stored.
// They are read by ordinary loads and may lie on any device. A tile may be made in several pieces
// of the depth, in any order: Clear, Add, Add, ..., Store. Threads 0 to 127 of a block call each
// function together, with the same arguments. They meet at barrier 1, so that other threads of the
// block are free to do something else.
#pragma once

#include <cstdint>

namespace allranks {

constexpr int kTileRows = 64;      // of A and C
constexpr int kTileCols = 32;      // rows of B, columns of C
constexpr int kTileDepth = 64;     // the depth of a piece is a multiple of this
constexpr int kTileThreads = 128;  // each of the four warps has 16 rows of C

// Shared memory of a block for its tile; declare it as `__shared__ TileStage stage;`.
struct TileStage {
  // Rows are longer than their 64 halves, so that rows of an 8 x 8 matrix lie in different banks.
  struct Piece {
    alignas(16) std::uint16_t a[kTileRows][kTileDepth + 8];
    alignas(16) std::uint16_t b[kTileCols][kTileDepth + 8];
  } pieces[2];
};

class TileProduct {
 public:
  __device__ explicit TileProduct(TileStage& stage) : stage_(stage) { Clear(); }

  __device__ void Clear() {
    for (auto& column : sums_) {
      for (float& sum : column) sum = 0;
    }
  }

  // Adds the product over `depth` halves: `a` is the first row of A's tile, `b` that of B's; the
  // strides are halves from row to row. Addresses and strides are multiples of 16 bytes.
  __device__ void Add(const void* a, std::int64_t a_stride, const void* b, std::int64_t b_stride,
                      std::int64_t depth) {
    // Two pieces are on their way from global memory while one is multiplied.
    Loads even, odd;
    Fetch(even, a, a_stride, b, b_stride, 0);
    if (kTileDepth < depth) Fetch(odd, a, a_stride, b, b_stride, kTileDepth);
    for (std::int64_t k = 0; k < depth; k += 2 * kTileDepth) {
      const TileStage::Piece& first = Put(even);
      if (k + 2 * kTileDepth < depth) {
        Fetch(even, a, a_stride, b, b_stride, k + 2 * kTileDepth);
      }
      Multiply(first);
      if (k + kTileDepth >= depth) break;
      const TileStage::Piece& second = Put(odd);
      if (k + 3 * kTileDepth < depth) {
        Fetch(odd, a, a_stride, b, b_stride, k + 3 * kTileDepth);
      }
      Multiply(second);
    }
  }

  // Writes the tile to `c`; the stride is floats from row to row, a multiple of two.
  __device__ void Store(float* c, std::int64_t c_stride) const {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    for (int j = 0; j < kTileCols / 8; ++j) {
      float* place = c + row * c_stride + j * 8 + lane % 4 * 2;
      *reinterpret_cast<float2*>(place) = make_float2(sums_[j][0], sums_[j][1]);
      *reinterpret_cast<float2*>(place + 8 * c_stride) = make_float2(sums_[j][2], sums_[j][3]);
    }
  }

  // Where the 128 threads wait for each other.
  static __device__ void Meet() { asm volatile("barrier.sync 1, 128;" ::: "memory"); }

 private:
  // A thread's share of a piece, in runs of eight halves.
  struct Loads {
    uint4 a[kTileRows * kTileDepth / 8 / kTileThreads];
    uint4 b[kTileCols * kTileDepth / 8 / kTileThreads];
  };

  static __device__ void Fetch(Loads& to, const void* a, std::int64_t a_stride, const void* b,
                               std::int64_t b_stride, std::int64_t k) {
    FetchRows(to.a, static_cast<const std::uint16_t*>(a) + k, a_stride);
    FetchRows(to.b, static_cast<const std::uint16_t*>(b) + k, b_stride);
  }

  // Thread t has every 128th run.
  template <int kLoads>
  static __device__ void FetchRows(uint4 (&to)[kLoads], const std::uint16_t* from,
                                   std::int64_t stride) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int n = i * kTileThreads + static_cast<int>(threadIdx.x), row = n / 8, run = n % 8;
      to[i] = *reinterpret_cast<const uint4*>(from + row * stride + run * 8);
    }
  }

  template <int kLoads>
  static __device__ void PutRows(std::uint16_t (*to)[kTileDepth + 8], const uint4 (&from)[kLoads]) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int n = i * kTileThreads + static_cast<int>(threadIdx.x), row = n / 8, run = n % 8;
      *reinterpret_cast<uint4*>(&to[row][run * 8]) = from[i];
    }
  }

  // The two pieces of shared memory take turns, across calls of Add, too: who writes one of them
  // has met the others after they had multiplied it.
  __device__ const TileStage::Piece& Put(const Loads& loads) {
    TileStage::Piece& piece = stage_.pieces[turn_];
    turn_ ^= 1;
    PutRows(piece.a, loads.a);
    PutRows(piece.b, loads.b);
    Meet();
    return piece;
  }

  static __device__ void LoadFour(std::uint32_t (&to)[4], const std::uint16_t* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(row)))
                 : "memory");
  }

  // All fragments are fetched before the first product, so that their latencies overlap.
  __device__ void Multiply(const TileStage::Piece& piece) {
    constexpr int kSteps = kTileDepth / 16, kPairs = kTileCols / 16;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    std::uint32_t a[kSteps][4], b[kSteps][kPairs][4];  // b: two fragments of 8 columns each
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      LoadFour(a[k], &piece.a[warp * 16 + lane % 16][k * 16 + lane / 16 * 8]);
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        LoadFour(b[k][j], &piece.b[j * 16 + lane / 16 * 8 + lane % 8][k * 16 + lane / 8 % 2 * 8]);
      }
    }
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
#pragma unroll
      for (int j = 0; j < kPairs; ++j) {
        Mma(sums_[2 * j], a[k], b[k][j][0], b[k][j][1]);
        Mma(sums_[2 * j + 1], a[k], b[k][j][2], b[k][j][3]);
      }
    }
  }

  static __device__ void Mma(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }

  TileStage& stage_;
  int turn_ = 0;
  float sums_[kTileCols / 8][4];
};

}  // namespace allranks
