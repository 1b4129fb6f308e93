#include <cuda.h>

// A message goes to the staging buffer at the next rank and from there to `out`. Values are the
// same in every call, so flags go up and down again:
//
//   claimed  in the sender's memory: the sender raises it before it fills the staging buffer at its
//            target, the target lowers it after it has emptied that
//   full     in the receiver's memory: the sender raises it behind the data, the receiver lowers it
//            before it lowers `claimed`, so before the sender can raise it again
//
// The staging buffer is thus written only between two times at which it is empty.
struct Control {
  std::uint32_t claimed, full;
  alignas(256) std::uint32_t data[1];  // n words
};

using Step = CUstreamBatchMemOpParams;

Step Write(const std::uint32_t* word, std::uint32_t value) {
  Step step = {};
  step.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, reinterpret_cast<CUdeviceptr>(word)};
  step.writeValue.value = value;
  step.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return step;
}

Step Wait(const std::uint32_t* word, std::uint32_t value) {
  Step step = {};
  step.waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, reinterpret_cast<CUdeviceptr>(word)};
  step.waitValue.value = value;
  step.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return step;
}

// Two steps, one after the other, at the cost of one.
void Both(cudaStream_t stream, Step first, Step second) {
  Step steps[] = {first, second};
  cuStreamBatchMemOp(stream, 2, steps, 0);
}

void Copy(void* to, const void* from, std::int64_t count, cudaStream_t stream) {
  cudaMemcpyAsync(to, from, count * 4, cudaMemcpyDeviceToDevice, stream);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const int next = (args.rank + 1) % args.world, before = (args.rank + args.world - 1) % args.world;
  Control* mine = reinterpret_cast<Control*>(args.scratch);
  Control* target = reinterpret_cast<Control*>(args.scratch_peers[next]);
  Control* source = reinterpret_cast<Control*>(args.scratch_peers[before]);

  Both(stream, Wait(&mine->claimed, 0), Write(&mine->claimed, 1));  //@claim
  Copy(target->data, args.in, args.n, stream);                      //@send
  Both(stream, Write(&target->full, 1), Wait(&mine->full, 1));      //@meet
  Copy(args.out, mine->data, args.n, stream);                       //@take
  Both(stream, Write(&mine->full, 0), Write(&source->claimed, 0));  //@give_back
}
