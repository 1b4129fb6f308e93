// The [cases] section of problem.toml: from ranges and lists to cases. Part of problem.cpp.
#pragma once

#include "problem/problem.h"
#include "problem/reader.h"

namespace allranks::problem {

// The parameters of a problem: what `timed` (or `visible`, if there is none) varies, in its order.
void ReadParams(const toml::table* cases, Faults* faults, Problem* problem);
void ReadCases(const toml::table* cases, Faults* faults, Problem* problem);

}  // namespace allranks::problem
