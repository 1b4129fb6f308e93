// The node's own numbers of what a program knows by handles, for the driver of judged runs.
#pragma once

#include <cstdint>

#include "shim/abi.h"

struct CUgraphExec_st;
struct CUstream_st;

// 0: no such handle.
ALLRANKS_EXPORT std::uint64_t ar_graph_number(CUgraphExec_st* graph);
ALLRANKS_EXPORT std::uint64_t ar_stream_number(CUstream_st* stream);
