// Element types of tensors: their names in problem.toml and in CUDA, and their sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace allranks::problem {

enum class Type : std::uint8_t { kF32, kF16, kBf16, kF64, kI8, kU8, kI32, kU32, kI64, kU64 };

std::optional<Type> TypeNamed(std::string_view name);  // "f32", "bf16", "i32", ...
const char* NameOf(Type type);
const char* CudaNameOf(Type type);  // "float", "__nv_bfloat16", "std::int32_t"
std::uint64_t SizeOf(Type type);
bool IsFloat(Type type);

}  // namespace allranks::problem
