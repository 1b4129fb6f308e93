// `checking cost`: see cost.cpp.
#pragma once

namespace allranks::checking {

// Measures `repeat` processes of `runs` runs each, prints the table. Fails if the ratio is above
// `most`, if fewer than `least` million thread-instructions per second are executed, or if
// anything is found.
int Cost(int repeat, int runs, double most, double least);

}  // namespace allranks::checking
