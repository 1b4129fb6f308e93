// System calls without the C library. The host library (shim/host) interposes libc's functions for
// the whole process, so code that runs inside it must not go through them: it would wait for
// itself.
#pragma once

#if !defined(__x86_64__) || !defined(__linux__)
#error "AllRanks runs on x86-64 Linux"
#endif

namespace allranks::wire {

// The kernel's answer: a result, or -errno.
inline long RawSyscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                       long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace allranks::wire
