// Names of the operations, for logs and reports.
#include "wire/messages.h"

#include <iterator>

namespace allranks::wire {

const char* OpName(Op op) {
  static constexpr const char* kNames[] = {"none",
                                           "hello",
                                           "new_thread",
                                           "thread_exit",
                                           "wait_thread",
                                           "new_process",
                                           "process_started",
                                           "exec",
                                           "wait_process",
                                           "wait_fd",
                                           "sleep",
                                           "yield",
                                           "barrier_wait",
                                           "watch_key",
                                           "unwatch_key",
                                           "wait_key",
                                           "wake_key",
                                           "host_poll",
                                           "bootstrap_barrier",
                                           "init",
                                           "put_image",
                                           "drop_image",
                                           "load_module",
                                           "unload_module",
                                           "get_kernel",
                                           "get_global",
                                           "set_max_dynamic_shared",
                                           "occupancy",
                                           "alloc",
                                           "free",
                                           "alloc_pinned",
                                           "free_pinned",
                                           "describe",
                                           "ipc_export",
                                           "ipc_open",
                                           "ipc_close",
                                           "can_access_peer",
                                           "enable_peer",
                                           "disable_peer",
                                           "mem_info",
                                           "sticky_error",
                                           "reset_device",
                                           "create_stream",
                                           "destroy_stream",
                                           "stream_query",
                                           "stream_sync",
                                           "create_event",
                                           "destroy_event",
                                           "record_event",
                                           "wait_event",
                                           "event_query",
                                           "event_sync",
                                           "event_elapsed",
                                           "device_sync",
                                           "launch",
                                           "copy",
                                           "copy_in",
                                           "copy_out",
                                           "memset",
                                           "finish",
                                           "deadlock"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Op::kLast_) + 1);
  const auto index = static_cast<std::size_t>(op);
  return index < std::size(kNames) ? kNames[index] : "?";
}

}  // namespace allranks::wire
