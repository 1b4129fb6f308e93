// Attributes of streams. The priority has an effect on launches; the others are hints for caches
// and fences that are kept and given back.
#include <string.h>

#include "shim/cuda/driver.h"

using namespace allranks::shim;
namespace wire = allranks::wire;

namespace {

// The legacy default stream of each device has attributes, too.
std::unordered_map<int, CUstreamAttrValue>* AttributesOf(CUstream handle, bool per_thread,
                                                         CUresult* result) {
  static std::unordered_map<int, CUstreamAttrValue> legacy[kMaxDevices];
  wire::StreamRef ref;
  Stream* stream;
  *result = LocateStream(handle, per_thread, &ref, &stream);
  if (*result != CUDA_SUCCESS) return nullptr;
  return stream != nullptr ? &stream->attributes : &legacy[ref.device];
}

bool IsStreamAttribute(CUstreamAttrID id) {
  return id == CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
         id == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY || id == CU_STREAM_ATTRIBUTE_PRIORITY ||
         id == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP || id == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN;
}

CUresult Do_cuStreamGetAttribute(bool per_thread, CUstream stream, CUstreamAttrID id,
                                 CUstreamAttrValue* value) {
  if (value == nullptr || !IsStreamAttribute(id)) return CUDA_ERROR_INVALID_VALUE;
  CUresult result;
  const auto* attributes = AttributesOf(stream, per_thread, &result);
  if (attributes == nullptr) return result;
  memset(value, 0, sizeof *value);
  if (const auto found = attributes->find(id); found != attributes->end()) {
    *value = found->second;
  } else if (id == CU_STREAM_ATTRIBUTE_PRIORITY) {
    return cuStreamGetPriority(stream, &value->priority);
  } else if (id == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) {
    value->memSyncDomainMap = {0, 1};
  } else if (id == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
    value->syncPolicy = CU_SYNC_POLICY_AUTO;
  }
  return CUDA_SUCCESS;
}

CUresult Do_cuStreamSetAttribute(bool per_thread, CUstream stream, CUstreamAttrID id,
                                 const CUstreamAttrValue* value) {
  if (value == nullptr || !IsStreamAttribute(id)) return CUDA_ERROR_INVALID_VALUE;
  if (id == CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN &&
      value->memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result;
  auto* attributes = AttributesOf(stream, per_thread, &result);
  if (attributes == nullptr) return result;
  (*attributes)[id] = *value;
  return CUDA_SUCCESS;
}

CUresult Do_cuStreamCopyAttributes(bool per_thread, CUstream to, CUstream from) {
  CUresult result;
  const auto* source = AttributesOf(from, per_thread, &result);
  if (source == nullptr) return result;
  auto* target = AttributesOf(to, per_thread, &result);
  if (target == nullptr) return result;
  if (target != source) *target = *source;
  return CUDA_SUCCESS;
}

}  // namespace

ALLRANKS_BOTH_STREAMS(cuStreamGetAttribute, _ptsz,
                      (CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value), stream, id,
                      value)
ALLRANKS_BOTH_STREAMS(cuStreamSetAttribute, _ptsz,
                      (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value), stream,
                      id, value)
ALLRANKS_BOTH_STREAMS(cuStreamCopyAttributes, _ptsz, (CUstream to, CUstream from), to, from)
