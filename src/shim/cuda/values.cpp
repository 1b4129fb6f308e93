// Stream memory operations: values that streams write to memory and wait for there.
#include "shim/cuda/capture.h"
#include "shim/cuda/driver.h"

namespace allranks::shim {

CUresult TranslateValues(unsigned count, const CUstreamBatchMemOpParams* params,
                         std::vector<wire::ValueOp>* out) {
  if (params == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& step = params[i];
    wire::ValueOp value;
    switch (step.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      case CU_STREAM_MEM_OP_WAIT_VALUE_64: {
        const bool wide = step.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
        value.kind = wire::ValueOp::Kind::kWait;
        value.width = wide ? 8 : 4;
        value.address = step.waitValue.address;
        value.value = wide ? step.waitValue.value64 : step.waitValue.value;
        const unsigned flags = step.waitValue.flags & ~unsigned{CU_STREAM_WAIT_VALUE_FLUSH};
        if (flags > CU_STREAM_WAIT_VALUE_NOR) return CUDA_ERROR_INVALID_VALUE;
        value.compare = static_cast<wire::ValueOp::Compare>(flags);
        break;
      }
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      case CU_STREAM_MEM_OP_WRITE_VALUE_64: {
        const bool wide = step.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
        value.kind = wire::ValueOp::Kind::kWrite;
        value.width = wide ? 8 : 4;
        value.address = step.writeValue.address;
        value.value = wide ? step.writeValue.value64 : step.writeValue.value;
        if ((step.writeValue.flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) != 0) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        if (step.writeValue.flags != 0) value.kind = wire::ValueOp::Kind::kUnorderedWrite;
        break;
      }
      // Everything that a step has done is done when the next one starts: both say nothing new.
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      case CU_STREAM_MEM_OP_BARRIER:
        value.kind = wire::ValueOp::Kind::kBarrier;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    out->push_back(value);
  }
  return CUDA_SUCCESS;
}

}  // namespace allranks::shim

using namespace allranks::shim;
namespace wire = allranks::wire;

// The numbers on the wire are the driver's.
static_assert(CU_STREAM_WAIT_VALUE_GEQ == 0 && CU_STREAM_WAIT_VALUE_EQ == 1 &&
              CU_STREAM_WAIT_VALUE_AND == 2 && CU_STREAM_WAIT_VALUE_NOR == 3);

namespace {

CUresult Batch(bool per_thread, CUstream stream, unsigned count,
               const CUstreamBatchMemOpParams* params, unsigned flags) {
  const CUresult ready = Ready();
  if (ready != CUDA_SUCCESS) return ready;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  wire::StreamValues request;
  CUresult result = TranslateValues(count, params, &request.values);
  if (result != CUDA_SUCCESS) return result;
  if (Stream* capturing = Capturing(stream, per_thread))
    return CaptureValues(capturing, count, params);
  result = ResolveStream(stream, per_thread, &request.stream);
  if (result != CUDA_SUCCESS || count == 0) return result;
  return Result(Call(request));
}

CUresult Write(bool per_thread, CUstream stream, CUdeviceptr address, cuuint64_t value,
               unsigned flags, bool wide) {
  CUstreamBatchMemOpParams step{};
  step.operation = wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
  step.writeValue.address = address;
  step.writeValue.value64 = value;
  step.writeValue.flags = flags;
  return Batch(per_thread, stream, 1, &step, 0);
}

CUresult Wait(bool per_thread, CUstream stream, CUdeviceptr address, cuuint64_t value,
              unsigned flags, bool wide) {
  CUstreamBatchMemOpParams step{};
  step.operation = wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
  step.waitValue.address = address;
  step.waitValue.value64 = value;
  step.waitValue.flags = flags;
  return Batch(per_thread, stream, 1, &step, 0);
}

}  // namespace

// The first version of these functions differed in that a driver option had to enable them.
#undef cuStreamWriteValue32
#undef cuStreamWaitValue32
#undef cuStreamWriteValue64
#undef cuStreamWaitValue64
#undef cuStreamBatchMemOp
#define ALLRANKS_VALUE(name, type, function, wide)                                      \
  ALLRANKS_SYMBOL(CUresult, name,                                                       \
                  (CUstream stream, CUdeviceptr address, type value, unsigned flags)) { \
    return function(false, stream, address, value, flags, wide);                        \
  }                                                                                     \
  ALLRANKS_SYMBOL(CUresult, name##_ptsz,                                                \
                  (CUstream stream, CUdeviceptr address, type value, unsigned flags)) { \
    return function(true, stream, address, value, flags, wide);                         \
  }
ALLRANKS_VALUE(cuStreamWriteValue32, cuuint32_t, Write, false)
ALLRANKS_VALUE(cuStreamWriteValue32_v2, cuuint32_t, Write, false)
ALLRANKS_VALUE(cuStreamWriteValue64, cuuint64_t, Write, true)
ALLRANKS_VALUE(cuStreamWriteValue64_v2, cuuint64_t, Write, true)
ALLRANKS_VALUE(cuStreamWaitValue32, cuuint32_t, Wait, false)
ALLRANKS_VALUE(cuStreamWaitValue32_v2, cuuint32_t, Wait, false)
ALLRANKS_VALUE(cuStreamWaitValue64, cuuint64_t, Wait, true)
ALLRANKS_VALUE(cuStreamWaitValue64_v2, cuuint64_t, Wait, true)

#define ALLRANKS_BATCH(name)                                                                 \
  ALLRANKS_SYMBOL(                                                                           \
      CUresult, name,                                                                        \
      (CUstream stream, unsigned count, CUstreamBatchMemOpParams* params, unsigned flags)) { \
    return Batch(false, stream, count, params, flags);                                       \
  }                                                                                          \
  ALLRANKS_SYMBOL(                                                                           \
      CUresult, name##_ptsz,                                                                 \
      (CUstream stream, unsigned count, CUstreamBatchMemOpParams* params, unsigned flags)) { \
    return Batch(true, stream, count, params, flags);                                        \
  }
ALLRANKS_BATCH(cuStreamBatchMemOp)
ALLRANKS_BATCH(cuStreamBatchMemOp_v2)
