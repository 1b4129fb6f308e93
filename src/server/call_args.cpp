#include "server/call_args.h"

namespace allranks::server {

const char* HostFunctionOf(wire::Op op) {
  switch (op) {
    case wire::Op::kNewThread:
      return "pthread_create";
    case wire::Op::kWaitThread:
      return "pthread_join";
    case wire::Op::kNewProcess:
      return "fork";
    case wire::Op::kExec:
      return "execve";
    case wire::Op::kWaitProcess:
      return "waitpid";
    case wire::Op::kWaitFd:
      return "wait for descriptors";
    case wire::Op::kSleep:
      return "sleep";
    case wire::Op::kYield:
      return "sched_yield";
    case wire::Op::kBarrierWait:
      return "pthread_barrier_wait";
    case wire::Op::kBootstrapBarrier:
      return "allranks_barrier";
    case wire::Op::kWaitKey:
      return "wait for a lock or a condition";
    case wire::Op::kWakeKey:
      return "release a lock or signal a condition";
    case wire::Op::kHostPoll:
      return "poll pinned memory";
    default:
      return wire::OpName(op);
  }
}

}  // namespace allranks::server
