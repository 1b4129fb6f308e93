// Products of integer matrices, checked in the time of reading them (Freivalds).
//
// C = A B is tested as C x = A (B x) for a random x, modulo 2^64. If a row of C is wrong by d != 0,
// then d x = 0 for a share of at most 2^-(64 - t) of all x, where 2^t is the largest power of two
// that divides every element of d; |d| < 2^33 here, so a wrong row escapes with less than 2^-31.
// Rows that differ are computed in full, so each wrong element is told.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "allranks/oracle/check.h"

namespace allranks::oracle {

// A (rows x k) in blocks of whole rows one after the other, B (k x n) by rows, or by columns
// (n x k) if `b_by_columns`. The output holds A B from its first element on, row by row; poison
// beyond. All elements of A and B must be integers so small that the type's sums are exact in any
// order (draw = integers); otherwise this throws.
template <class A, class B, class C>
void Product(const Call& call, Check& check, int rank, std::string_view tensor,
             std::span<const std::span<const A>> a_blocks, std::span<const B> b, std::size_t k,
             std::size_t n, bool b_by_columns = false) {
  if (k == 0 || n == 0 || b.size() < k * n) throw std::runtime_error("Product: B is too small");
  double largest_a = 0, largest_b = 0;
  const auto integer = [](double x, double* largest) {
    *largest = std::max(*largest, std::abs(x));
    if (!(std::abs(x) < 0x1p31) || x != std::trunc(x)) {
      throw std::runtime_error("Product: an input is not a small integer");
    }
    return static_cast<std::int64_t>(x);
  };
  std::vector<std::int64_t> bs(k * n);
  for (std::size_t i = 0; i < k * n; ++i) bs[i] = integer(ToDouble(b[i]), &largest_b);
  const auto b_at = [&](std::size_t j, std::size_t c) {
    return b_by_columns ? bs[c * k + j] : bs[j * n + c];
  };

  Random random = call.MakeRandom(static_cast<std::uint64_t>(rank));
  std::vector<std::uint64_t> x(n), y(k, 0);
  for (std::uint64_t& value : x) value = random.Next();
  if (b_by_columns) {
    for (std::size_t c = 0; c < n; ++c) {
      for (std::size_t j = 0; j < k; ++j) y[j] += static_cast<std::uint64_t>(bs[c * k + j]) * x[c];
    }
  } else {
    for (std::size_t j = 0; j < k; ++j) {
      for (std::size_t c = 0; c < n; ++c) y[j] += static_cast<std::uint64_t>(bs[j * n + c]) * x[c];
    }
  }

  const std::span<const C> out = check.Out<C>(rank, tensor);
  std::vector<std::int64_t> row(k);
  std::size_t r = 0;
  for (const std::span<const A>& block : a_blocks) {
    if (block.size() % k != 0) throw std::runtime_error("Product: A has half a row");
    for (std::size_t first = 0; first < block.size(); first += k, ++r) {
      if (out.size() < (r + 1) * n) throw std::runtime_error("Product: the output is too small");
      std::uint64_t expected = 0, got = 0;
      for (std::size_t j = 0; j < k; ++j) {
        row[j] = integer(ToDouble(block[first + j]), &largest_a);
        expected += static_cast<std::uint64_t>(row[j]) * y[j];
      }
      bool integers = true;
      const C* have = out.data() + r * n;
      for (std::size_t c = 0; c < n; ++c) {
        const double value = ToDouble(have[c]);
        if (std::abs(value) < 0x1p32 && value == std::trunc(value)) {
          got += static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) * x[c];
        } else {
          integers = false;
        }
      }
      if (integers && expected == got) continue;
      for (std::size_t c = 0; c < n; ++c) {
        std::int64_t sum = 0;
        for (std::size_t j = 0; j < k; ++j) sum += row[j] * b_at(j, c);
        if (ToDouble(have[c]) == static_cast<double>(sum)) continue;
        const std::uint64_t index = r * n + c;
        check.Wrong(
            rank, tensor, index, std::to_string(sum),
            check.IsPoison(rank, tensor, index) ? "never written" : Text(ToDouble(have[c])));
      }
    }
  }
  if (largest_a * largest_b * static_cast<double>(k) > ExactLimit(TypeOf<C>())) {
    throw std::runtime_error("Product: inputs are too large for exact sums");
  }
  check.Untouched(rank, tensor, r * n);
}

}  // namespace allranks::oracle
