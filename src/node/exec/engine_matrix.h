// Matrix instructions of a path: meeting of the warp, accesses of memory, operands of wgmma. The
// arithmetic is in matrix.h. Included by engine.cpp; see engine.h.
//
// All are `.sync.aligned`: executed once for the warp, when all its lanes have come. Accesses go
// the way of ordinary loads and stores (bounds, checker, time), except that their data registers
// are a few scratch slots, from which lanes then take what is theirs.
#pragma once

#include <algorithm>
#include <cstring>

#include "node/alu/matrix.h"
#include "node/exec/engine.h"
#include "node/exec/engine_memory.h"

namespace allranks::node {

// An access whose data registers are slots 0, 1, ... of `scratch`.
template <bool kChecked>
bool EngineT<kChecked>::ScratchAccess(const MemoryOp& m, std::uint32_t mask, std::uint64_t* address,
                                      std::byte* scratch) {
  std::swap(registers_, scratch);
  const bool ok = Spaces(m, mask, address);
  std::swap(registers_, scratch);
  return ok;
}

template <bool kChecked>
typename EngineT<kChecked>::Next EngineT<kChecked>::Matrix(const Op& op) {
  const MatrixOp& x = code_->matrices[op.aux];
  Path& path = *path_;
  if (path.mask != warp_->live) {
    ChargeIssue();
    if (!sim_.MeetAligned(path)) return Next::kGone;
    charged_ = path.clock;
  }
  const std::uint32_t mask = warp_->live;
  if (warp_->pending_until > path.clock) {
    for (const auto* slots : {&x.a_slots, &x.b_slots, &x.c_slots}) {
      for (const Slot slot : *slots) WaitFor(slot);
    }
    if (x.kind == MatrixOpKind::kMultiplyGroup) {
      for (const Slot slot : x.d_slots) WaitFor(slot);
    }
    for (const Slot slot : {x.memory.address, x.stride, x.a_descriptor, x.b_descriptor}) {
      WaitFor(slot);
    }
  }
  if (x.kind == MatrixOpKind::kMultiply || x.kind == MatrixOpKind::kMultiplyGroup) {
    // The warps of an SM share its tensor cores; a step is two cycles (decode_matrix.cpp).
    Sm& sm = device_->sms[static_cast<std::size_t>(cta_->sm)];
    const Time begin = path.clock - sim_.costs.step * op.cycles;
    path.clock = std::max(path.clock, sm.tensor.Take(std::max<Time>(0, begin), 2 * op.cycles));
  }
  value_ready_ = path.clock;
  changed_ = false;
  bool ok = true;
  switch (x.kind) {
    case MatrixOpKind::kMultiply:
      matrix::Multiply(x, registers_, constants_, mask);
      break;
    case MatrixOpKind::kTranspose:
      matrix::Transpose(x, registers_, constants_, mask);
      break;
    case MatrixOpKind::kLoadRows:
    case MatrixOpKind::kStoreRows:
      ok = MatrixRows(x, mask);
      break;
    case MatrixOpKind::kLoadFragment:
    case MatrixOpKind::kStoreFragment:
      ok = MatrixFragment(x, mask);
      break;
    case MatrixOpKind::kMultiplyGroup:
      ok = MatrixGroup(x, mask);
      break;
  }
  if (!ok) return Next::kGone;
  const bool loads = x.kind == MatrixOpKind::kLoadRows || x.kind == MatrixOpKind::kLoadFragment;
  if (loads) {
    for (const Slot slot : x.d_slots) {
      if (slot != kNoSlot) ready_[slot] = value_ready_;
    }
    warp_->pending_until = std::max(warp_->pending_until, value_ready_);
  }
  if (!path.spins.empty()) sim_.waiting.RecordChange(path);
  if (sim_.livelock.auditing()) sim_.livelock.End();
  ++path.pc;
  if (path.clock >= path.quantum_end) return Yield();
  return Next::kGo;
}

// ldmatrix, stmatrix: the first 8, 16 or 32 lanes have the addresses of rows of 16 bytes.
template <bool kChecked>
bool EngineT<kChecked>::MatrixRows(const MatrixOp& x, std::uint32_t mask) {
  const bool load = x.kind == MatrixOpKind::kLoadRows;
  const std::size_t matrices = load ? x.d_slots.size() : x.a_slots.size();
  const std::uint32_t rows = matrices == 4 ? kAllLanes : (1u << 8 * matrices) - 1;
  std::uint64_t address[kLanes];
  Addresses(x.memory, address);
  alignas(64) std::uint32_t words[4][kLanes] = {};
  if (!load) matrix::RegistersToRows(x, registers_, constants_, words);
  if (!ScratchAccess(x.memory, mask & rows, address, reinterpret_cast<std::byte*>(words))) {
    return false;
  }
  if (load) matrix::RowsToRegisters(x, words, registers_, mask);
  return true;
}

// wmma.load, wmma.store: each lane accesses its elements of a matrix with a stride.
template <bool kChecked>
bool EngineT<kChecked>::MatrixFragment(const MatrixOp& x, std::uint32_t mask) {
  using Fragment = MatrixOp::Fragment;
  const bool load = x.kind == MatrixOpKind::kLoadFragment;
  const std::vector<Slot>& slots = load ? x.d_slots : x.a_slots;
  const int bits = matrix::BitsOf(x.a), unit = x.a == MatrixType::kF64 ? 8 : 4;
  // Does the inner dimension (matrix::Place) lie contiguously in memory?
  const bool contiguous = x.column_major == (x.fragment == Fragment::kB);
  const bool pairs = contiguous && x.fragment == Fragment::kC && bits >= 32;
  MemoryOp m = x.memory;
  m.bytes = static_cast<std::uint8_t>(contiguous ? unit : bits / 8);
  m.count = pairs ? 2 : 1;
  m.register_bytes = static_cast<std::uint8_t>(unit);
  for (Slot i = 0; i < 8; ++i) m.data[i] = static_cast<Slot>(i * (unit / 4));
  const int pieces = contiguous ? 1 : std::max(1, 32 / bits);  // accesses per register

  std::uint64_t base[kLanes];
  Addresses(x.memory, base);
  std::int64_t stride[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    stride[l] = x.packed_stride;
    if (x.stride != kNoSlot) {
      std::uint32_t value = 0;
      std::memcpy(&value, Source(x.stride) + l * 4, 4);
      stride[l] = value;
    }
  }
  // Registers behind the first `distinct` are copies of them.
  std::size_t distinct = slots.size();
  if (x.fragment != Fragment::kC) {
    const int outer = x.fragment == Fragment::kA ? x.m : x.n;
    distinct = std::min(distinct, static_cast<std::size_t>(outer * x.k * bits / (256 * unit)));
  }
  for (std::size_t i = 0; i < distinct; i += m.count) {
    alignas(64) std::byte whole[2 * 2 * kSlotBytes] = {};
    const auto width = static_cast<std::size_t>(unit) * kLanes;
    if (!load) {
      for (std::size_t e = 0; e < m.count; ++e) {
        std::memcpy(whole + e * width, Source(slots[i + e]), width);
      }
    }
    for (int piece = 0; piece < pieces; ++piece) {
      std::uint64_t address[kLanes];
      for (int l = 0; l < kLanes; ++l) {
        const matrix::Place at = matrix::PlaceOf(x, static_cast<int>(i), l, piece);
        const std::int64_t element =
            contiguous ? at.outer * stride[l] + at.inner : at.inner * stride[l] + at.outer;
        address[l] = base[l] + static_cast<std::uint64_t>(element * bits / 8);
      }
      if (pieces == 1) {
        if (!ScratchAccess(m, mask, address, whole)) return false;
        continue;
      }
      alignas(64) std::uint32_t part[kLanes] = {};
      auto* words = reinterpret_cast<std::uint32_t*>(whole);
      if (!load) {
        for (int l = 0; l < kLanes; ++l) part[l] = words[l] >> (piece * bits);
      }
      if (!ScratchAccess(m, mask, address, reinterpret_cast<std::byte*>(part))) return false;
      if (load) {
        for (int l = 0; l < kLanes; ++l) words[l] |= part[l] << (piece * bits);
      }
    }
    if (!load) continue;
    for (std::size_t copy = i; copy < slots.size(); copy += distinct) {
      for (std::size_t e = 0; e < m.count && copy + e < slots.size(); ++e) {
        if (slots[copy + e] == kNoSlot) continue;
        std::byte* to = registers_ + slots[copy + e] * kSlotBytes;
        ForLanes(mask, [&](int l) {
          std::memcpy(to + l * unit, whole + e * width + static_cast<std::size_t>(l * unit),
                      static_cast<std::size_t>(unit));
        });
      }
    }
  }
  return true;
}

// Rows first ... first + rows - 1 of a factor in shared memory: 32 bytes each.
template <bool kChecked>
bool EngineT<kChecked>::MatrixTile(std::uint64_t bits, bool transposed, int first, int rows,
                                   matrix::Rows* out) {
  const matrix::Descriptor descriptor = matrix::DecodeDescriptor(bits);
  MemoryOp m;
  m.space = ptx::Space::kShared;
  m.count = 4;
  for (Slot word = 0; word < 4; ++word) m.data[word] = word;
  out->pitch = 32;
  for (int done = 0; done < 2 * rows; done += kLanes) {
    const int chunks = std::min(kLanes, 2 * rows - done);
    std::uint64_t address[kLanes] = {};
    for (int l = 0; l < chunks; ++l) {
      const int c = done + l;
      address[l] = transposed ? matrix::ChunkAddress(descriptor, true, c % 16, first / 8 + c / 16)
                              : matrix::ChunkAddress(descriptor, false, first + c / 2, c % 2);
    }
    alignas(64) std::uint32_t words[4][kLanes];
    const std::uint32_t lanes = chunks == kLanes ? kAllLanes : (1u << chunks) - 1;
    by_tensor_ = true;
    const bool ok = ScratchAccess(m, lanes, address, reinterpret_cast<std::byte*>(words));
    by_tensor_ = false;
    if (!ok) return false;
    for (int l = 0; l < chunks; ++l) {
      const int c = done + l;
      const std::uint32_t chunk[4] = {words[0][l], words[1][l], words[2][l], words[3][l]};
      if (!transposed) {
        std::memcpy(out->at(c / 2) + c % 2 * 16, chunk, 16);
        continue;
      }
      for (int i = 0; i < 8; ++i) {  // eight 16-bit elements of one k
        const auto half = static_cast<std::uint16_t>(chunk[i / 2] >> (i % 2 * 16));
        std::memcpy(out->at(c / 16 * 8 + i) + c % 16 * 2, &half, 2);
      }
    }
  }
  return true;
}

// wgmma: each warp multiplies its own 16 of the 64 rows, when it issues the instruction.
template <bool kChecked>
bool EngineT<kChecked>::MatrixGroup(const MatrixOp& x, std::uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const auto descriptor = [&](Slot slot) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, Source(slot) + lane * 8, 8);
    return bits;
  };
  constexpr int kRows = 16;
  matrix::Rows a, b;
  if (x.a_descriptor == kNoSlot) {
    matrix::GatherRows(x.a_slots, kRows, x.k, x.a, false, registers_, constants_, &a);
  } else if (!MatrixTile(descriptor(x.a_descriptor), x.a_transposed,
                         static_cast<int>(warp_->id % 4) * kRows, kRows, &a)) {
    return false;
  }
  if (!MatrixTile(descriptor(x.b_descriptor), x.b_transposed, 0, x.n, &b)) return false;
  bool accumulate = x.accumulate;
  if (x.scale_d != kNoSlot) {
    accumulate = ((predicates_[x.scale_d] >> lane & 1) != 0) != x.scale_d_negated;
  }
  matrix::Multiply(x, kRows, a, b, accumulate, registers_, constants_, mask);
  return true;
}

}  // namespace allranks::node
