// Names and texts of errors.
#include "shim/cuda/driver.h"

namespace {

struct Entry {
  int number;
  const char* name;
  const char* text;
};
constexpr Entry kErrors[] = {
#define ALLRANKS_ERROR(number, driver, runtime, text) {number, driver, text},
#include "shim/errors.inc"
#undef ALLRANKS_ERROR
};

const Entry* Find(CUresult error) {
  for (const Entry& entry : kErrors) {
    if (entry.number == static_cast<int>(error) && entry.name != nullptr) return &entry;
  }
  return nullptr;
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Entry* entry = Find(error);
  *name = entry != nullptr ? entry->name : nullptr;
  return entry != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Entry* entry = Find(error);
  *text = entry == nullptr ? nullptr : entry->text != nullptr ? entry->text : entry->name;
  return entry != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
