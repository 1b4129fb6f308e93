// cuda.h, and cuda_runtime_api.h with the symbols that the functions of calls.def have inside the
// library.
#pragma once

#include "shim/call_arguments.h"

#define ALLRANKS_CALL(name, ...) ALLRANKS_INNER_NAME(name)
#include "shim/cudart/calls.def"
#undef ALLRANKS_CALL

#pragma GCC visibility push(default)
#include <cuda.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop
