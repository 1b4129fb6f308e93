// A call of NCCL that must succeed.
#pragma once

#include <nccl.h>

#include "check.h"

#define NCCL_CHECK(call)                                                         \
  do {                                                                           \
    const ncclResult_t result = (call);                                          \
    REQUIRE(result == ncclSuccess, "%s: %s", #call, ncclGetErrorString(result)); \
  } while (0)
