// The table of element types.
#include "problem/type.h"

#include "base/check.h"

namespace allranks::problem {
namespace {

struct Row {
  Type type;
  const char* name;
  const char* cuda;
  std::uint64_t size;
  bool is_float;
};

constexpr Row kRows[] = {
    {Type::kF32, "f32", "float", 4, true},           {Type::kF16, "f16", "__half", 2, true},
    {Type::kBf16, "bf16", "__nv_bfloat16", 2, true}, {Type::kF64, "f64", "double", 8, true},
    {Type::kI8, "i8", "std::int8_t", 1, false},      {Type::kU8, "u8", "std::uint8_t", 1, false},
    {Type::kI32, "i32", "std::int32_t", 4, false},   {Type::kU32, "u32", "std::uint32_t", 4, false},
    {Type::kI64, "i64", "std::int64_t", 8, false},   {Type::kU64, "u64", "std::uint64_t", 8, false},
};

const Row& RowOf(Type type) {
  const Row& row = kRows[static_cast<std::size_t>(type)];
  CHECK(row.type == type);
  return row;
}

}  // namespace

std::optional<Type> TypeNamed(std::string_view name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row.type;
  }
  return std::nullopt;
}

const char* NameOf(Type type) { return RowOf(type).name; }
const char* CudaNameOf(Type type) { return RowOf(type).cuda; }
std::uint64_t SizeOf(Type type) { return RowOf(type).size; }
bool IsFloat(Type type) { return RowOf(type).is_float; }

}  // namespace allranks::problem
