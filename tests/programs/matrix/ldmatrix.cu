// ldmatrix and stmatrix: one, two and four matrices of 8 x 8 halves, plain and transposed, rows at
// addresses that the lanes give in any order; and movmatrix.
// nvcc: -arch=sm_90
#include "arrays.h"

namespace {

using u16 = unsigned short;

__device__ unsigned Shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Row r of matrix m lies at row (r * 5 + m * 3) % 8 of a block of its own, 16 bytes wide.
__device__ u16* Row(u16* board, int matrix, int row) {
  return board + (matrix * 8 + (row * 5 + matrix * 3) % 8) * 8;
}

__global__ void Load(const u16* in, unsigned* out) {
  __shared__ alignas(16) u16 board[4 * 64];
  const int lane = threadIdx.x;
  for (int i = lane; i < 4 * 64; i += 32) Row(board, i / 64, i % 64 / 8)[i % 8] = in[i];
  __syncwarp();
  const unsigned at = Shared(Row(board, lane / 8, lane % 8));
  unsigned r[11];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7])
               : "r"(at)
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[8]), "=r"(r[9])
               : "r"(at)
               : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[10])
               : "r"(at)
               : "memory");
  for (int k = 0; k < 11; ++k) out[lane * 11 + k] = r[k];
}

__global__ void Store(const unsigned* in, u16* out, u16* transposed, unsigned* moved) {
  __shared__ alignas(16) u16 board[4 * 64], other[2 * 64];
  const int lane = threadIdx.x;
  const unsigned at = Shared(Row(board, lane / 8, lane % 8)), at2 = Shared(other + lane % 16 * 8);
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
               "r"(in[lane]), "r"(in[32 + lane]), "r"(in[64 + lane]), "r"(in[96 + lane])
               : "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at2),
               "r"(in[lane]), "r"(in[32 + lane])
               : "memory");
  __syncwarp();
  for (int i = lane; i < 4 * 64; i += 32) out[i] = Row(board, i / 64, i % 64 / 8)[i % 8];
  for (int i = lane; i < 2 * 64; i += 32) transposed[i] = other[i];
  unsigned result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(in[lane]));
  moved[lane] = result;
}

unsigned Pair(u16 low, u16 high) { return low | static_cast<unsigned>(high) << 16; }

}  // namespace

int main() {
  std::vector<u16> in;
  for (int i = 0; i < 4 * 64; ++i) in.push_back(static_cast<u16>(i * 257 + 3));
  // A lane holds two neighbours of row lane / 4, or of column lane / 4 where transposed.
  const auto plain = [&](int m, int lane) {
    const u16* p = &in[m * 64 + lane / 4 * 8 + lane % 4 * 2];
    return Pair(p[0], p[1]);
  };
  const auto turned = [&](int m, int lane) {
    const u16* p = &in[m * 64 + lane % 4 * 2 * 8 + lane / 4];
    return Pair(p[0], p[8]);
  };
  std::vector<unsigned> expected, fragments(128), moved;
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) expected.push_back(plain(m, lane));
    for (int m = 0; m < 4; ++m) expected.push_back(turned(m, lane));
    for (int m = 0; m < 2; ++m) expected.push_back(plain(m, lane));
    expected.push_back(turned(0, lane));
    for (int m = 0; m < 4; ++m) fragments[m * 32 + lane] = plain(m, lane);
    moved.push_back(turned(0, lane));
  }
  unsigned* out = Unwritten<unsigned>(expected.size());
  Load<<<1, 32>>>(ToDevice(in), out);
  REQUIRE_SAME(ToHost(out, expected.size()), expected);

  std::vector<u16> transposed(2 * 64);
  for (int i = 0; i < 2 * 64; ++i) transposed[i] = in[i / 64 * 64 + i % 8 * 8 + i % 64 / 8];
  u16* stored = Unwritten<u16>(4 * 64);
  u16* stored_transposed = Unwritten<u16>(2 * 64);
  unsigned* device_moved = Unwritten<unsigned>(32);
  Store<<<1, 32>>>(ToDevice(fragments), stored, stored_transposed, device_moved);
  REQUIRE_SAME(ToHost(stored, 4 * 64), in);
  REQUIRE_SAME(ToHost(stored_transposed, 2 * 64), transposed);
  REQUIRE_SAME(ToHost(device_moved, 32), moved);
  std::puts("PASS ldmatrix");
}
