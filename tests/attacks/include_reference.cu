// tries: includes the reference, by every path it may have
// rows: C8 H19
// verdict: compile_error
#if __has_include("reference.cu")
#include "reference.cu"
#elif __has_include("../reference.cu")
#include "../reference.cu"
#elif __has_include("/problems/collective/allreduce_one_shot/reference.cu")
#include "/problems/collective/allreduce_one_shot/reference.cu"
#else
#include "../../problems/collective/allreduce_one_shot/reference.cu"
#endif
